# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Switches and numbers that are none: a play asks them before a role looks at the types of its variables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from .._printable import printable
from .given import is_template, may_be_secret

#: What Ansible takes for a switch.
SWITCHES = frozenset(("y", "yes", "on", "1", "true", "t", "1.0", "n", "no", "off", "0", "false", "f", "0.0"))
#: Switches of playbooks, which no role's specification has.
PLAYBOOK_SWITCHES = (
    "doctor_cards", "doctor_quick", "gaudi_metrics_tls", "gaudi_remove_data", "gaudi_remove_driver",
    "provision_allow_replace",
)  # fmt: skip


def simple_faults(
    raw: Mapping[str, Any],
    options: Mapping[str, Mapping[str, Any]],
    origin: Callable[[Any], str],
    encrypted: Callable[[Any], bool],
) -> Iterator[str]:
    """A sentence for each switch or whole number of ``options`` that was given as something else.

    ``raw`` are the variables of a host as they were given: a template is left to Ansible, and so is an empty text.
    """
    for name, value in raw.items():
        kind = "bool" if name in PLAYBOOK_SWITCHES else options.get(name, {}).get("type")
        if kind not in ("bool", "int") or not isinstance(value, str) or not value.strip():
            continue
        if is_template(value) or _fits(value.strip(), kind):
            continue
        where = origin(value)
        do = "give true or false" if kind == "bool" else "give a whole number"
        said = "a text" if may_be_secret(name, value, value, encrypted) else printable(value, 100)
        yield f"{name}{f' ({where})' if where else ''} is {said}: {do}."


def _fits(text: str, kind: str) -> bool:
    if kind == "bool":
        return text.lower() in SWITCHES
    try:
        return float(text) == int(float(text))
    except (ValueError, OverflowError):
        return False
