# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""The variables of all roles, as their specifications and defaults have them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

try:
    from ansible.template import trust_as_template
except ImportError:
    trust_as_template = None

LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def trusted(value: Any) -> Any:
    """A value of this collection whose texts are marked as templates where Ansible (2.19 and newer) asks for that."""
    if isinstance(value, dict):
        return {name: trusted(each) for name, each in value.items()}
    if isinstance(value, list):
        return [trusted(each) for each in value]
    return trust_as_template(value) if isinstance(value, str) and trust_as_template else value


def specifications(roles: Path) -> dict[str, dict[str, Any]]:
    """The options of each role's main entry point. Their defaults are left out, as these are templates of the role."""
    found = {}
    for path in sorted(roles.glob("*/meta/argument_specs.yml")):
        main = yaml.load(path.read_text(encoding="utf-8"), Loader=LOADER)["argument_specs"].get("main", {})
        options = main.get("options", {}).items()
        found[path.parent.parent.name] = {
            name: {key: value for key, value in option.items() if key not in ("default", "description")}
            for name, option in options
        }
    return found


def defaults(roles: Path) -> dict[str, Any]:
    """The default of each variable of all roles, its template as text."""
    found: dict[str, Any] = {}
    for path in sorted(roles.glob("*/defaults/main.yml")):
        found.update(yaml.load(path.read_text(encoding="utf-8"), Loader=LOADER) or {})
    return found


# Read when Ansible loads a plugin that asks for it, once for a run: tasks run in processes that inherit it.
ROLES = Path(__file__).resolve().parents[2] / "roles"
SPECIFICATIONS = specifications(ROLES)
DEFAULTS = defaults(ROLES)
