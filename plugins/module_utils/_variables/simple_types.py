# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Variables of another kind than their role takes: a play asks them before a role looks at their types.

Ansible turns a text into a list at its commas where a role begins, and hands the text on to the role's tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Optional

from .._printable import printable
from .dictionaries import DICTIONARIES
from .given import is_template, may_be_secret

#: What Ansible takes for a switch.
SWITCHES = frozenset(("y", "yes", "on", "1", "true", "t", "1.0", "n", "no", "off", "0", "false", "f", "0.0"))
#: Switches of playbooks, which no role's specification has.
PLAYBOOK_SWITCHES = (
    "doctor_cards", "doctor_quick", "gaudi_bmc_metrics", "gaudi_metrics_tls", "gaudi_remove_driver",
    "provision_allow_replace",
)  # fmt: skip
#: They have a check of their own.
ELSEWHERE = frozenset({*DICTIONARIES, "trainer_config", "trainer_node_config", "trainer_jobs"})
_SCALARS = (str, int, float)
_WANTED = {
    "bool": "give true or false", "int": "give a whole number", "float": "give a number", "str": "give a text",
    "path": "give a path",
}  # fmt: skip


def simple_faults(
    raw: Mapping[str, Any],
    options: Mapping[str, Mapping[str, Any]],
    origin: Callable[[Any], str],
    encrypted: Callable[[Any], bool],
) -> Iterator[str]:
    """A sentence for each of ``options`` that was given as something of another kind.

    ``raw`` are the variables of a host as they were given: a template is left to Ansible, and so is an empty text.
    """
    for name, value in raw.items():
        kind = "bool" if name in PLAYBOOK_SWITCHES else options.get(name, {}).get("type")
        wanted = None if kind is None or name in ELSEWHERE else _wanted(name, value, kind)
        if wanted is None:
            continue
        where = origin(value)
        said = "a text" if may_be_secret(name, value, value, encrypted) else printable(value, 100)
        yield f"{name}{f' ({where})' if where else ''} is {said}: {wanted}."


def _wanted(name: str, value: Any, kind: str) -> Optional[str]:
    """What is to be done in place of a value; None where it is of the kind, or that cannot be known."""
    if isinstance(value, str) and (is_template(value) or not value.strip()):
        return None
    single, many = isinstance(value, _SCALARS), isinstance(value, (list, tuple))
    if not (single or many or isinstance(value, Mapping)):
        return None
    if kind == "list":
        return None if many else f"""give a list, with -e as in -e '{{"{name}": ["one", "two"]}}'"""
    if kind == "dict":
        right = isinstance(value, Mapping)
        return None if right else f"""give a mapping, with -e as in -e '{{"{name}": {{"key": "value"}}}}'"""
    if single and (not isinstance(value, str) or _fits(value.strip(), kind)):
        return None
    return _WANTED.get(kind)


def _fits(text: str, kind: str) -> bool:
    if kind == "bool":
        return text.lower() in SWITCHES
    if kind not in ("int", "float"):
        return True
    try:
        number = float(text)
        return kind == "float" or number == int(number)
    except (ValueError, OverflowError):
        return False
