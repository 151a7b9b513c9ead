"""The variables that roles and playbooks specify."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import yaml

from website.reference.text import ROOT


@dataclass(frozen=True)
class Role:
    """A role, with the variables of its own."""

    name: str
    what: str
    options: Mapping[str, Mapping[str, Any]]


@cache
def roles() -> tuple[Role, ...]:
    """All roles that people set variables of, by name; a variable of several entry points once."""
    return tuple(_roles())


def _roles() -> Iterator[Role]:
    for path in sorted((ROOT / "roles").glob("*/meta/argument_specs.yml")):
        name = path.parts[-3]
        entries = yaml.safe_load(path.read_text(encoding="utf-8"))["argument_specs"]
        if "main" not in entries:  # a part of other roles, which hand its variables over
            continue
        options = {key: option for entry in entries.values() for key, option in (entry.get("options") or {}).items()}
        shared = {key: option for key, option in options.items() if not key.startswith(f"{name}_")}
        own = {key: option for key, option in options.items() if key not in shared}
        yield Role(name, str(entries["main"]["short_description"]), own | shared)


def kind(option: Mapping[str, Any]) -> str:
    """The type of an option in words.

    >>> kind({"type": "list", "elements": "str"})
    'list of str'
    """
    found = str(option.get("type", "str"))
    return f"{found} of {option['elements']}" if "elements" in option else found


def variables() -> dict[str, Mapping[str, Any]]:
    """Every variable of every role; of one that several roles have, what the first says of it."""
    found: dict[str, Mapping[str, Any]] = {}
    for role in roles():
        for name, option in role.options.items():
            found.setdefault(name, option)
    return found
