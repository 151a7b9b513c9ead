"""The page of a job's configuration, read from the trainer's own classes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from website.reference.schemas import trainer_config
from website.reference.text import code, document, prose, table, value

TITLE = "Configuration of a job"


def page() -> str:
    """The page."""
    schema = trainer_config()
    sections: list[str] = []
    rows = []
    for key, field in schema["properties"].items():
        inner = section(schema, field)
        if inner is None:
            rows.append(row(key, field, schema))
            continue
        sections += [f"## {key}", f"{prose(sentence(field))}", *keys(schema, inner, f"{key}.")]
    return document(
        f"# {TITLE}",
        "Every key of a job file, which `gaudi3-train fit --config job.yml` reads and `trainer_config` in an inventory "
        "holds, for whoever configures a training. It is made from the trainer's own classes. In a file the sections "
        "are nested; on the command line a key is written with dots: `train.max_steps=100`. `gaudi3-train config` "
        "prints a file with all defaults.",
        "## The job itself",
        table(("key", "takes", "default", "what"), rows),
        *sections,
        "## Next",
        "- [JSON schemas](schemas.md): have your editor complete and check these keys\n"
        "- [Variables of the inventory](variables.md): what surrounds them",
    )


def keys(schema: Mapping[str, Any], inner: Mapping[str, Any], prefix: str) -> list[str]:
    """The table of a section, and those of the sections in it."""
    rows, below = [], []
    for key, field in inner["properties"].items():
        deeper = section(schema, field)
        if deeper is None:
            rows.append(row(prefix + key, field, schema))
            items = section(schema, field.get("items", {}))
            if items is not None:
                below += [f"### Items of {prefix}{key}", *keys(schema, items, "")]
        else:
            below += [f"### {prefix}{key}", prose(sentence(field)), *keys(schema, deeper, f"{prefix}{key}.")]
    return [table(("key", "takes", "default", "what"), rows), *below]


def sentence(field: Mapping[str, Any]) -> str:
    """What a section is, as a sentence."""
    text = str(field.get("description", ""))
    return f"{text[:1].upper()}{text[1:]}." if text else ""


def section(schema: Mapping[str, Any], field: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The keys below a key, where it has some."""
    name = str(field.get("$ref", "")).rpartition("/")[2]
    found: Mapping[str, Any] | None = schema["$defs"].get(name)
    return found if found is not None and "properties" in found else None


def row(key: str, field: Mapping[str, Any], schema: Mapping[str, Any]) -> tuple[str, str, str, str]:
    """A key as a row."""
    default = value(field["default"]) if "default" in field else "required"
    return code(key), takes(field, schema), default, prose(str(field.get("description", "")))


def takes(field: Mapping[str, Any], schema: Mapping[str, Any]) -> str:
    """What values a key takes, in words.

    >>> takes({"type": "integer", "minimum": 1}, {"$defs": {}})
    'whole number, at least 1'
    >>> takes({"anyOf": [{"type": "number", "exclusiveMinimum": 0}, {"type": "null"}]}, {"$defs": {}})
    'number, above 0, or `null`'
    """
    if "$ref" in field:
        return "mapping"
    if "anyOf" in field:
        several = [takes(each, schema) for each in field["anyOf"]]
        return ", or ".join(each for each in dict.fromkeys(several) if each)
    if "enum" in field or "const" in field:
        return ", ".join(code(str(each)) for each in field.get("enum", [field.get("const")]))
    kind = field.get("type")
    if kind == "array":
        of = takes(field["items"], schema) if field.get("items") else ""
        count = (
            f" of {field['minItems']}"
            if field.get("minItems") and field.get("minItems") == field.get("maxItems")
            else ""
        )
        return f"list{count}" + (f" of: {of}" if of and of != "mapping" else " of mappings" if of else "")
    names = {
        "integer": "whole number",
        "number": "number",
        "boolean": "`true`, `false`",
        "string": "text",
        "null": "`null`",
        "object": "mapping",
    }
    bounds = {"minimum": "at least", "maximum": "at most", "exclusiveMinimum": "above", "exclusiveMaximum": "below"}
    if field.get("format") == "date":
        return "date"
    return ", ".join(
        [names.get(str(kind), "any"), *(f"{text} {field[name]:g}" for name, text in bounds.items() if name in field)]
    )
