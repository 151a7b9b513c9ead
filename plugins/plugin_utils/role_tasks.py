# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""The options of roles' tasks, and the variables of roles, so that a host can be asked what a task would do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from .roles import DEFAULTS, LOADER, ROLES, SPECIFICATIONS, trusted

OURS = "gaudi3.scale."
OTHERS = {"ansible.builtin.user": "account"}
"""Modules of Ansible's own that can be asked, by the part of gaudi_node_look that knows their options."""


def _tasks(entries: Any) -> Iterator[dict[str, Any]]:
    for entry in entries if isinstance(entries, list) else ():
        yield entry
        for part in ("block", "rescue", "always"):
            yield from _tasks(entry.get(part))


def tasks_of(role: str) -> dict[str, tuple[str, dict[str, Any]]]:
    """Module, without the collection's name, and options of each task of a role that can be asked."""
    found: dict[str, tuple[str, dict[str, Any]]] = {}
    for path in sorted((ROLES / role / "tasks").glob("*.yml")):
        for task in _tasks(yaml.load(path.read_text(encoding="utf-8"), Loader=LOADER)):
            module = next((key for key in task if key.startswith(OURS) or key in OTHERS), None)
            if module is not None and isinstance(task[module], dict):
                name = OTHERS.get(module, module.removeprefix(OURS))
                found.setdefault(str(task.get("name")), (name, trusted(task[module])))
    return found


def variables_of(role: str) -> dict[str, Any]:
    """The variables that a role has for itself."""
    path = ROLES / role / "vars" / "main.yml"
    given = yaml.load(path.read_text(encoding="utf-8"), Loader=LOADER) if path.exists() else None
    return {**trusted(given or {})}


# Read once in a run, when Ansible loads the plugin that asks for it: tasks run in processes that inherit it.
TASKS: Mapping[str, Mapping[str, tuple[str, dict[str, Any]]]] = {role: tasks_of(role) for role in SPECIFICATIONS}
VARIABLES: Mapping[str, Any] = {
    **trusted(DEFAULTS),
    **{name: value for role in SPECIFICATIONS for name, value in variables_of(role).items()},
    # From any role, as the roles' templates name the one that they mean.
    "role_path": str(ROLES / "synapseai"),
}
