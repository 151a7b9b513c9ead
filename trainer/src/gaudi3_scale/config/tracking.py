"""Experiment trackers."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, field_validator

from gaudi3_scale.config.section import Section

Tracker = Literal["tensorboard", "mlflow", "wandb"]


class TrackingConfig(Section):
    """Experiment trackers, which get at log steps what metrics.jsonl gets; one run of each over all restarts."""

    trackers: list[Tracker] = Field(
        [], description="any of tensorboard, mlflow, wandb; each needs the extra of its name"
    )
    project: str = Field("gaudi3-scale", min_length=1, description="experiment of MLflow, project of Weights & Biases")
    name: str | None = Field(None, description="of the run; null = the name of output_dir")
    mlflow_uri: str | None = Field(
        None, description="MLflow's tracking server, such as http://HOST:5000; null = MLFLOW_TRACKING_URI"
    )
    wandb_mode: Literal["offline", "online"] = Field(
        "offline",
        description="offline = into output_dir/wandb, for `wandb sync`; online = to the service of WANDB_API_KEY",
    )

    seconds: float = Field(
        10.0, ge=0, description="that a job waits at its end for trackers; at most 2 where it was interrupted or failed"
    )

    @field_validator("trackers")
    @classmethod
    def _once(cls, trackers: list[Tracker]) -> list[Tracker]:
        if len(set(trackers)) < len(trackers):
            raise ValueError(f"it is {trackers}, in which one tracker stands twice")
        return trackers
