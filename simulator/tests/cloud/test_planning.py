"""What the stand-in provider plans: defaults, unknown values, replacements, and what it refuses before."""

from __future__ import annotations

from typing import Any

import pytest

from gaudi3_simulator.cloud.planning import complete, plan
from gaudi3_simulator.cloud.schema import UNKNOWN, load, problems

ATTRIBUTES: dict[str, dict[str, Any]] = {
    "name": {"type": "string", "required": True},
    "zone": {"type": "string", "optional": True, "forcenew": True},
    "size": {"type": "number", "optional": True, "default": 3},
    "address": {"type": "string", "computed": True},
    "keys": {"type": "set", "optional": True, "once": True, "elem": "string"},
    "disk": {"type": "list", "optional": True, "computed": True, "block": {"gb": {"type": "number", "optional": True}}},
}


def planned(config: dict[str, Any], prior: dict[str, Any] | None = None) -> tuple[dict[str, Any], list[list[Any]]]:
    replace: list[list[Any]] = []
    proposed = {name: config.get(name, (prior or {}).get(name)) for name in ATTRIBUTES}
    return plan(ATTRIBUTES, config, prior, proposed, [], replace), replace


def test_what_is_made_has_defaults_and_values_that_come_later() -> None:
    made, replace = planned({"name": "a"})
    assert made == {"name": "a", "zone": None, "size": 3, "address": UNKNOWN, "keys": None, "disk": UNKNOWN}
    assert replace == []


def test_nothing_is_planned_of_what_stays_the_same() -> None:
    prior = {"name": "a", "zone": None, "size": 3, "address": "10.0.0.4", "keys": ["k"], "disk": [{"gb": 1}]}
    assert planned({"name": "a", "keys": ["k"]}, prior) == (prior, [])
    # Given at creation only: another key changes nothing.
    assert planned({"name": "a", "keys": ["other"]}, prior) == (prior, [])


def test_another_zone_replaces_and_another_name_does_not() -> None:
    prior = {"name": "a", "zone": "z1", "size": 3, "address": "x", "keys": None, "disk": []}
    assert planned({"name": "b", "zone": "z1"}, prior)[1] == []
    assert planned({"name": "a", "zone": "z2"}, prior)[1] == [["zone"]]


def test_a_state_has_exactly_the_keys_of_the_schema() -> None:
    values = {"name": "a", "disk": [{"gb": UNKNOWN, "other": 1}], "more": 2, "address": UNKNOWN}
    assert complete(ATTRIBUTES, values) == {
        "name": "a", "zone": None, "size": None, "address": None, "keys": None, "disk": [{"gb": None}],
    }  # fmt: skip


def test_an_empty_list_conflicts_with_nothing() -> None:
    facts = load("ibm", "2.5.0")["resource"]["ibm_is_instance"]["attributes"]
    config = {
        "name": "a",
        "primary_network_attachment": [{}],
        "primary_network_interface": [],
        "network_interfaces": [],
    }
    assert list(problems(facts, config, [])) == []
    both = {**config, "primary_network_interface": [{}]}
    assert (
        '"primary_network_attachment": conflicts with primary_network_interface',
        ["primary_network_attachment"],
    ) in [*problems(facts, both, [])]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"type": "ecdsa"}, "expected type to be one of ['ed25519', 'rsa'], got ecdsa"),
        ({"name": "-a"}, "\"name\" ('-a') must match a regular expression ^([a-z]|[a-z][-a-z0-9]*[a-z0-9])$"),
        ({}, None),
    ],
)
def test_enums_and_patterns_are_held_against_the_source(values: dict[str, Any], expected: str | None) -> None:
    facts = load("ibm", "2.5.0")["resource"]["ibm_is_ssh_key"]["attributes"]
    found = [text for text, _path in problems(facts, {"name": "a", "public_key": "k", **values}, [])]
    assert found == ([expected] if expected else [])


def test_each_release_has_what_it_first_had() -> None:
    """The lowest release that the module takes, and one that is newer; both were read whole."""
    for version in ("2.1.0", "2.5.0"):
        facts = load("ibm", version)
        assert (facts["version"], facts["unresolved"], facts["licence"]) == (version, [], "MPL-2.0")
        assert "zones" in facts["data"]["ibm_is_instance_profile"]["attributes"]
        assert facts["resource"]["ibm_is_ssh_key"]["attributes"]["type"]["optional"]
        assert facts["resource"]["ibm_cos_bucket"]["attributes"]["force_delete"]["default"] is True
