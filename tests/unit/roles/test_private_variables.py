"""What a role decides for itself is Python: its own variables hold few templates, and nobody else reads them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[3]
NAMES = sorted(path.name for path in (ROOT / "roles").iterdir() if path.is_dir())
#: Variables of all roles' vars/main.yml whose values have a template in them. It only falls.
MOST = 35
#: The same of roles whose decisions are functions in plugins/module_utils/_plan/.
DECIDED = {
    "fabric": 1,
    "firewall": 2,
    "hpu_exporter": 3,
    "node_exporter": 1,
    "node_health": 2,
    "pytorch": 3,
    "synapseai": 1,
    "trainer": 7,
    "tuning": 3,
}
_TEMPLATE = re.compile(r"\{\{|\{%")
_PRIVATE = re.compile(rf"(?<!\w)_(?:{'|'.join(NAMES)})_?[a-z_]*\b")


def has_template(value: Any) -> bool:
    """Whether Ansible would evaluate a value, or a part of it."""
    if isinstance(value, dict):
        return any(map(has_template, value.values()))
    if isinstance(value, list):
        return any(map(has_template, value))
    return isinstance(value, str) and bool(_TEMPLATE.search(value))


def templated(role: str) -> list[str]:
    """The private variables of a role that are templates."""
    path = ROOT / "roles" / role / "vars/main.yml"
    given = yaml.safe_load(path.read_text(encoding="utf-8")) if path.exists() else {}
    return [name for name, value in (given or {}).items() if has_template(value)]


def private(text: str) -> list[str]:
    """The private variables of roles that a playbook names."""
    without_comments = re.sub(r"^\s*#.*$", "", text, flags=re.MULTILINE)
    return sorted(set(_PRIVATE.findall(without_comments)))


def test_few_private_variables_are_templates() -> None:
    found = {role: templated(role) for role in NAMES}
    assert sum(map(len, found.values())) <= MOST, found


@pytest.mark.parametrize("role", DECIDED)
def test_what_a_role_decides_is_python(role: str) -> None:
    assert len(templated(role)) <= DECIDED[role]


@pytest.mark.parametrize(
    ("value", "found"),
    [("{{ x }}", True), ({"a": [{"b": "{% set x = 1 %}"}]}, True), ("a { b", False), ([1, None, {"a": "b"}], False)],
)
def test_a_template_is_found_wherever_it_is(value: Any, found: bool) -> None:
    assert has_template(value) is found


@pytest.mark.parametrize("path", sorted([*(ROOT / "playbooks").rglob("*.*"), ROOT / "site.yml"]), ids=lambda p: p.name)
def test_no_playbook_reads_a_private_variable_of_a_role(path: Path) -> None:
    assert private(path.read_text(encoding="utf-8")) == [], "ask the role, or lookup gaudi3.scale.plan"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("when: _fabric_builds", ["_fabric_builds"]),
        ("  vars:\n    _trainer_asker: x", ["_trainer_asker"]),
        ("when: lookup('gaudi3.scale.holds', '_tuning') and hostvars[x]._trainer_y", ["_trainer_y", "_tuning"]),
        ("# _trainer_done\nwhen: _gaudi_plan.more == [] and trainer_jobs | length", []),
        ("tasks_from: preflight_trainer_list", []),
    ],
)
def test_a_private_variable_is_found(text: str, found: list[str]) -> None:
    assert private(text) == found
