"""A node that a job's hang names: tested when it is idle, and condemned by nothing that a job says."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._health import suspicion
from ansible_collections.gaudi3.scale.plugins.module_utils._health.healing import (
    IN_SERVICE,
    REPAIRING,
    RETURN,
    TEST,
    TESTING,
    Decision,
    Done,
    Fleet,
    Policy,
    Released,
    Seen,
    Tested,
)
from ansible_collections.gaudi3.scale.plugins.module_utils._health.report import Fence, Hang, Report, Verdict, read
from ansible_collections.gaudi3.scale.plugins.module_utils._health.suspicion import (
    ACQUIT,
    EXAMINE,
    PUT_OFF,
    REST,
    SUSPECT,
    Busy,
    Free,
    Passed,
    Suspected,
)

POLICY = Policy(mode="enforce")
NODES = [f"gaudi-{number}" for number in range(1, 9)]
SENTENCE = "Rank 37 on gaudi-5 did not enter all_reduce 4711; the other 63 ranks wait."
HANG = Hang("demo", "late", SENTENCE, ("gaudi-5",), tuple(NODES), 900.0)
Tested.__test__ = False  # type: ignore[attr-defined]  # its name is no test's


class Loop:
    """A fleet whose state goes through a file before each step."""

    def __init__(self, policy: Policy = POLICY) -> None:
        self.fleet, self.policy = Fleet.of(NODES), policy

    def step(self, observed: Any, now: float) -> list[str]:
        self.fleet = Fleet.from_dict(json.loads(json.dumps(self.fleet.as_dict(), allow_nan=False)))
        self.fleet, self.last = suspicion.decide(self.fleet, observed, now, self.policy)
        return [decision.do for decision in self.last]

    @property
    def suspect(self) -> Any:
        return self.fleet.nodes["gaudi-5"]


def test_a_suspect_is_tested_once_it_is_idle_and_is_none_after_that() -> None:
    loop = Loop()
    assert loop.step(Suspected("gaudi-5", "demo", SENTENCE, 900), 1000) == [SUSPECT]
    assert loop.last == [Decision("gaudi-5", SUSPECT, f"job demo: {SENTENCE}")]
    assert loop.step(Suspected("gaudi-5", "demo", SENTENCE, 903), 1001) == [], "another node of the job says the same"
    assert loop.suspect.state == IN_SERVICE and suspicion.reasons(loop.suspect) == [f"job demo: {SENTENCE}"]
    assert loop.step(Free("gaudi-4", 1001), 1002) == [], "nobody suspects that one"
    assert loop.step(Free("gaudi-5", 1001), 1002) == [TEST]
    assert (loop.suspect.state, loop.suspect.step) == (TESTING, EXAMINE)
    assert loop.step(Done("gaudi-5", True), 1003) == []
    assert loop.step(Tested("gaudi-5", True, 1003), 1004) == [], "read before its fence was there"
    assert loop.step(Tested("gaudi-5", True, 1100, fence=7.0), 1400) == [ACQUIT, RETURN]
    assert (loop.suspect.state, loop.suspect.suspected, loop.suspect.given) == (IN_SERVICE, {}, 7.0)
    assert loop.suspect.left_at is None and loop.suspect.remediations == [], "no remediation was begun"
    assert loop.step(Suspected("gaudi-5", "demo", SENTENCE, 902), 1401) == [], "that hang is over"
    assert loop.step(Suspected("gaudi-5", "demo", "Another one.", 5000), 5001) == [SUSPECT]
    assert loop.step(Free("gaudi-5", 5001), 5002) == [], "a job cannot have a node tested all the time"
    assert loop.step(Free("gaudi-5", 1002 + REST), 1003 + REST) == [TEST]


def test_a_job_that_began_puts_the_test_off() -> None:
    loop = Loop()
    loop.step(Suspected("gaudi-5", "demo", SENTENCE, 900), 1000)
    loop.step(Free("gaudi-5", 1001), 1001)
    assert loop.step(Busy("gaudi-5"), 1002) == [PUT_OFF]
    assert loop.suspect.state == IN_SERVICE and loop.suspect.suspected
    assert loop.step(Busy("gaudi-5"), 1003) == []
    assert loop.step(Free("gaudi-5", 1400), 1400) == [TEST], "at the next idle moment"


def test_what_the_test_finds_counts_as_any_other_verdict() -> None:
    loop = Loop()
    loop.step(Suspected("gaudi-5", "demo", SENTENCE, 900), 1000)
    loop.step(Free("gaudi-5", 1001), 1001)
    found = Seen("gaudi-5", "accel3", "node fault", "reset", "accel3: hl_qual hbm failed", 1100)
    assert loop.step(Tested("gaudi-5", False, 1100, found.message, 7.0, found), 1101) == ["reset"]
    assert (loop.suspect.state, loop.suspect.left_at) == (REPAIRING, 1101)
    assert loop.step(Free("gaudi-5", 1200 + REST), 1200 + REST) == [], "its repair goes on"


def test_a_test_that_could_not_be_made_neither_ends_the_suspicion_nor_blames_the_node() -> None:
    loop = Loop()
    loop.step(Suspected("gaudi-5", "demo", SENTENCE, 900), 1000)
    loop.step(Free("gaudi-5", 1001), 1001)
    assert loop.step(Tested("gaudi-5", True, 1100, unread="hl_qual is not there"), 1101) == [RETURN]
    assert "hl_qual is not there" in loop.last[0].reason
    assert loop.suspect.state == IN_SERVICE and loop.suspect.suspected


def test_a_person_and_a_test_by_hand_end_a_suspicion_and_so_does_time() -> None:
    for ends in (Released("gaudi-5"), Passed("gaudi-5")):
        loop = Loop()
        assert loop.step(ends, 999) == []
        loop.step(Suspected("gaudi-5", "demo", SENTENCE, 900), 1000)
        assert loop.step(ends, 1001) == [ACQUIT] and not loop.suspect.suspected
    loop = Loop()
    loop.step(Suspected("gaudi-5", "demo", SENTENCE, 900), 1000)
    suspicion.forget(loop.fleet, 900 + POLICY.again_s - 1, POLICY)
    assert loop.suspect.suspected
    suspicion.forget(loop.fleet, 901 + POLICY.again_s, POLICY)
    assert not loop.suspect.suspected


def test_in_shadow_mode_it_is_only_said() -> None:
    loop = Loop(Policy())
    assert loop.step(Suspected("gaudi-5", "demo", SENTENCE, 900), 1000) == [SUSPECT]
    assert loop.step(Free("gaudi-5", 1001), 1001) == [TEST] and loop.last[0].shadow
    assert loop.suspect.state == IN_SERVICE
    assert loop.step(Free("gaudi-5", 1301), 1301) == [], "once"


def test_few_suspects_are_tested_at_a_time() -> None:
    loop = Loop()
    for node in ("gaudi-5", "gaudi-6"):
        loop.step(Suspected(node, "demo", SENTENCE, 900), 1000)
    assert [loop.step(Free(node, 1001), 1001) for node in ("gaudi-5", "gaudi-6")] == [[TEST], []]


@pytest.mark.parametrize(
    ("hang", "hosts", "named"),
    [
        (HANG, {}, ["gaudi-5"]),
        (replace(HANG, nodes=("gaudi-5.cluster.example",)), {}, ["gaudi-5"]),
        (replace(HANG, nodes=("ip-10-0-0-5",)), {"gaudi-5": "ip-10-0-0-5"}, ["gaudi-5"]),
        (
            replace(HANG, nodes=("gaudi-5",)),
            {"gaudi-2": "gaudi-5"},
            ["gaudi-5"],
        ),  # who lies is nobody
        (replace(HANG, nodes=("same",)), {"gaudi-2": "same", "gaudi-5": "same"}, []),
        (replace(HANG, nodes=("gaudi-5", "gaudi-6"), kind="dead node"), {}, ["gaudi-5", "gaudi-6"]),
        (replace(HANG, members=("gaudi-1", "gaudi-2")), {}, []),  # a job of other nodes
        (replace(HANG, nodes=("elsewhere",), members=("elsewhere",)), {}, []),
        (replace(HANG, kind="shape"), {}, []),  # what its program does differs between ranks
        (replace(HANG, kind="stopped"), {}, []),  # somebody stopped a process
        (replace(HANG, kind="wedge", nodes=()), {}, []),
    ],
)
def test_a_job_makes_suspects_of_its_own_nodes_alone(hang: Hang, hosts: dict[str, str], named: list[str]) -> None:
    reports = {node: Report(host=hosts.get(node, node)) for node in NODES}
    reports["gaudi-1"] = replace(reports["gaudi-1"], hangs=(hang,))
    assert [each.node for each in suspicion.of_hangs(reports, NODES, 1000)] == named


def test_of_several_reports_of_a_hang_the_newest_counts_and_none_lies_in_the_future() -> None:
    reports = {
        "gaudi-1": Report(hangs=(HANG,)),
        "gaudi-2": Report(hangs=(replace(HANG, at=901.0),)),
        "gaudi-3": Report(hangs=(replace(HANG, job="other", at=1e12),)),
    }
    found = [(each.job, each.at) for each in suspicion.of_hangs(reports, NODES, 1000.0)]
    assert found == [("demo", 901.0), ("other", 1000.0)]


def test_only_an_idle_node_in_service_that_needs_no_repair_is_tested() -> None:
    sound = Report(cards=8, idle=True)
    fault = Verdict("accel1", "node fault", "error", "reset", "accel1: it is broken")
    others = [
        Report(cards=8, idle=False), Report(cards=0, idle=True), replace(sound, verdicts=(fault,)),
        replace(sound, fence=Fence("person")),
    ]  # fmt: skip
    reports = {"gaudi-1": sound, **{f"gaudi-{number}": each for number, each in enumerate(others, 2)}}
    warning = Verdict("node", "node fault", "warning", "configure", "node: it has no huge pages")
    reports["gaudi-6"] = replace(sound, verdicts=(warning,))
    assert [each.node for each in suspicion.of_free_nodes(reports, 5.0)] == ["gaudi-1", "gaudi-6"]


def test_odd_words_of_a_job_are_left_out_and_the_report_is_read() -> None:
    plain = {"job": "demo", "kind": "late", "sentence": "a\x1b[2J", "nodes": ["gaudi-5"], "members": NODES, "at": 9.0}
    odd: list[Any] = [
        None, 7, {}, {**plain, "at": "soon"}, {**plain, "at": 1e400}, {**plain, "nodes": "gaudi-5"},
        {**plain, "nodes": [{}]}, {**plain, "sentence": None}, {**plain, "members": None},
    ]  # fmt: skip
    found = read({"verdicts": [], "hangs": [*odd, plain, *[plain] * 50]})
    assert 1 <= len(found.hangs) <= 16
    assert {each.sentence for each in found.hangs} == {r"a\x1b[2J"}
    assert read({"verdicts": [], "hangs": "demo"}).hangs == ()
    assert read(found.as_answer()) == found


@pytest.mark.parametrize("seed", range(10))
def test_whatever_jobs_say_no_node_leaves_service_but_for_a_test_of_an_idle_one(seed: int) -> None:
    draw = random.Random(seed)
    loop, now = Loop(), 0.0
    for _ in range(200):
        now += draw.choice((1.0, 60.0, 4000.0, 90000.0))
        node = draw.choice(NODES)
        before = {name: state.state for name, state in loop.fleet.nodes.items()}
        observed = draw.choice(
            (
                Suspected(node, draw.choice(("a", "b")), "x" * draw.randrange(2000), draw.uniform(0, now)),
                Free(node, now - draw.choice((0, 1000))),
                Busy(node),
                Done(node, True),
                Tested(node, True, now, unread=draw.choice(("", "hl_qual is not there"))),
                Released(node),
            )
        )
        loop.step(observed, now)
        for name, state in loop.fleet.nodes.items():
            if before[name] == IN_SERVICE and state.state != IN_SERVICE:
                assert isinstance(observed, Free) and observed.taken_at == now and state.step == EXAMINE
            assert state.state in (IN_SERVICE, TESTING) and state.left_at is None and state.remediations == []
        testing = [name for name, state in loop.fleet.nodes.items() if state.state == TESTING]
        assert len(testing) <= POLICY.allowed(len(NODES))
