"""What survives a kill."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

from pydantic import Field, field_validator

from gaudi3_scale.config.section import Section


class CheckpointConfig(Section):
    """What survives a kill."""

    every: int = Field(25, ge=1, description="steps between checkpoints; a kill loses at most these")
    every_seconds: float | None = Field(
        None, gt=0, description="seconds between checkpoints, in place of every; ranks agree on the step. null = none"
    )
    keep: int = Field(2, ge=1, description="committed checkpoints kept per node; 2 survive a damaged newest one")
    keep_every: int | None = Field(
        None, ge=1, description="also keep those whose step is a multiple of this, for ever; null = none"
    )
    asynchronous: bool = Field(
        True, description="write in the background: training stands still only while the state is copied to host memory"
    )
    copies: int = Field(
        2, ge=1, description="nodes that have each shard of a sharded job's checkpoint; 2 survive the loss of one disk"
    )
    target: str | None = Field(
        None,
        description="where committed checkpoints are copied to besides: s3://bucket/prefix, or an absolute directory "
        "that outlives the nodes; null = nowhere",
    )
    upload_timeout: float = Field(
        1800,
        gt=0,
        description="seconds that a finished training waits for its last checkpoints to reach target; then the job "
        "ends without them, and says so",
    )
    endpoint_url: str | None = Field(
        None, description="https://host of an S3-compatible store; null = AWS. Credentials come from boto3's chain only"
    )

    job: str | None = Field(
        None,
        min_length=1,
        description="name by which a job knows its checkpoints in the target when all nodes lost theirs; null = it "
        "knows them by its model, data and training settings",
    )
    adopt: bool = Field(
        False,
        description="go on from checkpoints of another job, or of none, if there are none of this job",
    )

    signing_key_file: Path | None = Field(
        None,
        description="file of mode 0600 with 32 random bytes or more, the same on all nodes: checkpoints are signed, "
        "and none is taken that is not; null = none",
    )

    @field_validator("target")
    @classmethod
    def _is_target(cls, value: str | None) -> str | None:
        if value is None or (value.startswith("s3://") and value.removeprefix("s3://").partition("/")[0]):
            return value
        if "://" in value or not Path(value).is_absolute():
            raise ValueError("must be s3://bucket/prefix or an absolute directory")
        return value

    @field_validator("endpoint_url")
    @classmethod
    def _is_endpoint(cls, value: str | None) -> str | None:
        if value is None:
            return None
        parts = urlsplit(value)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("must be http(s)://host[:port]")
        if parts.username is not None:
            raise ValueError("must be without credentials, which boto3 finds in the environment or ~/.aws")
        return value
