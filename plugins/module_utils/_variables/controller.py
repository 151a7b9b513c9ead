# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""What a site's run needs of its controller and of the inventory, before a host is asked."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .._printable import printable

#: Passwords and certificates are made on the controller where a host collects metrics.
SECRETS = ("bcrypt", "cryptography")
#: The trainer's wheel is built on the controller where no built one is given.
WHEEL = ("hatchling",)
_SERIAL = re.compile("[1-9][0-9]*%?")


def head_problem(head: Sequence[str], gaudi: Sequence[str]) -> str:
    """Why training processes have no node to meet on; empty where they have."""
    if len(head) == 1 and head[0] in gaudi:
        return ""
    return (
        f"Group gaudi_head has {' and '.join(head) or 'no host'}: name exactly one node of group gaudi there, the node "
        "where training processes meet."
    )


def serial_problem(value: object) -> str:
    """Why the nodes of a phase cannot be taken in parts; Ansible would end the run with a trace when it comes there."""
    found = value if isinstance(value, (list, tuple)) else [value]
    if value is ... or all(isinstance(each, (int, str)) and _SERIAL.fullmatch(str(each)) for each in found):
        return ""
    return (
        f"gaudi_serial is {printable(value, 60)}: give how many nodes are taken at a time, as a number such as 1, a "
        "percentage such as 25%, or a list of these."
    )


def packages_needed(monitors: bool, job: Mapping[str, Any], python: str) -> dict[str, tuple[str, ...]]:
    """The packages that each Python of the controller has to have, by its path; ``job`` are a node's variables."""
    found: dict[str, tuple[str, ...]] = {python: SECRETS} if monitors else {}
    if not job.get("trainer_wheel") and job.get("trainer_state") != "absent":
        builder = str(job.get("trainer_build_python") or python)
        found[builder] = (*found.get(builder, ()), *WHEEL)
    return found


def packages_problem(
    needed: Mapping[str, Sequence[str]], lacking: Callable[[str, Sequence[str]], Sequence[str]]
) -> str:
    """Why roles cannot work on the controller; ``lacking`` says which packages a Python does not have."""
    found = {python: list(lacking(python, packages)) for python, packages in needed.items()}
    python = next((each for each, names in found.items() if names), None)
    if python is None:
        return ""
    names = [name for each in found.values() for name in each]
    return (
        f"The controller's Python lacks {', '.join(names)}, which passwords and the trainer's wheel need: run "
        f"'{python} -m pip install {' '.join(names)}'."
    )
