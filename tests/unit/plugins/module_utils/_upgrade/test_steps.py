"""The steps of a node's way, and what a look at the node shows of each."""

from __future__ import annotations

from typing import Any

import pytest
from upgrade_fleet import FIRMWARE, NEW, flashed

from ansible_collections.gaudi3.scale.plugins.module_utils._upgrade import steps

WANTED: dict[str, Any] = {"release": NEW, "firmware": FIRMWARE, "packages": {"a": NEW}, "exact": False}


@pytest.mark.parametrize(
    ("step", "look", "done"),
    [
        ("fence", {"fenced": True}, True),
        ("fence", {"fenced": True, "jobs": ["a"]}, False),
        ("fence", {"fenced": False}, False),
        ("unfence", {"fenced": False}, None),
        ("unfence", {"fenced": True}, False),
        ("packages", {"packages": {"a": NEW, "b": "1"}}, True),
        ("packages", {"packages": {"b": NEW}}, False),
        ("driver", {"driver": "1.23.0-2eae87a"}, True),
        ("driver", {"driver": ""}, False),
        ("pytorch", {"plugin": "1.23.0.695"}, True),
        ("firmware 0000:19:00.0", {"firmware": flashed("1.23.0")}, True),
        ("firmware 0000:19:00.0", {"firmware": {}}, False),
        ("health", {}, None),
        ("passport", {}, None),
    ],
)
def test_what_a_look_shows(step: str, look: dict[str, Any], done: bool | None) -> None:
    assert steps.is_done(step, WANTED, look) is done


def test_the_way_back_ends_with_the_very_same_packages_and_holds() -> None:
    wanted = {**WANTED, "exact": True, "held": ["a"]}
    assert steps.is_done("packages", wanted, {"packages": {"a": NEW}, "held": ["a"]}) is True
    assert steps.is_done("packages", wanted, {"packages": {"a": NEW}, "held": []}) is False
    assert steps.is_done("packages", wanted, {"packages": {"a": NEW, "b": NEW}, "held": ["a"]}) is False


def test_the_way_back_is_as_long_as_the_way_that_was_begun() -> None:
    planned = steps.up(["0000:19:00.0"], True)
    assert steps.back(["fence"], planned) == ("health", "passport", "unfence")
    assert steps.back(planned[:3], planned) == ("packages", "driver", "pytorch", "health", "passport", "unfence")
    assert steps.back(planned[:4], planned) is None, "no firmware is flashed back"


def test_a_node_that_may_be_in_service_again_is_taken_out_first() -> None:
    planned = steps.up((), False)
    assert steps.back(planned, planned) == ("fence", "packages", "driver", "health", "passport", "unfence")
    flashed = steps.up(["0000:19:00.0"], False)
    assert steps.back(flashed, flashed) == ("fence",), "it then waits for a person"


def test_each_step_is_said_in_words() -> None:
    said = [steps.said(each, NEW) for each in steps.up(["0000:19:00.0"], True)]
    assert said[1:4] == [
        "bring the package set to 1.23.0-695, and hold it",
        "take the driver out, and load that of 1.23.0-695; no boot",
        "take the driver out, flash the preboot firmware of 0000:19:00.0 alone, load the driver and read it back",
    ]
