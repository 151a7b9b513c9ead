# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""What a site's run needs of its controller and of the inventory, before a host is asked."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .._printable import few, printable

#: Passwords and certificates are made on the controller where a host collects metrics.
SECRETS = ("bcrypt", "cryptography")
#: The trainer's wheel is built on the controller where no built one is given.
WHEEL = ("hatchling",)
#: Variables that choose the hosts of a play, for which Ansible reads no host's variables.
OF_ONE_RUN = ("gaudi_remove", "gaudi_restore_host", "upgrade_plan")
_SERIAL = re.compile("[1-9][0-9]*%?")


def head_problem(head: Sequence[str], gaudi: Sequence[str]) -> str:
    """Why training processes have no node to meet on; empty where they have."""
    if len(head) == 1 and head[0] in gaudi:
        return ""
    return (
        f"Group gaudi_head has {' and '.join(head) or 'no host'}: name exactly one node of group gaudi there, the node "
        "where training processes meet."
    )


def serial_problem(given: Mapping[str, object], nodes: Sequence[str]) -> str:
    """Why nodes cannot be taken in parts, of whom ``given`` has the value where they have one.

    Ansible would end the run with a trace when it comes there, and takes one value for all nodes.
    """
    for node, value in given.items():
        if value is ...:
            return (
                f"gaudi_serial cannot be evaluated on {printable(node)} before hosts are asked: correct its template, "
                "or define what it names."
            )
        each = value if isinstance(value, (list, tuple)) else [value]
        if not each or not all(isinstance(one, (int, str)) and _SERIAL.fullmatch(str(one)) for one in each):
            return (
                f"gaudi_serial is {printable(value, 60)}: give how many nodes are taken at a time, as a number such as "
                "1, a percentage such as 25%, or a list of these."
            )
    by_value: dict[str, list[str]] = {}
    for node in nodes if given else ():
        by_value.setdefault(str(given[node]) if node in given else "not set", []).append(node)
    if len(by_value) < 2:
        return ""
    said = [f"{printable(value, 60)} on {few(hosts, 3)}" for value, hosts in by_value.items()]
    return (
        f"gaudi_serial is {' and '.join(said[:3])}: give all nodes the same, in group_vars/gaudi.yml, or to one run "
        "with -e gaudi_serial=1."
    )


def one_run_problem(name: str, origin: str) -> str:
    """Why a variable that chooses the hosts of a play may not stand in the inventory; ``origin`` may be empty."""
    return (
        f"{name}{f' ({origin})' if origin else ''} is for one run, and the plays whose hosts it chooses do not read "
        f"the inventory: take it out there, and give it to the run that means it, with -e {name}=..."
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
