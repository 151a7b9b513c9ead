"""The configuration as a JSON schema, with which editors complete and check job files.

A schema says what one key takes. What several keys have to do with each other is found when the file is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from pydantic import TypeAdapter, ValidationError

from gaudi3_scale.config import Config
from gaudi3_scale.config.section import Section

DRAFT = "https://json-schema.org/draft/2020-12/schema"
REWRITTEN = ("targets",)
"""Keys that take more than their type says, as a validator of their section rewrites what is given."""


def job_schema() -> dict[str, Any]:
    """The schema of a job file.

    >>> job_schema()["$defs"]["TrainConfig"]["properties"]["micro_batch_size"]["anyOf"][1]
    {'const': 'auto'}
    """
    found = schema_of(Config, "Job of gaudi3-train")
    for section in sections(Config):
        properties = found["$defs"].get(section.__name__, found)["properties"]
        for name, field in section.model_fields.items():
            if name in REWRITTEN:
                properties[name] = {key: properties[name][key] for key in ("default", "description")}
            elif properties[name].get("type") == "integer" and takes_auto(field.annotation, field.metadata):
                properties[name] = with_auto(properties[name])
    return found


def schema_of(model: type[Section], title: str) -> dict[str, Any]:
    """The schema of a model, without the titles that repeat its names, and without Python's kinds of text."""
    return {"$schema": DRAFT, "title": title, **_plain(model.model_json_schema())}


def sections(model: type[Section]) -> Iterator[type[Section]]:
    """A model, and all sections in it."""
    yield model
    for field in model.model_fields.values():
        for kind in (field.annotation, *getattr(field.annotation, "__args__", ())):
            if isinstance(kind, type) and issubclass(kind, Section):
                yield from sections(kind)


def takes_auto(annotation: Any, metadata: list[Any]) -> bool:
    """Whether a key takes the word `auto` besides its numbers."""
    kind: Any = Annotated[annotation, *metadata] if metadata else annotation
    try:
        TypeAdapter(kind).validate_python("auto")
    except ValidationError:
        return False
    return True


def with_auto(field: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of a key that also takes `auto`."""
    about = {key: value for key, value in field.items() if key in ("default", "description")}
    rest = {key: value for key, value in field.items() if key not in about}
    return {**about, "anyOf": [rest, {"const": "auto"}]}


def _plain(schema: Any, names: bool = False) -> Any:
    """A schema without titles; with `names`, its keys are names of properties or of definitions."""
    if isinstance(schema, list):
        return [_plain(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {key: value for key, value in schema.items() if names or not _left_out(key, value)}
    return {
        key: value if key == "default" and not names else _plain(value, not names and key in ("properties", "$defs"))
        for key, value in kept.items()
    }


def _left_out(key: str, value: Any) -> bool:
    return (key == "title" and isinstance(value, str)) or (key == "format" and value == "path")
