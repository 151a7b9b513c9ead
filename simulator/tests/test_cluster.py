"""What a cluster would be made of, and what is refused in one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from gaudi3_simulator import SimulatorError, cli, cluster
from gaudi3_simulator.home import Cluster, Node
from gaudi3_simulator.image import image_name, requirements_file


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GAUDI3_SIMULATOR_HOME", str(tmp_path))


def test_growing_keeps_the_nodes_that_are_there() -> None:
    two = cluster._wanted(Cluster("c", "10.89.80.0/24"), 2, 8, monitor=True)
    assert [(node.name, node.address, node.cards) for node in two.all_nodes()] == [
        ("gaudi-1", "10.89.80.11", 8),
        ("gaudi-2", "10.89.80.12", 8),
        ("monitor-1", "10.89.80.3", 0),
    ]
    three = cluster._wanted(two, 3, 4, monitor=True)
    assert three.nodes[1] == Node("gaudi-2", "10.89.80.12", 8)
    assert three.nodes[2] == Node("gaudi-3", "10.89.80.13", 4)
    assert len(cluster._wanted(three, 1, 8, monitor=True).nodes) == 3


def test_each_cluster_has_a_network_of_its_own() -> None:
    first = cluster._free_subnet("one")
    Cluster("one", first).save()
    assert cluster._free_subnet("two") != first
    assert cluster._free_subnet("demo") == "10.89.78.0/24"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["up", "--nodes", "0"], "--nodes was 0: give 1 to 64."),
        (["up", "--cards", "9"], "--cards was 9: a Gaudi 3 node has 1 to 8 cards."),
    ],
)
def test_bad_input_is_one_sentence(arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(arguments) == 1
    assert capsys.readouterr().err == f"gaudi3-simulator: {sentence}\n"


def test_missing_packages_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "missing_packages", lambda: ["podman", "mmdebstrap"])
    monkeypatch.setattr(cluster.os, "geteuid", lambda: 0)
    with pytest.raises(SimulatorError, match=r"^Simulated nodes need podman mmdebstrap: apt-get install"):
        cluster.preflight()


def test_root_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster.os, "geteuid", lambda: 1000)
    with pytest.raises(SimulatorError, match="need root"):
        cluster.preflight()


def test_image_name_follows_its_inputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = image_name()
    assert image_name() == before
    other = tmp_path / "trainer.txt"
    other.write_text(requirements_file().read_text() + "one-more==1.0\n")
    monkeypatch.setattr("gaudi3_simulator.image.requirements_file", lambda: other)
    assert image_name() != before
