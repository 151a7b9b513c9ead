"""A switch or a number that is none is refused before a play asks it, as Ansible takes any word for false."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._variables.simple_types import (
    ELSEWHERE,
    PLAYBOOK_SWITCHES,
    simple_faults,
)
from ansible_collections.gaudi3.scale.plugins.plugin_utils.roles import SPECIFICATIONS

ROOT = Path(__file__).resolve().parents[5]
OPTIONS = {name: option for options in SPECIFICATIONS.values() for name, option in options.items()}


def faults(*encrypted: str, **given: Any) -> list[str]:
    return list(simple_faults(given, OPTIONS, lambda _value: "given with -e", lambda value: value in encrypted))


@pytest.mark.parametrize(
    "name", [*(name for name, each in OPTIONS.items() if each["type"] == "bool"), *PLAYBOOK_SWITCHES]
)
def test_no_switch_takes_a_word_for_false(name: str) -> None:
    assert faults(**{name: "maybe"}) == [f"{name} (given with -e) is maybe: give true or false."]


@pytest.mark.parametrize("name", [name for name, each in OPTIONS.items() if each["type"] == "int"])
def test_no_number_is_a_word(name: str) -> None:
    assert faults(**{name: "ninety"}) == [f"{name} (given with -e) is ninety: give a whole number."]


def of_kind(*kinds: str) -> list[str]:
    return [name for name, each in OPTIONS.items() if each["type"] in kinds and name not in ELSEWHERE]


@pytest.mark.parametrize("name", of_kind("list"))
@pytest.mark.parametrize("given", ["one,two", 5, {"a": 1}], ids=["text", "number", "mapping"])
def test_no_list_is_made_of_a_text(name: str, given: Any) -> None:
    said = f"""give a list, with -e as in -e '{{"{name}": ["one", "two"]}}'."""
    assert [fault.endswith(f": {said}") for fault in faults(**{name: given})] == [True]


@pytest.mark.parametrize("name", of_kind("dict"))
@pytest.mark.parametrize("given", ["a=1", 5, ["a"]], ids=["text", "number", "list"])
def test_no_mapping_is_made_of_a_text(name: str, given: Any) -> None:
    assert ["give a mapping, with -e as in" in fault for fault in faults(**{name: given})] == [True]


@pytest.mark.parametrize("name", of_kind("str", "path", "int", "float", "bool"))
@pytest.mark.parametrize("given", [["a"], {"a": 1}], ids=["list", "mapping"])
def test_no_single_value_is_a_list_or_a_mapping(name: str, given: Any) -> None:
    assert [fault.startswith(f"{name} (given with -e) is ") for fault in faults(**{name: given})] == [True]


def test_the_switches_of_playbooks_are_those_that_they_ask() -> None:
    asked = re.compile(r"\b((?:doctor|gaudi|health|provision)_\w+)(?: \| default\([^)]*\))? \| bool\b")
    texts = [*(ROOT / "playbooks").rglob("*.yml"), *(ROOT / "roles").rglob("*.yml")]
    found = {name for path in texts for name in asked.findall(path.read_text())}
    assert found - set(OPTIONS) <= set(PLAYBOOK_SWITCHES)


def test_what_is_right_or_cannot_be_known_passes() -> None:
    right = ("true", "No", "off", "1", True, 0, None, "", "{{ later }}")
    assert [faults(firewall_enabled=value, doctor_cards=value) for value in right] == [[]] * len(right)
    assert [faults(prometheus_port=value) for value in ("9090", 9090, " 9090", "{{ later }}", "", None)] == [[]] * 6
    assert [faults(trainer_nodes=value) for value in (["a"], ("a",), "{{ later }}", "", None)] == [[]] * 5
    assert [faults(prometheus_budget_alert_ratio=value) for value in ("0.5", 0.5, 1)] == [[]] * 3
    assert faults(synapseai_release=1.22, trainer_cards=["any"]) == []
    assert faults(somebody_elses="maybe", trainer_job_name="maybe") == []


def test_what_a_vault_holds_is_not_shown() -> None:
    assert faults("hunter2", prometheus_port="hunter2") == [
        "prometheus_port (given with -e) is a text: give a whole number."
    ]
