"""Templates and expressions of playbooks and roles, evaluated by Ansible's own engine in this process."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from ansible.parsing.dataloader import DataLoader
from ansible.plugins.loader import init_plugin_loader
from ansible.template import Templar, trust_as_template

ROOT = Path(__file__).parents[3]


def _find_plugins() -> None:
    """Have Ansible find the plugins of the collection, and its own by their whole names.

    Python itself has found the collection where a test imported from it before, and Ansible would look in vain for what
    it notes in the packages that it finds. Modules in them stay as they are.
    """
    for name, package in list(sys.modules.items()):
        if name.partition(".")[0] == "ansible_collections" and getattr(package, "__file__", None) is None:
            del sys.modules[name]
    init_plugin_loader([str(ROOT / "collections")])


_find_plugins()


def load(path: str) -> Any:
    """A YAML file of the collection, whose templates may be evaluated."""
    return DataLoader().load_from_file(str(ROOT / path), trusted_as_template=True)


def evaluate(value: Any, **variables: Any) -> Any:
    """A value with templates in it, with these variables."""
    return Templar(loader=DataLoader(), variables=variables).template(value)


def holds(conditions: list[str], **variables: Any) -> bool:
    """Whether a task's `when`, a list of conditions, is met."""
    templar = Templar(loader=DataLoader(), variables=variables)
    return all(templar.evaluate_conditional(condition) for condition in conditions)


def render(template: str, **variables: Any) -> str:
    """What the lookup `template` makes of a file."""
    templar = Templar(loader=DataLoader(), variables=variables)
    text = trust_as_template((ROOT / template).read_text())
    return str(templar.template(text, overrides={"trim_blocks": True}))
