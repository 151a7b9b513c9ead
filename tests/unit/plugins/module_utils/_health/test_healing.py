"""The healing loop: its ladder and guards, and what holds for every sequence of observations."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._health.healing import (
    HOLD,
    IN_SERVICE,
    LADDER,
    NOTIFY,
    OUT,
    PERSON,
    REPAIRING,
    RETURN,
    TEST,
    USE_SPARE,
    Decision,
    Done,
    Fleet,
    Policy,
    Released,
    Seen,
    Tested,
    decide,
)

POLICY = Policy(mode="enforce")
NODES = [f"gaudi-{number}" for number in range(1, 21)]
DAY = 86400.0
ACTIONS = ("watch", "configure", "retry", "reset", "reload", "reboot", "isolate", "replace")
Tested.__test__ = False  # type: ignore[attr-defined]  # its name is no test's


def seen(node: str = "gaudi-1", at: float = 1000.0, **more: Any) -> Seen:
    fault = Seen(node, "accel3", "node fault", "reset", "accel3: needs a reset", at)
    return replace(fault, **more)


class Loop:
    """A fleet under observation. Its state goes through a file before each step, as if the controller was restarted."""

    def __init__(self, policy: Policy = POLICY, nodes: list[str] = NODES, spares: tuple[str, ...] = ()) -> None:
        self.fleet = Fleet.of(nodes, list(spares))
        self.policy = policy

    def step(self, observed: Any, now: float) -> list[str]:
        self.fleet = Fleet.from_dict(json.loads(json.dumps(self.fleet.as_dict(), allow_nan=False)))
        self.fleet, decisions = decide(self.fleet, observed, now, self.policy)
        self.last: list[Decision] = decisions
        return [decision.do for decision in decisions]


def test_a_reset_that_helps() -> None:
    loop = Loop(spares=("spare-1",))
    assert loop.step(seen(), 1001) == [USE_SPARE, "reset"]
    assert loop.step(Done("gaudi-1", True), 1030) == [TEST]
    assert loop.step(Tested("gaudi-1", True, 1060), 1061) == [RETURN]
    assert loop.fleet.nodes["gaudi-1"].state == IN_SERVICE
    assert loop.fleet.spares == ["gaudi-1"], "the spare keeps the job"
    assert loop.fleet.history("gaudi-1") == [
        "1001 use a spare: spare-1 takes the place of gaudi-1",
        "1001 reset: accel3: needs a reset",
        "1030 test: reset is done",
        "1061 return: healthy again after: accel3: needs a reset; it is a spare now",
    ]


def test_each_step_that_does_not_help_is_followed_by_the_next() -> None:
    loop = Loop()
    assert loop.step(seen(), 1000) == ["reset"]
    assert loop.step(Done("gaudi-1", False), 1010) == ["reload"]
    assert loop.step(Done("gaudi-1", True), 1020) == [TEST]
    assert loop.step(Tested("gaudi-1", False, 1030, "accel3: still out"), 1031) == ["reboot"]
    assert loop.step(Done("gaudi-1", False), 1040) == ["isolate", PERSON]
    assert loop.fleet.nodes["gaudi-1"].state == OUT
    assert loop.step(seen(at=1050), 1051) == [], "it is out already"
    assert loop.step(Tested("gaudi-1", True, 1060), 1061) == [], "it is a person's now"
    assert loop.step(Released("gaudi-1"), 1070) == [TEST]
    assert loop.step(Tested("gaudi-1", False, 1080), 1081) == ["isolate", PERSON]
    loop.step(Released("gaudi-1"), 1090)
    assert loop.step(Tested("gaudi-1", True, 1100), 1101) == [RETURN]


@pytest.mark.parametrize("action", ["replace", "isolate"])
def test_what_no_step_can_heal_goes_to_a_person(action: str) -> None:
    assert Loop().step(seen(action=action), 1001) == ["isolate", PERSON]


def test_a_stale_verdict_changes_nothing() -> None:
    loop = Loop()
    assert loop.step(seen(at=1000), 1000 + POLICY.stale_s + 1) == []
    loop.step(seen(at=2000), 2000)
    loop.step(Done("gaudi-1", True), 2010)
    loop.step(Tested("gaudi-1", True, 2020), 2021)
    assert loop.step(seen(at=2005), 2030) == [], "read before the remediation ended"


def test_a_test_from_before_the_repair_returns_nothing() -> None:
    loop = Loop()
    loop.step(seen(), 1000)
    loop.step(Done("gaudi-1", True), 1010)
    assert loop.step(Tested("gaudi-1", True, 1005), 1011) == []


def healed(loop: Loop, at: float, node: str = "gaudi-1") -> None:
    assert loop.step(seen(node, at), at)[-1] == "reset"
    loop.step(Done(node, True), at + 1)
    assert loop.step(Tested(node, True, at + 2), at + 2) == [RETURN]


@pytest.mark.parametrize(("days", "first"), [(6.9, "isolate"), (7.1, "reset")])
def test_the_second_remediation_within_seven_days_goes_to_a_person(days: float, first: str) -> None:
    loop = Loop()
    healed(loop, 1000)
    decided = loop.step(seen(at=1000 + days * DAY), 1000 + days * DAY)
    assert decided == ([first, PERSON] if first == "isolate" else [first])
    assert (PERSON in decided) == ("second remediation within 7 days" in loop.last[0].reason)


@pytest.mark.parametrize(("nodes", "allowed"), [(1, 1), (8, 1), (19, 1), (20, 2), (40, 4)])
def test_the_breaker_holds_the_rest_of_the_fleet_back(nodes: int, allowed: int) -> None:
    names = [f"gaudi-{number}" for number in range(nodes)]
    loop = Loop(nodes=names)
    decided = [loop.step(seen(name, 1000), 1001) for name in names]
    assert decided == [["reset"]] * allowed + [[HOLD]] * (nodes - allowed)
    if nodes > allowed:
        assert loop.step(seen(names[-1], 4599), 4600) == [HOLD]
        assert loop.step(seen(names[-1], 4602), 4602) == ["reset"], "an hour later"


@pytest.mark.parametrize("kind", ["user fault", "check error"])
def test_what_is_not_the_nodes_fault_takes_nothing_out(kind: str) -> None:
    loop = Loop()
    decided = loop.step(seen(kind=kind), 1000)
    assert decided == ([NOTIFY] if kind == "user fault" else [])
    assert loop.step(seen(kind=kind, at=1010), 1010) == [], "said once"
    assert loop.fleet.nodes["gaudi-1"].state == IN_SERVICE


def test_a_retry_comes_first_and_a_reset_where_it_did_not_help() -> None:
    loop = Loop()
    assert loop.step(seen(action="retry"), 1000) == ["retry"]
    assert loop.step(seen(action="retry", at=1060), 1060) == []
    assert loop.step(seen(action="retry", at=1130), 1130) == ["reset"]


PORT = {"component": "accel3 port 8", "components": ("accel3 port 8", "accel3 port 9"), "action": "retry"}


def test_under_a_job_a_port_gets_two_minutes_and_then_the_node_leaves_for_its_ports_to_be_flipped() -> None:
    loop = Loop()
    assert loop.step(seen(**PORT), 1000) == ["retry"]
    assert loop.fleet.nodes["gaudi-1"].state == IN_SERVICE, "a job runs there"
    assert loop.step(seen(at=1060, **PORT), 1060) == []
    assert loop.step(seen(at=1130, **PORT), 1130) == ["retry"]
    state = loop.fleet.nodes["gaudi-1"]
    assert (state.state, state.step, state.components) == (REPAIRING, "retry", ["accel3 port 8", "accel3 port 9"])
    assert loop.step(Done("gaudi-1", True), 1140) == [TEST]
    assert loop.step(Tested("gaudi-1", False, 1150, "accel3: still down"), 1151) == ["reset"]


def test_the_ports_of_an_idle_node_are_flipped_at_once_and_its_cards_get_their_time() -> None:
    loop = Loop()
    assert loop.step(seen(idle=True, **PORT), 1000) == ["retry"]
    assert loop.fleet.nodes["gaudi-1"].state == REPAIRING
    mixed = {**PORT, "components": ("accel3 port 8", "accel4")}
    for number, fault in enumerate((mixed, {"action": "retry"})):
        other = Loop()
        assert other.step(seen(idle=True, **fault), 1000) == ["retry"], number
        assert other.fleet.nodes["gaudi-1"].state == IN_SERVICE
        assert other.step(seen(idle=True, at=1130, **fault), 1130) == ["reset"]


def test_in_shadow_mode_no_port_takes_its_node_out() -> None:
    loop = Loop(Policy())
    assert loop.step(seen(idle=True, **PORT), 1000) == ["retry"]
    assert loop.step(seen(at=1130, **PORT), 1130) == [], "said already"
    assert loop.fleet.nodes["gaudi-1"].state == IN_SERVICE


def test_in_shadow_mode_it_is_only_said_what_would_be_done() -> None:
    loop = Loop(Policy())
    assert loop.step(seen(), 1000) == ["reset"]
    assert loop.last[0].shadow
    assert loop.fleet.nodes["gaudi-1"].state == IN_SERVICE
    assert loop.fleet.history("gaudi-1") == ["1000 would reset: accel3: needs a reset"]
    assert loop.step(Done("gaudi-1", True), 1001) == []


def test_two_faults_on_two_nodes_at_once_take_two_spares() -> None:
    loop = Loop(spares=("spare-1", "spare-2"))
    assert loop.step(seen("gaudi-3"), 1000) == [USE_SPARE, "reset"]
    assert loop.step(seen("gaudi-9"), 1000) == [USE_SPARE, "reset"]
    assert (loop.fleet.nodes["gaudi-3"].spare, loop.fleet.nodes["gaudi-9"].spare) == ("spare-1", "spare-2")


def test_a_node_that_nobody_knows_is_nobodys() -> None:
    assert Loop().step(seen("elsewhere"), 1000) == []


@pytest.mark.parametrize("seed", range(15))
def test_whatever_is_observed_the_guards_hold(seed: int) -> None:
    draw = random.Random(seed)
    spares = tuple(f"spare-{number}" for number in range(draw.randrange(4)))
    loop = Loop(nodes=NODES[: draw.choice((3, 8, 20))], spares=spares)
    names = list(loop.fleet.nodes)
    allowed = POLICY.allowed(len(names))
    now, left, steps = 0.0, [], dict.fromkeys(names, -1)
    began: dict[str, list[float]] = {name: [] for name in names}
    for _ in range(150):
        now += draw.choice((1, 20, 200, 4000, 90000))
        node = draw.choice(names)
        before = loop.fleet.nodes[node].state
        observed: Any = draw.choice(
            (
                seen(
                    node,
                    now - draw.choice((0, 0, 100, 1000)),
                    kind=draw.choice(("node fault", "node fault", "user fault", "check error")),
                    action=draw.choice(ACTIONS),
                    component=draw.choice(("accel3", "accel3 port 8")),
                    idle=draw.random() < 0.5,
                ),
                Done(node, draw.random() < 0.5),
                Tested(node, draw.random() < 0.5, now - draw.choice((0, 0, 1000))),
                Released(node),
            )
        )
        decided = loop.step(observed, now)
        after = loop.fleet.nodes[node].state
        assert all(decision.node == node for decision in loop.last)
        if before == IN_SERVICE and after != IN_SERVICE:
            assert isinstance(observed, Seen) and observed.kind == "node fault"
            assert now - observed.taken_at <= POLICY.stale_s
            left.append(now)
            again = any(now - at <= POLICY.again_s for at in began[node])
            assert (PERSON in decided) or not again, "the second within seven days"
            began[node].append(now)
        for do in decided:
            if do in LADDER:
                index = LADDER.index(do)
                assert before == IN_SERVICE or index > steps[node] or do == LADDER[-1], "never down the ladder"
                steps[node] = index
        assert sum(now - at < POLICY.window_s for at in left) <= allowed
        assert len(set(loop.fleet.spares)) == len(loop.fleet.spares)
        assert all(loop.fleet.nodes[spare].state == IN_SERVICE for spare in loop.fleet.spares)
        assert HOLD not in decided or after == IN_SERVICE
        assert before != OUT or after == OUT or isinstance(observed, Released), "a person's until released"
    assert left, "something happened"
