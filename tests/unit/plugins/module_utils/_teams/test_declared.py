"""The file of the teams: what is read, and the sentence for what is wrong."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal
from ansible_collections.gaudi3.scale.plugins.module_utils._teams.declared import Quota, TeamEntry, teams


def test_a_file_is_read_in_its_order() -> None:
    quota = {"cards": 16, "jobs": 4, "card_hours": 5000}
    given = {"teams": {"vision": {"users": ["anna", "ben"], "quota": quota, "priority": 10}, "b": {"users": ["_c-1"]}}}
    assert teams(given) == (
        TeamEntry("vision", ("anna", "ben"), Quota(16, 4, 5000), 10, "vision"),
        TeamEntry("b", ("_c-1",), Quota(), 0, "b"),
    )


def _one(**team: Any) -> Any:
    return {"teams": {"vision": {"users": ["anna"], **team}}}


def test_a_user_of_a_directory_may_have_a_dot() -> None:
    assert teams({"teams": {"vision": {"users": ["anna.k"]}}})[0].users == ("anna.k",)
    with pytest.raises(Refusal, match=r"the user '\.\.'"):
        teams({"teams": {"vision": {"users": [".."]}}})


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (None, "The file is None: give a mapping with teams."),
        ({"team": {}}, "The file has the unknown key 'team': did you mean teams?"),
        ({"teams": []}, "The file has no teams: give teams: {NAME: {users: [...]}}."),
        ({"teams": {"vision": {}}}, "Team vision has no users: give users as a list of names of Unix users."),
        (_one(qouta={}), "Team vision has the unknown key 'qouta': did you mean quota?"),
        (
            _one(x=1),
            "Team vision has the unknown key 'x': give users, quota, priority, namespace, nodes, partition alone.",
        ),
        (_one(quota={"card": 8}), "The quota of team vision has the unknown key 'card': did you mean cards?"),
        (
            _one(quota={"cards": -1}),
            "Team vision has the quota cards -1: give a whole number from 0 to 4294967293, or leave it out.",
        ),
        (_one(quota={"jobs": True}), "Team vision has the quota jobs True: give a whole number from 0 to 4294967293, "),
        (
            _one(quota={"card_hours": 71582789}),
            "Team vision has the quota card_hours 71582789: take 71582788 at most, ",
        ),
        (_one(priority="high"), "Team vision has the priority 'high': give a whole number from 0 to 4294967293, "),
        (_one(nodes=[]), "Team vision has the nodes []: give names of hosts as a list, or leave it out for all."),
        (
            _one(nodes=["ALL"]),
            "Team vision has the node 'ALL': take lower-case letters, digits, '-' and '.', 63 at most.",
        ),
        (_one(nodes=["a", "a"]), "Node a is twice in team vision: name each node once."),
        (
            _one(partition="ALL"),
            "Team vision has the partition 'ALL': take letters, digits, '-', '_' and '.', 63 at most, and neither ",
        ),
        (_one(partition="a Nodes=b"), "Team vision has the partition 'a Nodes=b': take letters, digits, '-', '_' and "),
        (_one(partition=""), "Team vision has the partition '': take letters, "),
        (
            {"teams": {"a": {"users": ["x"], "partition": "p"}, "p": {"users": ["y"], "nodes": ["n"]}}},
            "The teams a and p have the partition p and not the same nodes: give both the same, or a partition each.",
        ),
        (_one(namespace="a/b"), "Team vision has the namespace 'a/b': take lower-case letters, digits and '-', 63 "),
        (_one(users=["anna", "anna"]), "User anna is twice in team vision: name each user once."),
        (
            {"teams": {"a": {"users": ["anna"]}, "b": {"users": ["anna"]}}},
            "User anna is in the teams a and b: name each user in one team.",
        ),
        (
            {"teams": {"a": {"users": ["x"], "namespace": "b"}, "b": {"users": ["y"]}}},
            "Namespace b is in the teams a and b: give each team a namespace of its own.",
        ),
    ],
)
def test_what_is_wrong_has_a_sentence(given: Any, said: str) -> None:
    with pytest.raises(Refusal) as refused:
        teams(given)
    assert str(refused.value).startswith(said)


@pytest.mark.parametrize("name", ["-rf", "a-b", "../x", "A", "a b", "root", "all", "a\n", 7, ""])
def test_a_team_has_a_plain_name(name: Any) -> None:
    with pytest.raises(Refusal, match="is not a name of a team: take 1 to 30"):
        teams({"teams": {name: {"users": ["anna"]}}})


@pytest.mark.parametrize("user", ["-i", "ALL", "a,b", "%wheel", "#0", "a b", "root", "a\n", 7, "../a", "x" * 33])
def test_a_user_has_a_plain_name(user: Any) -> None:
    with pytest.raises(Refusal, match=r"Team vision has the user .*: take 1 to 32"):
        teams(_one(users=[user]))
