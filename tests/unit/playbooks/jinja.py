"""Templates and expressions of playbooks and roles, evaluated by Ansible's own engine in this process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar, trust_as_template

ROOT = Path(__file__).parents[3]


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
