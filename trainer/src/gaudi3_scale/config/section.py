"""What every part of the configuration is."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """A part of the configuration; a key it does not know is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)
