"""Writes what the collection knows of the trainer's configuration, of the trainer: `python -m tests.job_schema`."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

from pydantic import TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from gaudi3_scale.config import Config
from gaudi3_scale.config.section import Section, has_switch

TABLE = Path(__file__).resolve().parents[1] / "plugins/module_utils/_variables/job_fields.py"
HEAD = '''# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""The keys of the trainer's configuration, with the values that each takes.

Written by ``python -m tests.job_schema`` from the trainer's own classes. A test compares the two.
"""

from __future__ import annotations

from typing import Any

FIELDS: dict[str, dict[str, Any]] = '''
#: Fields that take more than their type says, as a validator of the trainer rewrites what is given.
REWRITTEN = {"model.lora.targets"}
#: JSON schema's names, and the table's.
BOUNDS = {
    "minimum": "least", "maximum": "most", "exclusiveMinimum": "above", "exclusiveMaximum": "below",
    "minLength": "length", "minItems": "length", "pattern": "pattern",
}  # fmt: skip
TYPES = {"integer": "int", "number": "float", "boolean": "bool", "string": "str", "array": "list", "object": "mapping"}


def adapter(field: FieldInfo) -> TypeAdapter[Any]:
    """What validates one field as its class does, the class's own validators left out."""
    kind: Any = field.annotation
    return TypeAdapter(Annotated[kind, *field.metadata] if field.metadata else kind)


def takes(field: FieldInfo, value: Any) -> bool:
    if has_switch(field.annotation, value):
        return False
    try:
        adapter(field).validate_python(value)
    except ValidationError:
        return False
    return True


def entry(schema: dict[str, Any]) -> dict[str, Any]:
    """A field of the table, of a field of JSON schema."""
    if "anyOf" in schema:
        others = [entry(each) for each in schema["anyOf"] if each.get("type") != "null"]
        empty = {"null": True} if len(others) < len(schema["anyOf"]) else {}
        return {**(others[0] if len(others) == 1 else {"type": "one_of", "of": others}), **empty}
    choices = schema.get("enum", [schema["const"]] if "const" in schema else None)
    if choices is not None:
        return {"type": "str", "choices": choices}
    found: dict[str, Any] = {"type": "date" if schema.get("format") == "date" else TYPES[schema["type"]]}
    found.update({ours: schema[theirs] for theirs, ours in BOUNDS.items() if theirs in schema})
    items = schema.get("items") or next(iter(schema.get("prefixItems", ())), None)
    if items and "$ref" not in items:
        found["items"] = entry(items)
    if "maxItems" in schema:
        found["most_items"] = schema["maxItems"]
    return found


def item_section(field: FieldInfo) -> type[Section] | None:
    """The class of a list's items, where these have keys of their own."""
    arguments = [each for each in getattr(field.annotation, "__args__", ()) if isinstance(each, type)]
    return next((each for each in arguments if issubclass(each, Section)), None)


def fields(section: type[Section] = Config, prefix: str = "") -> Iterator[tuple[str, FieldInfo, type[Section]]]:
    """(dotted name, field, its class) of all keys; what is an item of a list is below `NAME[]`."""
    for name, field in section.model_fields.items():
        yield prefix + name, field, section
        inner = field.annotation
        if isinstance(inner, type) and issubclass(inner, Section):
            yield from fields(inner, f"{prefix}{name}.")
        elif (items := item_section(field)) is not None:
            yield from fields(items, f"{prefix}{name}[].")


def table() -> dict[str, dict[str, Any]]:
    """The table, as it has to be."""
    found: dict[str, dict[str, Any]] = {}
    for name, field, _section in fields():
        inner = field.annotation
        if name in REWRITTEN:
            found[name] = {"type": "any"}
        elif isinstance(inner, type) and issubclass(inner, Section):
            found[name] = {"type": "section"}
        else:
            found[name] = entry(adapter(field).json_schema())
            if found[name]["type"] == "int" and takes(field, "auto"):
                found[name]["words"] = ["auto"]
        if field.is_required():
            found[name]["required"] = True
    return found


def main() -> None:
    TABLE.write_text(HEAD + repr(table()) + "\n")
    subprocess.run(["ruff", "format", str(TABLE)], check=True)


if __name__ == "__main__":
    main()
