"""When a node of Slurm is drained, and when it is given back."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._slurm import draining
from ansible_collections.gaudi3.scale.plugins.module_utils._slurm.draining import NodeState, Step, reason_of, step

SHOWN = """NodeName=n1 Arch=x86_64 CoresPerSocket=1
   State=IDLE+DRAIN ThreadsPerCore=1 TmpDisk=0 Weight=1 Owner=N/A MCS_label=N/A
   Reason=gaudi3.scale: accel3 is lost [root@2026-11-29T04:31:12]
"""
IDLE = NodeState(frozenset({"IDLE"}))
OURS = NodeState(frozenset({"IDLE", "DRAIN"}), "gaudi3.scale: accel3 is lost")
OTHER = NodeState(frozenset({"MIXED", "DRAIN"}), "Prolog error")
FENCE = {"reason": "accel3 is lost"}


def test_the_state_of_a_node_as_scontrol_shows_it() -> None:
    assert NodeState.of(SHOWN) == OURS
    assert NodeState.of("   State=DOWN*+DRAIN ThreadsPerCore=1").states == {"DOWN", "DRAIN"}
    assert NodeState.of("State=IDLE+DRAIN+INVALID_REG X=1").is_drained
    assert NodeState.of("slurm_load_node error: Unable to contact slurm controller") == NodeState()


@pytest.mark.parametrize(
    ("state", "fence", "found", "drained", "nodes", "expected"),
    [
        (IDLE, FENCE, None, 0, 4, Step("drain", "gaudi3.scale: accel3 is lost")),
        (IDLE, FENCE, None, 4, 4, Step("drain", "gaudi3.scale: accel3 is lost")),  # of a fence no check is in doubt
        (IDLE, {}, None, 0, 4, Step("drain", "gaudi3.scale: it is out of service")),
        (IDLE, None, "hot", 0, 4, Step("drain", "gaudi3.scale: hot")),
        (IDLE, None, "hot", 1, 4, Step("nothing", "1 of 4 nodes are drained already, and this one stays: hot")),
        (IDLE, None, "hot", 1, 8, Step("drain", "gaudi3.scale: hot")),
        (IDLE, None, "", 0, 4, Step("nothing")),
        (IDLE, None, None, 0, 4, Step("nothing")),
        (OURS, None, "", 1, 4, Step("resume")),
        (OURS, None, None, 1, 4, Step("nothing")),  # nothing readable gives nothing back
        (OURS, FENCE, None, 1, 4, Step("nothing")),
        (OURS, None, "hot", 1, 4, Step("drain", "gaudi3.scale: hot")),  # the reason is another one now
        (OTHER, None, "", 0, 4, Step("nothing")),
        (OTHER, FENCE, None, 0, 4, Step("nothing")),
    ],
)
def test_what_follows(
    state: NodeState, fence: dict[str, Any] | None, found: str | None, drained: int, nodes: int, expected: Step
) -> None:
    assert step(state, fence, found, drained, nodes) == expected


@pytest.mark.parametrize("found", ["", "hot", None])
@pytest.mark.parametrize("fence", [FENCE, None])
@pytest.mark.parametrize("state", [IDLE, OURS, OTHER])
def test_fence_and_drain_settle_with_one_step(
    state: NodeState, fence: dict[str, Any] | None, found: str | None
) -> None:
    """What was done is what the next check finds in order: neither a loop nor a node that goes to and fro."""
    first = step(state, fence, found, 0, 4)
    after = {
        "drain": NodeState(state.states | {"DRAIN"}, first.reason),
        "resume": IDLE,
        "nothing": state,
    }[first.action]
    again = step(after, fence, found, 0, 4)
    assert (again.action, again.reason) in {("nothing", ""), ("drain", first.reason)}
    assert after.is_drained or fence is None, "what is fenced takes no job"
    assert (after == OTHER) == (state == OTHER), "nobody else's drain is changed"


def test_a_reason_is_one_line_of_bounded_length() -> None:
    said = step(IDLE, {"reason": 'a "b"\nState=RESUME \x1b[2J' + "x" * 500}, None, 0, 1).reason
    assert said.startswith("gaudi3.scale: a 'b'\\nState=RESUME \\x1b[2J") and len(said) == draining.LONGEST


@pytest.mark.parametrize(
    ("report", "expected"),
    [
        ({"drains": False}, ""),
        ({"drains": True, "verdicts": [{"drains": True, "message": "a"}, {"drains": False, "message": "b"}]}, "a"),
        ({"drains": True, "verdicts": []}, None),
        ({"drains": True, "verdicts": "all"}, None),
        ({"drains": "yes"}, None),
        ({}, None),
        ([], None),
        (None, None),
        ({"drains": True, "verdicts": [{"drains": True, "message": 3}]}, None),
    ],
)
def test_only_a_report_that_can_be_read_decides(report: Any, expected: str | None) -> None:
    assert reason_of(report) == expected
