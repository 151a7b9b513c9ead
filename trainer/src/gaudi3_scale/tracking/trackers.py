"""What is sent to each tracker, through Lightning's own loggers.

Imported where they are used: MLflow alone takes more than a second to import.
"""

from __future__ import annotations

import importlib.util
import json
import os
import secrets
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, Protocol

from gaudi3_scale.config.tracking import TrackingConfig
from gaudi3_scale.errors import ConfigError
from gaudi3_scale.extras import how_to_install
from gaudi3_scale.files import write_atomically

RUNS = "tracking.json"
"""In output_dir: the id of the run, by tracker."""
PARAMETERS = 100
"""That MLflow takes at once."""
LONGEST = 250
"""Characters of a parameter's value, as Lightning's logger has it."""
Ending = Literal["finished", "failed", "interrupted"]


class Tracker(Protocol):
    """One run of one tracker. Its methods are called by one thread, and may raise anything or take for ever."""

    def open(self, parameters: Mapping[str, Any]) -> None:
        """Begin the run, or go on with it."""

    def log(self, values: Mapping[str, float], step: int) -> None:
        """The values of a step."""

    def close(self, ending: Ending) -> None:
        """Write out what is buffered; an interrupted run is not over."""


class TensorBoard:
    """Files of events in output_dir/tensorboard."""

    def __init__(self, directory: Path, config: TrackingConfig, step: int) -> None:
        self._directory = directory
        self._step = step

    def open(self, parameters: Mapping[str, Any]) -> None:
        """Steps that were made after the checkpoint that the job goes on from are dropped by who reads the files."""
        from lightning.pytorch.loggers import TensorBoardLogger

        purge = {"purge_step": self._step + 1} if self._step else {}
        self._logger = TensorBoardLogger(self._directory, name="tensorboard", version="", **purge)
        self._logger.log_hyperparams(dict(parameters))

    def log(self, values: Mapping[str, float], step: int) -> None:
        """One point for each value."""
        self._logger.log_metrics(dict(values), step)

    def close(self, ending: Ending) -> None:
        """Also writes the hyperparameters to a file."""
        self._logger.finalize("failed" if ending == "failed" else "success")


class MLflow:
    """A run on a tracking server."""

    def __init__(self, directory: Path, config: TrackingConfig, step: int) -> None:
        self._directory = directory
        self._uri = config.mlflow_uri or os.environ["MLFLOW_TRACKING_URI"]
        self._project = config.project
        self._name = run_name(directory, config)

    def open(self, parameters: Mapping[str, Any]) -> None:
        """MLflow refuses another value of a parameter: what a resumed job has changed becomes a tag."""
        os.environ.setdefault("MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT", "true")
        from lightning.pytorch.loggers import MLFlowLogger
        from mlflow.entities import Param, RunTag

        self._logger = MLFlowLogger(
            self._project, self._name, self._uri, run_id=_known(self._directory, "mlflow"), synchronous=True
        )
        identity = self._logger.run_id
        _remember(self._directory, "mlflow", identity)
        client = self._logger.experiment
        before = client.get_run(identity).data.params
        texts = {name: str(value)[:LONGEST] for name, value in parameters.items()}
        new = [Param(name, text) for name, text in texts.items() if name not in before]
        for at in range(0, len(new), PARAMETERS):
            client.log_batch(identity, params=new[at : at + PARAMETERS])
        changed = [RunTag(f"changed.{name}", text) for name, text in texts.items() if before.get(name, text) != text]
        if changed:
            client.log_batch(identity, tags=changed[:PARAMETERS])
        client.update_run(identity, status="RUNNING")

    def log(self, values: Mapping[str, float], step: int) -> None:
        """One request."""
        self._logger.log_metrics(dict(values), step)

    def close(self, ending: Ending) -> None:
        """The run's status is the job's; that of an interrupted job stays RUNNING, as it goes on."""
        if ending != "interrupted":
            self._logger.finalize(ending)


class Wandb:
    """A run of Weights & Biases in output_dir/wandb, or at their service."""

    def __init__(self, directory: Path, config: TrackingConfig, step: int) -> None:
        self._directory = directory
        self._config = config

    def open(self, parameters: Mapping[str, Any]) -> None:
        """Neither the console nor the machine is recorded: both have a place of their own in this package."""
        import wandb
        from lightning.pytorch.loggers import WandbLogger

        identity = _known(self._directory, "wandb") or secrets.token_hex(4)
        _remember(self._directory, "wandb", identity)
        self._logger = WandbLogger(
            name=run_name(self._directory, self._config),
            save_dir=self._directory,
            id=identity,
            project=self._config.project,
            offline=self._config.wandb_mode == "offline",
            settings=wandb.Settings(console="off", silent=True, x_disable_stats=True),
        )
        self._logger.experiment.config.update(dict(parameters), allow_val_change=True)

    def log(self, values: Mapping[str, float], step: int) -> None:
        """Into the files that W&B's own process writes."""
        self._logger.log_metrics(dict(values), step)

    def close(self, ending: Ending) -> None:
        """Lightning's logger leaves the run open, and with it what is not written yet."""
        self._logger.experiment.finish(exit_code=1 if ending == "failed" else 0)


KINDS: dict[str, type[TensorBoard | MLflow | Wandb]] = {"tensorboard": TensorBoard, "mlflow": MLflow, "wandb": Wandb}
NAMES = {"tensorboard": "TensorBoard", "mlflow": "MLflow", "wandb": "Weights & Biases"}


def check(config: TrackingConfig) -> None:
    """Raise ConfigError if a tracker is not available, before anything begins. Nothing is imported."""
    for name in config.trackers:
        if importlib.util.find_spec(name) is None:
            raise ConfigError(
                f"tracking.trackers names {name}, which is not installed: {how_to_install(name)}, or take it out."
            )
    if "mlflow" in config.trackers and not (config.mlflow_uri or os.environ.get("MLFLOW_TRACKING_URI")):
        raise ConfigError(
            "tracking.trackers names mlflow, and there is neither tracking.mlflow_uri nor MLFLOW_TRACKING_URI: give "
            "the address of the tracking server, such as http://HOST:5000."
        )


def load(name: str) -> None:
    """Import a tracker's library, here and not in its thread, where it would slow down the first steps."""
    importlib.import_module("lightning.pytorch.loggers")
    importlib.import_module("torch.utils.tensorboard" if name == "tensorboard" else name)


def run_name(directory: Path, config: TrackingConfig) -> str:
    """What the run is called."""
    return config.name or directory.resolve().name


def _known(directory: Path, tracker: str) -> str | None:
    """The id of the run that the job began before."""
    try:
        found = json.loads((directory / RUNS).read_text(encoding="utf-8")).get(tracker)
    except (OSError, ValueError, AttributeError):
        return None
    return found if isinstance(found, str) else None


def _remember(directory: Path, tracker: str, identity: str) -> None:
    names = {name: known for name in KINDS if (known := _known(directory, name)) is not None}
    if names.get(tracker) != identity:
        write_atomically(directory / RUNS, json.dumps({**names, tracker: identity, "written_at": time.time()}))
