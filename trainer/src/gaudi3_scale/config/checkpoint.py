"""What survives a kill."""

from __future__ import annotations

from pydantic import Field

from gaudi3_scale.config.section import Section


class CheckpointConfig(Section):
    """What survives a kill."""

    every: int = Field(25, ge=1, description="steps between checkpoints; a kill loses at most these")
    keep: int = Field(2, ge=1, description="committed checkpoints kept per node; 2 survive a damaged newest one")
