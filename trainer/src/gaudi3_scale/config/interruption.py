"""Who may ask the job to leave."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from gaudi3_scale.config.section import Section

Source = Literal["signal", "file", "aws", "gcp", "azure"]


class InterruptionConfig(Section):
    """Notices on which the job saves a checkpoint and leaves with exit code 75."""

    sources: list[Source] = Field(
        ["signal"], description="any of signal (SIGTERM, SIGUSR1), file, aws, gcp, azure; the clouds' say of this node"
    )
    file: Path | None = Field(None, description="touching it is a notice (source file), its first line the reason")
    poll: float = Field(5.0, ge=0.1, le=60, description="seconds between two looks at the file and the metadata")
    grace: float = Field(
        0.0,
        ge=0,
        description="seconds until the process is killed, where a notice does not say; 0 = as long as torchrun waits "
        "(TORCH_ELASTIC_SHUTDOWN_TIMEOUT, else 30)",
    )
    rebalance: bool = Field(False, description="count AWS's rebalance recommendation as a notice, too")
    aws_endpoint: str = Field("http://169.254.169.254", description="instance metadata of AWS (version 2, with tokens)")
    gcp_endpoint: str = Field("http://metadata.google.internal", description="instance metadata of Google Cloud")
    azure_endpoint: str = Field("http://169.254.169.254", description="instance metadata of Azure (Scheduled Events)")

    @field_validator("sources", mode="before")
    @classmethod
    def _no_ibm(cls, sources: Any) -> Any:
        """See row U32 of docs/understand/hardware-status.md."""
        if isinstance(sources, list) and "ibm" in sources:
            raise ValueError(
                "it names ibm, and no public page of IBM Cloud names a notice that a spot machine gets before it ends: "
                "such a job goes on from its newest checkpoint, so take ibm out and set checkpoint.every accordingly"
            )
        return sources

    @model_validator(mode="after")
    def _complete(self) -> InterruptionConfig:
        if ("file" in self.sources) != (self.file is not None):
            raise ValueError(
                f"sources is {self.sources} and file is {self.file}, but the source file and its path go together"
            )
        return self
