"""The schema of the teams takes and refuses what the reader of the file does, as far as one key tells it."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal
from ansible_collections.gaudi3.scale.plugins.module_utils._teams import declared
from ansible_collections.gaudi3.scale.plugins.module_utils._teams.schema import schema

USERS: dict[str, Any] = {"users": ["anna"]}
FILES: list[tuple[Any, bool]] = [
    ({"teams": {"vision": USERS}}, True),
    ({"teams": {"v": {**USERS, "quota": {"cards": 16, "jobs": None, "card_hours": declared.MOST // 60}}}}, True),
    ({"teams": {"v": {**USERS, "priority": declared.MOST, "namespace": "ml-speech", "quota": {}}}}, True),
    ({"teams": {"v": {**USERS, "nodes": ["gaudi-1", "10.0.0.2"]}}}, True),
    ({"teams": {"v": {**USERS, "nodes": []}}}, False),
    ({"teams": {"v": {**USERS, "nodes": "gaudi-1"}}}, False),
    ({"teams": {"v": {**USERS, "nodes": ["ALL"]}}}, False),
    ({"teams": {"v": {**USERS, "nodes": ["a", "a"]}}}, False),
    ({"teams": {"v": {**USERS, "nodes": ["a, ALL"]}}}, False),
    ({"teams": {"v": {**USERS, "partition": "night_2.a"}}}, True),
    *(({"teams": {"v": {**USERS, "partition": each}}}, False) for each in ("", "Default", "all", "a b", "a-", 7, None)),
    ({}, False),
    ([], False),
    ({"teams": {}}, False),
    ({"teams": {"Vision": USERS}}, False),
    ({"teams": {"a-b": USERS}}, False),
    ({"teams": {"root": USERS}}, False),
    ({"teams": {"v" * 31: USERS}}, False),
    ({"teams": {"v": USERS}, "team": {}}, False),
    ({"teams": {"v": {}}}, False),
    ({"teams": {"v": {"users": []}}}, False),
    ({"teams": {"v": {"users": ["root"]}}}, False),
    ({"teams": {"v": {"users": ["Anna"]}}}, False),
    ({"teams": {"v": {"users": ["anna", "anna"]}}}, False),
    ({"teams": {"v": {**USERS, "qouta": {}}}}, False),
    ({"teams": {"v": {**USERS, "quota": {"card": 1}}}}, False),
    ({"teams": {"v": {**USERS, "quota": {"cards": -1}}}}, False),
    ({"teams": {"v": {**USERS, "quota": {"cards": True}}}}, False),
    ({"teams": {"v": {**USERS, "quota": {"cards": "8"}}}}, False),
    ({"teams": {"v": {**USERS, "quota": {"card_hours": declared.MOST // 60 + 1}}}}, False),
    ({"teams": {"v": {**USERS, "priority": None}}}, False),
    ({"teams": {"v": {**USERS, "namespace": "a_b"}}}, False),
]


@pytest.mark.parametrize(("file", "right"), FILES)
def test_the_schema_and_the_reader_agree(file: Any, right: bool) -> None:
    assert jsonschema.Draft202012Validator(schema()).is_valid(file) is right
    if right:
        assert declared.teams(file)
    else:
        with pytest.raises(Refusal):
            declared.teams(file)


def test_every_key_of_the_reader_is_described() -> None:
    team = schema()["properties"]["teams"]["additionalProperties"]["properties"]
    assert set(team) == set(declared.TeamEntry._fields) - {"name"}
    assert set(team["quota"]["properties"]) == set(declared.Quota._fields)
    assert all(each["description"] for each in [*team.values(), *team["quota"]["properties"].values()])
