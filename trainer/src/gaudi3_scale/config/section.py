"""What every part of the configuration is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, get_args

from pydantic import BaseModel, ConfigDict, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError


def is_number(annotation: Any) -> bool:
    """Whether a key takes numbers and no true or false, which pydantic would take for 1 and 0."""
    kinds = set(_kinds(annotation))
    return bool(kinds & {int, float}) and bool not in kinds


def _kinds(annotation: Any) -> Iterator[type]:
    """The types that an annotation allows."""
    if isinstance(annotation, type):
        yield annotation
    for each in get_args(annotation):
        yield from _kinds(each)


class Section(BaseModel):
    """A part of the configuration; a key it does not know is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    FOLLOWS: ClassVar[frozenset[str]] = frozenset()
    """Keys whose default follows from others, so that one who gives the default says something. `gaudi3-train config`
    prints them as comments: a file that it made means what no file means, whatever is changed in it."""

    @field_validator("*", mode="before")
    @classmethod
    def _no_switch(cls, value: Any, info: ValidationInfo) -> Any:
        """Refuse true and false for a number."""
        if isinstance(value, bool) and is_number(cls.model_fields[info.field_name or ""].annotation):
            raise PydanticCustomError("number_type", "Input should be a number, not true or false")
        return value

    def gives(self, name: str) -> bool:
        """Was this key given, one of `FOLLOWS`?"""
        if name not in self.FOLLOWS:
            raise ValueError(f"{name} counts where it is given: add it to {type(self).__name__}.FOLLOWS")
        return name in self.model_fields_set
