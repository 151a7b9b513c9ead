# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Values of variables by their kind, as Ansible's own filters read them, and what is known of other hosts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Optional

from ansible.module_utils.parsing.convert_bool import boolean

from .._kinds import exact
from .._refusal import Refusal
from .model import Values

_SIZE = re.compile(r"([0-9]{1,9})([MGT])")


def truth(values: Values, name: str) -> bool:
    """Whether a variable is true, be it as text."""
    return bool(boolean(values(name), strict=False))


def facts(values: Values) -> Mapping[str, Any]:
    """The facts of this host."""
    return entries(values("ansible_facts"))


def fact(values: Values, name: str) -> str:
    """A fact that is a text; empty where it is none, or was never asked."""
    return exact(facts(values).get(name)) or ""


def demand_facts(values: Values) -> None:
    """Refuse to decide about a host whose facts nobody gathered: it would look like an old and unknown system."""
    if not facts(values).get("distribution") and not facts(values).get("kernel"):
        raise Refusal(
            f"The facts of {values('inventory_hostname')} were not gathered, which decide what is done there: set "
            "gather_facts to true in the play, and leave the tag always in."
        )


def entries(value: object) -> Mapping[str, Any]:
    """A mapping; an empty one in place of anything else."""
    return value if isinstance(value, Mapping) else {}


def listed(value: object) -> Sequence[Any]:
    """A list; an empty one in place of anything else."""
    return value if isinstance(value, (list, tuple)) else ()


def group(values: Values, name: str) -> Sequence[str]:
    """The hosts of a group."""
    return listed(entries(values("groups")).get(name))


def host(values: Values, name: str) -> Mapping[str, Any]:
    """The variables of another host; none where the inventory does not have it."""
    known = values("hostvars")
    try:
        return entries(known[name]) if name else {}
    except (KeyError, TypeError):
        return {}


def part(value: object, *names: str) -> Any:
    """What stands in a mapping behind these names; None where there is nothing."""
    for name in names:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def size_in_bytes(text: object) -> Optional[int]:
    """Bytes of a size such as 500G or 2T; None for what is none."""
    found = _SIZE.fullmatch(str(text))
    return int(found[1]) * 1024 ** (2 + "MGT".index(found[2])) if found else None


def merged(*given: Mapping[str, Any]) -> dict[str, Any]:
    """One mapping of several, the later before the earlier, also within those that they have in common."""
    found: dict[str, Any] = {}
    for each in given:
        for name, value in each.items():
            old = found.get(name)
            both = isinstance(old, Mapping) and isinstance(value, Mapping)
            found[name] = merged(old, value) if both and old is not None else value
    return found
