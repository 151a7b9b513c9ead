"""Faults that come and go by a schedule, and several on one node: each is found when it is there, and no other."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest
from health_machine import Node, Nodes, nodes

from ansible_collections.gaudi3.scale.plugins.module_utils._health import engine

BOARD = "HL-325L"


@pytest.fixture(scope="module", name="made")
def the_nodes() -> Iterator[Nodes]:
    with nodes() as made:
        yield made


def put(node: Node, fault: str, *options: str) -> None:
    node.machine.ok("node", "fault", fault, *options)


def found(report: engine.Report) -> dict[str, str]:
    """Components of the verdicts, each with the check that found it."""
    return {verdict.component: verdict.check for verdict in report.verdicts}


def follow(node: Node, tracker: engine.Tracker, count: int) -> list[dict[str, str]]:
    """Verdicts after each of some readings, ten seconds apart."""
    seen = []
    for _ in range(count):
        seen.append(found(tracker.step(node.read("quick"))))
        node.machine.at(node.machine.now + 10)
    return seen


def test_a_fault_that_comes_later_has_no_verdict_before(made: Nodes) -> None:
    node, tracker = made.loaded(BOARD), engine.Tracker(8)
    put(node, "needs-reset", "--card", "3", "--after", "25")
    assert follow(node, tracker, 5) == [{}, {}, {}, {}, {}]
    assert follow(node, tracker, 1) == [{"accel3": "card-status"}]


def test_a_fault_that_comes_with_the_next_boot(made: Nodes) -> None:
    node = made.loaded(BOARD)
    put(node, "pcie-width", "--card", "3", "--at-boot")
    assert follow(node, engine.Tracker(8), 3)[-1] == {}
    node.machine.at(node.machine.now + 60)
    node.machine.reboot()
    node.machine.ok("manage_network_ifs.sh", "--up")
    assert follow(node, engine.Tracker(8), 3)[-1] == {"accel3": "pcie-width"}


def test_a_fault_that_is_there_now_and_then_needs_three_readings_in_a_row(made: Nodes) -> None:
    node, tracker = made.loaded(BOARD), engine.Tracker(8)
    put(node, "pcie-width", "--card", "3", "--share", "50")
    there, verdicts = [], []
    for _ in range(40):
        reading = node.read("quick")
        card = reading.card(3)
        assert card is not None
        there.append(card.pcie_width != card.pcie_width_max)
        verdicts.append(bool(tracker.step(reading).verdicts))
        node.machine.at(node.machine.now + 5)
    assert 5 < sum(there) < 35
    expected, confirmed = [], False
    for end in range(1, 41):
        last = there[max(0, end - 3) : end]
        if len(last) == 3 and len(set(last)) == 1:
            confirmed = last[0]
        expected.append(confirmed)
    assert verdicts == expected and True in expected and False in expected


def test_a_fault_under_load_is_found_while_a_process_holds_the_card(made: Nodes) -> None:
    node = made.loaded(BOARD)
    put(node, "pcie-generation", "--card", "3", "--under-load")
    assert follow(node, engine.Tracker(8), 3)[-1] == {}
    pid = node.machine.hold(3, name="python3")
    node.machine.write(f"/proc/{pid}/cgroup", "0::/system.slice/gaudi-train-demo.service\n")
    assert follow(node, engine.Tracker(8), 3)[-1] == {"accel3": "pcie-generation"}
    node.machine.release(pid)
    assert follow(node, engine.Tracker(8), 3)[-1] == {}


#: On one card each; what is found there and what the node then needs.
SINGLE = {
    "needs-reset": ("card-status", "reset"),
    "ecc-uncorrected": ("memory-uncorrected", "reset"),
    "in-device-creation": ("card-status", "reload"),
    "pcie-width": ("pcie-width", "reboot"),
    "throttled-power": ("throttled-power", "watch"),
    "kernel-event": ("kernel-log:memory-error-double", "reset"),
}


@pytest.mark.parametrize("pair", list(itertools.combinations(SINGLE, 2)), ids="-and-".join)
def test_two_faults_on_two_cards_are_both_found_and_the_stronger_action_counts(
    made: Nodes, pair: tuple[str, str]
) -> None:
    node = made.loaded(BOARD)
    for card, fault in enumerate(pair, 2):
        put(node, fault, "--card", str(card))
    report = engine.evaluate(node.readings())
    checks = {(verdict.component, verdict.check) for verdict in report.verdicts}
    assert {(f"accel{card}", SINGLE[fault][0]) for card, fault in enumerate(pair, 2)} <= checks
    assert {component for component, _check in checks} == {"accel2", "accel3"}
    order = ["watch", "reset", "reload", "reboot"]
    assert report.as_dict()["action"] == max((SINGLE[fault][1] for fault in pair), key=order.index)


def test_a_tool_that_prints_garbage_hides_no_event_of_the_driver(made: Nodes) -> None:
    node = made.loaded(BOARD)
    put(node, "kernel-event", "--card", "3")
    put(node, "hl-smi-garbage")
    report = engine.evaluate(node.readings())
    assert [error.component for error in report.errors] == ["hl-smi"]
    assert [verdict.check for verdict in report.verdicts] == ["kernel-log:memory-error-double"]
