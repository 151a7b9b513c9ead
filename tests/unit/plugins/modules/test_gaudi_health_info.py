"""gaudi_health_info: what it asks of a host without cards, of a silent tool, and of hl_qual."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from health_machine import Node, nodes

from ansible_collections.gaudi3.scale.plugins.module_utils._cards import accel, pci
from ansible_collections.gaudi3.scale.plugins.module_utils._health import examine as examination
from ansible_collections.gaudi3.scale.plugins.module_utils._health.collect import Sources
from ansible_collections.gaudi3.scale.plugins.module_utils._hl_smi.command import HlSmi, HlSmiHung
from ansible_collections.gaudi3.scale.plugins.modules import gaudi_health_info


def test_a_host_without_cards_has_no_verdict(run_module: Any) -> None:
    result = run_module(gaudi_health_info, executable="/nowhere/hl-smi")
    assert (result["changed"], result["healthy"], result["verdicts"], result["versions"]) == (False, True, [], {})
    assert result["readings"] == 1
    assert not result["idle"], "nothing was read of who holds cards"


def test_a_depth_that_is_none_is_refused(run_module: Any) -> None:
    assert "value of depth must be one of: quick, standard" in run_module(gaudi_health_info, depth="deepest")["msg"]


@pytest.mark.parametrize("control", [False, True])
def test_no_load_is_put_on_cards_that_a_process_holds(
    run_module: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, control: bool
) -> None:
    asked = tmp_path / "asked"
    qual = tmp_path / "hl_qual"
    qual.write_text(f'#!/bin/sh\necho "$@" >> {asked}\necho Passed\n')
    qual.chmod(0o755)
    card = pci.PciCard("0000:19:00.0", "1060", "HL-325", "gaudi3", 0)
    monkeypatch.setattr(pci, "cards", lambda sysfs="/sys": [card])
    monkeypatch.setattr(accel, "users", lambda proc="/proc": [accel.User(4711, "python3", control)])
    result = run_module(
        gaudi_health_info,
        executable="/nowhere",
        depth="standard",
        hl_qual=str(qual),
        hl_qual_modes=["power"],
        interval=0,
    )
    said = [each["message"] for each in result["errors"] if each["check"].startswith("hl-qual")]
    if control:
        assert said == []
        assert asked.read_text() == "-gaudi3 -c all -rmod parallel -s\n"
    else:
        (message,) = said
        assert "gave no result: process 4711 (python3) holds a card, so nothing was run" in message
        assert not asked.exists()


def test_whoever_takes_a_card_in_the_middle_of_a_test_has_nobody_found_faulty(
    run_module: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    qual = tmp_path / "hl_qual"
    qual.write_text("#!/bin/sh\necho Failed\n")
    qual.chmod(0o755)
    found = iter([[], [accel.User(4711, "python3")]])
    monkeypatch.setattr(pci, "cards", lambda sysfs="/sys": [pci.PciCard("0000:19:00.0", "1060", "HL-325", "gaudi3", 0)])
    monkeypatch.setattr(accel, "users", lambda proc="/proc": next(found, []))
    asked = {"executable": "/nowhere", "depth": "standard", "hl_qual": str(qual), "interval": 0}
    result = run_module(gaudi_health_info, **asked, hl_qual_modes=["power"])
    assert [each for each in result["verdicts"] if each["check"].startswith("hl-qual")] == []
    said = [each["message"] for each in result["errors"] if each["check"].startswith("hl-qual")]
    assert len(said) == 1 and "process 4711 (python3) took a card meanwhile" in said[0]
    found = iter([[], []])
    alone = run_module(gaudi_health_info, **asked, hl_qual_modes=["power"])
    assert [each for each in alone["verdicts"] if each["check"].startswith("hl-qual")] != []


@pytest.mark.parametrize("installed", [True, False])
def test_the_vendors_hl_qual_is_run_where_none_is_named(
    run_module: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, installed: bool
) -> None:
    """Who is told that a node passed at depth standard takes it that its cards were qualified."""
    qual = tmp_path / "gaudi3/bin/hl_qual"
    qual.parent.mkdir(parents=True)
    qual.write_text("#!/bin/sh\necho Passed\n")
    qual.chmod(0o755 if installed else 0o644)
    monkeypatch.setattr(gaudi_health_info, "QUAL", str(tmp_path))
    monkeypatch.setattr(pci, "cards", lambda sysfs="/sys": [pci.PciCard("0000:19:00.0", "1060", "HL-325", "gaudi3", 0)])
    monkeypatch.setattr(accel, "users", lambda proc="/proc": [])
    result = run_module(gaudi_health_info, executable="/nowhere", depth="standard", interval=0)
    said = [each["message"] for each in result["errors"] if each["check"].startswith("hl-qual")]
    assert [f"{qual} is not there, so nothing was run" in message for message in said] == [True] * (not installed)


@pytest.fixture(name="node", scope="module")
def a_node() -> Iterator[Node]:
    with nodes() as made:
        yield made.loaded("HL-325L")


def examine(node: Node, run: Any) -> examination.Examination:
    patient = examination.Patience(run)
    sources = Sources(patient, HlSmi("hl-smi", patient), "none", str(node.machine.root))
    times = iter(range(100))
    return examination.examine(sources, lambda: float(next(times)), lambda seconds: None, expected_cards=8)


def test_a_tool_that_hangs_is_asked_once(node: Node) -> None:
    asked: list[str] = []

    def run(command: list[str]) -> Any:
        asked.append(command[0])
        if command[0] == "hl-smi":
            raise HlSmiHung("hl-smi gave no answer in 30 seconds")
        return node._run(command)

    node.machine.ok("node", "fault", "no-uverbs")  # a finding that is read three times
    node.machine.ok("node", "fault", "gaudinet-empty")
    try:
        done = examine(node, run)
    finally:
        node.machine.ok("node", "fault", "--clear-all")
    assert asked.count("hl-smi") == 1
    assert done.readings == 3
    assert [each.check for each in done.report.verdicts] == ["gaudinet"]
    assert [each.component for each in done.report.errors] == ["hl-smi"]


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ("A9FEA97B,10.0.0.1,3,1700000000.1,-3.500000,0.1,0.1,0,0,0,0,0,64.0,Normal", ["clock"]),
        ("A9FEA97B,10.0.0.1,3,1700000000.1,0.000012,0.1,0.1,0,0,0,0,0,64.0,Normal", []),
        ("00000000,,0,0.0,-3.5,0,0,0,0,0,1,1,0.0,Not synchronised", []),
        ("506 Cannot talk to daemon", []),
    ],
)
def test_the_clock_is_what_chrony_says(node: Node, answer: str, found: list[str]) -> None:
    node.answers = {"chronyc": answer + "\n"}
    done = examine(node, node._run)
    node.answers = {}
    assert [each.check for each in done.report.verdicts] == found
    assert done.report.errors == ()


def test_a_sound_node_is_read_once(node: Node) -> None:
    done = examine(node, node._run)
    assert (done.readings, done.report.healthy, done.report.errors) == (1, True, ())
    assert len(done.reading.cards) == 8
