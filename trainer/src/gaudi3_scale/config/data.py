"""Which data."""

from __future__ import annotations

from pydantic import Field

from gaudi3_scale.config.section import Section


class DataConfig(Section):
    """The bytes to learn."""

    source: str = Field(
        "stdlib",
        min_length=1,
        description="stdlib = the sources of Python's standard library, or the path of a text file or folder",
    )
    validation_fraction: float = Field(
        0.05, gt=0, lt=0.5, description="share of the samples held out; chosen alike for every seed"
    )
    validation_samples: int = Field(
        256, ge=1, description="held-out samples in the loss that is reported when training ends"
    )
