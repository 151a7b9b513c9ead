"""The command line: what needs no cluster, and which cluster is meant where none is named."""

from __future__ import annotations

import subprocess
from typing import Any

import pytest

from gaudi3_simulator import cli, cluster
from gaudi3_simulator.node import faults


@pytest.mark.parametrize("arguments", [["fault"], ["fault", "gaudi-1"]])
def test_the_kinds_of_fault_are_listed_without_a_cluster(
    arguments: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "exec_in", lambda *_: pytest.fail("a node was asked"))
    assert cli.main(arguments) == 0
    shown = capsys.readouterr().out
    for kind, what in faults.REGISTRY.items():
        assert any(line.split()[0] == kind and what.description in line for line in shown.splitlines()), kind
    assert "gaudi3-simulator fault gaudi-1 port-down --card 3" in shown


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ["fault", "port-down"],
            "gaudi3-simulator: port-down is a kind of fault, and the node comes first: fault NODE port-down.\n",
        ),
        (
            ["fault", "gaudi-1", "--clear"],
            "gaudi3-simulator: --clear was given without a kind of fault: fault gaudi-1 KIND --clear.\n",
        ),
        (
            ["fault", "gaudi-1", "portdown"],
            f"gaudi3-simulator: portdown is no kind of fault: choose one of {', '.join(faults.REGISTRY)}. "
            "Did you mean 'port-down'?\n",
        ),
        (
            ["fault", "gaudi-1", "hccl-hang"],
            "gaudi3-simulator: hccl-hang cannot be simulated: it takes two nodes and the vendor's own collectives.\n",
        ),
    ],
)
def test_a_fault_that_cannot_be_meant_is_refused(
    arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "exec_in", lambda *_: pytest.fail("a node was asked"))
    assert cli.main(arguments) == 2
    assert capsys.readouterr().err == sentence


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """(cluster, node, program, arguments) of what nodes are asked."""
    calls: list[tuple[str, ...]] = []

    def exec_in(*arguments: str) -> Any:
        calls.append(arguments)
        return subprocess.CompletedProcess(arguments, 0, "", "")

    monkeypatch.setattr(cluster, "exec_in", exec_in)
    return calls


def test_a_fault_goes_to_the_node(
    asked: list[tuple[str, ...]], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("GAUDI3_SIMULATOR_CLUSTER", raising=False)
    node = "/usr/local/sbin/gaudi3-simulator-node"
    assert cli.main(["fault", "gaudi-1", "port-down", "--card", "3"]) == 0
    assert cli.main(["fault", "gaudi-1", "port-down", "--card", "3", "--clear"]) == 0
    fault = ("demo", "gaudi-1", node, "fault", "port-down", "--card", "3")
    assert asked == [fault, (*fault, "--clear")]
    assert capsys.readouterr().out == "gaudi-1: port-down set\ngaudi-1: port-down cleared\n"
    assert cli.main(["fault", "gaudi-1", "ecc-corrected", "--count", "4000"]) == 0
    assert asked[-1] == ("demo", "gaudi-1", node, "fault", "ecc-corrected", "--count", "4000")


def test_the_cluster_is_the_one_that_the_inventory_shows(
    asked: list[tuple[str, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GAUDI3_SIMULATOR_CLUSTER", "rehearsal")
    assert cli.main(["fault", "gaudi-1", "hl-smi-hang"]) == 0
    assert cli.main(["fault", "--name", "other", "gaudi-1", "hl-smi-hang"]) == 0
    assert [call[0] for call in asked] == ["rehearsal", "other"]
