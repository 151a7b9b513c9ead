"""What survives a kill."""

from __future__ import annotations

from pydantic import Field

from gaudi3_scale.config.section import Section


class CheckpointConfig(Section):
    """What survives a kill."""

    every: int = Field(25, ge=1, description="steps between checkpoints; a kill loses at most these")
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
