"""What every part of the configuration is."""

from __future__ import annotations

from typing import ClassVar

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """A part of the configuration; a key it does not know is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    FOLLOWS: ClassVar[frozenset[str]] = frozenset()
    """Keys whose default follows from others, so that one who gives the default says something. `gaudi3-train config`
    prints them as comments: a file that it made means what no file means, whatever is changed in it."""

    def gives(self, name: str) -> bool:
        """Was this key given, one of `FOLLOWS`?"""
        if name not in self.FOLLOWS:
            raise ValueError(f"{name} counts where it is given: add it to {type(self).__name__}.FOLLOWS")
        return name in self.model_fields_set
