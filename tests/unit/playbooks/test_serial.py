"""How many nodes change their driver at a time, which Ansible asks where no host's variables are."""

from __future__ import annotations

from typing import Any

import pytest

from .jinja import evaluate, load

ALL = ("100%", 100)


def said(**variables: Any) -> tuple[Any, Any]:
    (play,) = (each for each in load("playbooks/drivers.yml") if "serial" in each)
    given = {**play["vars"], **variables}
    return evaluate(play["serial"], **given), evaluate(play["max_fail_percentage"], **given)


def inventory(**variables: Any) -> dict[str, Any]:
    return {"groups": {"gaudi": ["a", "b"]}, "hostvars": {"a": variables, "b": {}}}


@pytest.mark.parametrize(
    ("variables", "found"),
    [
        (inventory(), ALL),
        (inventory(gaudi_serial=1), (1, 0)),
        (inventory(gaudi_serial=["1", "50%"]), (["1", "50%"], 0)),
        # Of the command line, or of whoever imports the playbook.
        ({**inventory(gaudi_serial=1), "gaudi_serial": 2}, (2, 0)),
        # Where plays are listed, or their syntax is checked, no host is known, and maybe no group.
        ({"groups": {"gaudi": ["a"]}}, ALL),
        ({"groups": {"all": []}}, ALL),
        # Where nothing of the inventory is a node, the play has no hosts.
        ({"groups": {"all": ["c"]}, "hostvars": {"c": {}}}, ALL),
        ({"groups": {"gaudi": []}, "hostvars": {}}, ALL),
    ],
)
def test_this_number_at_a_time(variables: dict[str, Any], found: tuple[Any, Any]) -> None:
    assert said(**variables) == found
