"""Every fault of the simulator on both boards: node, report, twin. The twin has the verdicts that the report has."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from health_cases import CASES, KNOWN, Case
from health_machine import BOARDS, Nodes, nodes, put
from twin_reports import answer, bundled, doctors

from gaudi3_simulator.node import faults
from gaudi3_simulator.twin import folder, inverse, replay, reports
from gaudi3_simulator.twin.stand import MEMORY, Stand

#: What only a longer test shows, so that a doctor's report has nothing of it: a bundle has the health engine's answer.
ONLY_IN_A_BUNDLE = {"release-mismatch", "qual-failed", "slow-card", "slow-link"}
#: While these are there, neither the kernel nor hl-smi says which card has which index.
WITHOUT_AN_INDEX = (
    "driver-not-loaded", "module-not-built", "module-empty", "module-rejected", "no-firmware", "hl-smi-hang",
)  # fmt: skip
#: What depends on the board's ports, so that the second board's doctor is asked as well; a bundle is made of both.
OF_PORTS = ("card-missing", "ecc-uncorrected", "mac-timeout", "port-")
IDS = [f"{case.fault}-{case.check.replace(':', '-')}" for case in KNOWN]


@pytest.fixture(scope="module", name="made")
def the_nodes() -> Iterator[Nodes]:
    with nodes() as made:
        yield made


def twin_of(path: Path, content: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    """The twin of a report and its state; nothing of the report is unknown."""
    path.write_bytes(content)
    files = folder.make(reports.open_report(path), "gaudi-1")
    assert json.loads(files[folder.UNKNOWN]) == {}
    return json.loads(files[folder.TWIN]), json.loads(files[folder.STATE])


def same(entries: list[dict[str, Any]]) -> list[tuple[str, ...]]:
    return [inverse.Verdict(**each).same for each in entries]


@pytest.mark.parametrize("board", BOARDS)
@pytest.mark.parametrize("case", KNOWN, ids=IDS)
def test_the_twin_of_a_report_has_the_reports_verdicts(
    made: Nodes, board: str, case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = made.loaded(board)
    put(node, case)
    said = answer(node.readings(case.reads) if case.fault == "port-flapping" else [node.read()], confirm=1)
    asked = board == BOARDS[0] or case.fault.startswith(OF_PORTS)
    bundle, doctor = bundled(node, said), doctors(node, monkeypatch) if asked else {}
    cards = node.machine.state()["cards"]
    node.machine.ok("node", "fault", "--clear-all")
    of_node = [each.same for each in inverse.verdicts_of(said)]
    assert of_node

    twin, state = twin_of(tmp_path / "bundle.tar.gz", bundle)
    assert same(twin["verdicts"]) == of_node and twin["not_simulated"] == []
    with tempfile.TemporaryDirectory(dir=MEMORY) as place, Stand(Path(place), twin, state).up() as stand:
        found = stand.verdicts(confirm=1)
    assert [each.same for each in found] == of_node

    if not asked:
        return
    twin_of_doctor, doctors_state = twin_of(tmp_path / "doctor.json", json.dumps(doctor).encode())
    if case.fault in ONLY_IN_A_BUNDLE:
        assert twin_of_doctor["verdicts"] == [] and twin_of_doctor["faults"] == []
        return
    # What the bundle's twin does, this one does as well: the two are one node.
    assert same(twin_of_doctor["verdicts"]) == of_node and twin_of_doctor["not_simulated"] == []
    made_of = ("board", "release", "faults", "translated", "ports_up", "flow_control")
    assert {name: twin_of_doctor[name] for name in made_of} == {name: twin[name] for name in made_of}
    if case.fault not in WITHOUT_AN_INDEX:
        names = ("index", "bus_id", "numa_node")
        kept = [card for card in cards if {"kind": "card-missing", "card": card["index"]} not in twin["faults"]]
        ours = [card for card in doctors_state["cards"] if card["index"] in {each["index"] for each in kept}]
        assert [[card[name] for name in names] for card in ours] == [[card[name] for name in names] for card in kept]


@pytest.mark.parametrize("board", BOARDS)
def test_the_twin_of_a_sound_node_has_no_fault(
    made: Nodes, board: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = made.loaded(board)
    twin, state = twin_of(tmp_path / "doctor.json", json.dumps(doctors(node, monkeypatch)).encode())
    assert (twin["board"], twin["release"], twin["faults"], twin["verdicts"]) == (board, "1.23.0-695", [], [])
    assert (twin["notes"], twin["ports_up"], twin["flow_control"], twin["translated"]) == ([], True, True, False)
    told = [{key: card[key] for key in ("index", "bus_id", "module_id", "spi")} for card in state["cards"]]
    real = node.machine.state()["cards"]
    assert told == [{key: card[key] for key in told[0]} for card in real]
    # A doctor's report has no serial number, so the twin has others.
    assert not {card["serial"] for card in state["cards"]} & {card["serial"] for card in real}
    assert replay.replay(twin, state) == []


def test_a_fault_of_the_twin_that_the_report_has_not_is_named(
    made: Nodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = made.loaded(BOARDS[0])
    node.machine.ok("node", "fault", "ecc-uncorrected", "--card", "3", "--count", "4711")
    twin, state = twin_of(tmp_path / "doctor.json", json.dumps(doctors(node, monkeypatch)).encode())
    assert twin["faults"] == [{"kind": "ecc-uncorrected", "card": 3, "count": 4711}] == state["faults"]
    twin["faults"] = [{"kind": "needs-reset", "card": 5}]
    rows = replay.replay(twin, state)
    assert [(row.where, row.verdict.component, row.verdict.check) for row in rows] == [
        (replay.REPORT_ALONE, "accel3", "memory-rows"),
        (replay.REPORT_ALONE, "accel3", "memory-uncorrected"),
        (replay.TWIN_ALONE, "accel5", "card-status"),
    ]


def test_every_fault_is_in_the_round_trip() -> None:
    assert {case.fault for case in CASES} == set(faults.REGISTRY)
