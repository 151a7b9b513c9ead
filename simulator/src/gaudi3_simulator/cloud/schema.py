"""A provider's schema as data: what ``tests/terraform/support/go_schema.py`` read in its public source."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
Attributes = dict[str, dict[str, Any]]
Path_ = list[Any]


class Unknown:
    """A value that is known after apply."""

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN = Unknown()


def load(provider: str, version: str) -> dict[str, Any]:
    """The facts of a release; every type gets ``id``, as the provider's toolkit gives it."""
    facts: dict[str, Any] = json.loads((HERE / "schemas" / f"{provider}-{version}.json").read_text())
    for kind in ("resource", "data"):
        for entry in facts[kind].values():
            attributes = entry["attributes"]
            attributes["id"] = {**attributes.get("id", {"optional": True}), "type": "string", "computed": True}
    return facts


def is_block(attribute: dict[str, Any]) -> bool:
    """Whether it is written as a block. Computed-only lists of objects are attributes."""
    only_computed = attribute.get("computed") and not attribute.get("optional")
    return "block" in attribute and attribute.get("mode") != "attribute" and not only_computed


def has_value(value: Any) -> bool:
    """Whether anything was given: the toolkit takes null, "", 0, false and [] for nothing."""
    return value is UNKNOWN or bool(value)


def problems(attributes: Attributes, config: dict[str, Any], path: Path_) -> Iterator[tuple[str, Path_]]:
    """What the provider refuses of a configuration before it plans: sentence and place."""
    top = not path
    for name, each in attributes.items():
        value, here = config.get(name), [*path, name]
        if value is None or value == []:
            if top and each.get("exactlyone") and not any(has_value(config.get(one)) for one in each["exactlyone"]):
                yield f"one of `{','.join(each['exactlyone'])}` must be specified", here
            continue
        if value is UNKNOWN:
            continue
        if top:
            for other in each.get("conflicts", ()):
                if "." not in other and has_value(config.get(other)) and has_value(value):
                    yield f'"{name}": conflicts with {other}', here
        if is_block(each):
            for index, row in enumerate(value):
                if isinstance(row, dict):
                    yield from problems(each["block"], row, [*here, index])
            continue
        yield from wrong(name, each, value, here)


def wrong(name: str, attribute: dict[str, Any], value: Any, here: Path_) -> Iterator[tuple[str, Path_]]:
    """What is wrong with one value: enums, ranges and patterns that the source has as literals."""
    if attribute.get("enum") and value not in attribute["enum"]:
        yield f"expected {name} to be one of {attribute['enum']}, got {value}", here
    low, high = attribute.get("range", [None, None])
    if isinstance(value, (int, float)) and not ((low is None or value >= low) and (high is None or value <= high)):
        yield f"expected {name} to be in the range ({low} - {high}), got {value}", here
    if isinstance(value, str) and attribute.get("matches") and not attribute.get("enum"):
        try:
            bad = re.search(attribute["matches"], value) is None
        except re.error:
            bad = False  # Go's own syntax: not checked.
        if bad:
            yield f'"{name}" ({value!r}) must match a regular expression {attribute["matches"]}', here
