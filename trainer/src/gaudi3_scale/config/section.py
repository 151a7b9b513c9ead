"""What every part of the configuration is."""

from __future__ import annotations

from collections.abc import Iterator
from types import UnionType
from typing import Annotated, Any, ClassVar, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError


def has_switch(annotation: Any, value: Any) -> bool:
    """Whether true or false stands where a key takes numbers, or in its list of them; pydantic takes it for 1 and 0."""
    kinds = list(_kinds(annotation))
    if isinstance(value, bool):
        return bool({int, float} & set(kinds)) and bool not in kinds
    if not isinstance(value, list | tuple):
        return False
    items = [each for kind in kinds if get_origin(kind) in (list, tuple) for each in get_args(kind)]
    return any(has_switch(item, each) for each in value for item in items)


def _kinds(annotation: Any) -> Iterator[Any]:
    """The types of which an annotation allows any, a list's with its items."""
    origin = get_origin(annotation)
    if origin is Annotated:
        yield from _kinds(get_args(annotation)[0])
    elif origin in (Union, UnionType):
        for each in get_args(annotation):
            yield from _kinds(each)
    else:
        yield annotation


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
        if has_switch(cls.model_fields[info.field_name or ""].annotation, value):
            wanted = "be a number" if isinstance(value, bool) else "have numbers"
            raise PydanticCustomError("number_type", f"Input should {wanted}, not true or false")
        return value

    def gives(self, name: str) -> bool:
        """Was this key given, one of `FOLLOWS`?"""
        if name not in self.FOLLOWS:
            raise ValueError(f"{name} counts where it is given: add it to {type(self).__name__}.FOLLOWS")
        return name in self.model_fields_set
