"""Faults of the simulator times checks of the health engine, on both boards, and the page that says so."""

from __future__ import annotations

from collections.abc import Iterator

import health_page
import pytest
from health_cases import CARD, CASES, FAMILIES, KNOWN, NODE, Case
from health_machine import BOARDS, Nodes, nodes, put

from ansible_collections.gaudi3.scale.plugins.module_utils._health import checks, engine
from ansible_collections.gaudi3.scale.plugins.module_utils._health.readings import NodeReading
from ansible_collections.gaudi3.scale.plugins.module_utils._health.verdicts import Finding
from gaudi3_simulator.node import board as boards
from gaudi3_simulator.node import faults

IDS = [f"{case.fault}-{case.check.replace(':', '-')}" for case in KNOWN]
_taken: dict[tuple[str, str, str], list[NodeReading]] = {}


@pytest.fixture(scope="module", name="made")
def the_nodes() -> Iterator[Nodes]:
    with nodes() as made:
        yield made


def readings(made: Nodes, board: str, case: Case) -> list[NodeReading]:
    """Three readings, ten seconds apart, of a node with the fault."""
    key = (board, case.fault, case.check)
    if key not in _taken:
        node = made.loaded(board)
        put(node, case)
        _taken[key] = node.readings(case.reads)
        if case.fault == "device-acquired":
            node.machine.ok("node", "fault", "--clear-all")
    return _taken[key]


def component(case: Case, board: str, taken: NodeReading) -> str:
    external = boards.BOARDS[board].external_ports[0]
    return case.component.replace("EXTERNAL", str(external))


def said(report: engine.Report) -> tuple[Finding, ...]:
    return report.verdicts + report.errors


@pytest.mark.parametrize("board", BOARDS)
def test_a_sound_node_has_no_verdict_and_no_error(made: Nodes, board: str) -> None:
    report = engine.evaluate(made.loaded(board).readings())
    assert said(report) == () and report.suspects == ()
    assert report.healthy


@pytest.mark.parametrize("board", BOARDS)
@pytest.mark.parametrize("case", KNOWN, ids=IDS)
def test_the_check_meant_for_a_fault_finds_it(made: Nodes, board: str, case: Case) -> None:
    taken = readings(made, board, case)
    report = engine.evaluate(taken, expected_cards=8)
    found = [each for each in said(report) if each.check == case.check]
    if case.component == "BUS":  # the driver names cards by their address while none has come up
        assert sorted(each.component for each in found) == sorted(boards.BUS_IDS)
    else:
        assert [each.component for each in found] == [component(case, board, taken[0])], said(report)
    assert {(each.kind, each.action) for each in found} == {(case.kind, case.action)}
    if case.kind != "node fault":
        assert not report.drains


@pytest.mark.parametrize("board", BOARDS)
@pytest.mark.parametrize("case", KNOWN, ids=IDS)
def test_no_other_component_is_blamed(made: Nodes, board: str, case: Case) -> None:
    report = engine.evaluate(readings(made, board, case), expected_cards=8)
    if case.component.startswith("accel"):
        assert {each.component.split()[0] for each in said(report)} == {CARD}
    elif case.component == NODE:
        assert not any(each.component.startswith("accel") for each in said(report))


@pytest.mark.parametrize("case", KNOWN, ids=IDS)
def test_without_its_check_a_fault_has_no_verdict(made: Nodes, case: Case) -> None:
    check = FAMILIES.get(case.name, case.name)
    if check == "reading":  # the read itself failed: no check is asked
        assert case.kind == "check error"
        return
    report = engine.evaluate(readings(made, BOARDS[0], case), expected_cards=8, without=(check,))
    assert case.check not in {each.check for each in said(report)}


def test_every_check_is_proved_by_a_fault_or_by_a_test_that_is_named() -> None:
    proved = {FAMILIES.get(case.name, case.name) for case in CASES} - {"reading"}
    assert proved | set(health_page.ELSEWHERE) == set(checks.NAMES)
    assert not proved & set(health_page.ELSEWHERE)


def test_every_fault_of_the_simulator_has_its_check() -> None:
    assert set(faults.REGISTRY) <= {case.fault for case in CASES}


def test_the_published_matrix_is_this_one() -> None:
    assert health_page.PAGE.read_text() == health_page.text(), "run python tests/unit/plugins/health_page.py"
