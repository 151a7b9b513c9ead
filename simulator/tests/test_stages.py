"""What is kept of a cluster, and when a saved one is refused in one sentence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gaudi3_simulator import SimulatorError, cli, stages
from gaudi3_simulator.home import Cluster, Node


def _silent(_text: str) -> None:
    return


@pytest.fixture
def saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    """A stage `drivers` of two nodes and a monitoring host, as `save` leaves it; no container is behind it."""
    monkeypatch.setenv("GAUDI3_SIMULATOR_HOME", str(tmp_path))
    monkeypatch.setattr(stages, "input_key", lambda: "one")
    cluster = Cluster(
        "first", "10.89.77.0/24", [Node("gaudi-1", "10.89.77.11", 8), Node("gaudi-2", "10.89.77.12", 8)],
        Node("monitor-1", "10.89.77.3"), images={"gaudi-1": "localhost/gaudi3-stage/drivers:gaudi-1"},
        network="gaudi3-first-1",
    )  # fmt: skip
    cluster.folder.mkdir(parents=True)
    cluster.key.write_text("a key")
    cluster.key.chmod(0o600)
    (cluster.folder / "secrets").mkdir()
    (cluster.folder / "secrets" / "ca.key").write_text("a secret")
    stages._write(cluster, "drivers", "one", cluster.folder)
    return cluster


def test_a_stage_keeps_the_identity_of_its_cluster(saved: Cluster) -> None:
    stage = stages.load_stage("drivers")
    assert stage.cluster == saved
    assert (stage.folder / "secrets" / "ca.key").read_text() == "a secret"
    assert (stage.folder / "id_ed25519").stat().st_mode & 0o777 == 0o600


def test_a_stage_of_other_sources_is_not_current(saved: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    assert stages.load_stage("drivers").is_current
    monkeypatch.setattr(stages, "input_key", lambda: "two")
    assert not stages.load_stage("drivers").is_current


def test_the_key_depends_on_what_configures_nodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stages, "_CHECKOUT", tmp_path)
    monkeypatch.setattr(stages, "image_name", lambda: "image")
    (tmp_path / "roles" / "tuning").mkdir(parents=True)
    task = tmp_path / "roles" / "tuning" / "main.yml"
    task.write_text("a")
    first = stages.input_key()
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "page.md").write_text("changes nothing")
    assert stages.input_key() == first
    task.write_text("b")
    assert stages.input_key() != first
    task.write_text("a")
    monkeypatch.setattr(stages, "device_wheel", lambda: Path("hpu-python3.11-other.whl"))
    assert stages.input_key() != first


def test_nodes_of_a_stage_become_a_cluster_of_another_name(saved: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    (saved.folder / "cluster.json").unlink(missing_ok=True)
    monkeypatch.setattr(stages, "bring_up", lambda name, wanted, log: wanted(None))
    made, stage = stages.up_from("drivers", "second", 1, False, _silent)
    assert (made.name, made.subnet, made.monitor) == ("second", saved.subnet, None)
    assert [node.name for node in made.nodes] == ["gaudi-1"]
    assert made.images == saved.images
    assert made.key.read_text() == "a key"
    assert [node.name for node in stage.cluster.nodes] == ["gaudi-1", "gaudi-2"]


def test_a_stage_does_not_start_while_its_addresses_are_in_use(saved: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    saved.save()
    monkeypatch.setattr(stages, "bring_up", lambda name, wanted, log: wanted(None))
    with pytest.raises(SimulatorError, match="Stage drivers has the addresses of cluster first, which is there: take"):
        stages.up_from("drivers", "second", 1, True, _silent)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ["up", "--stage", "none"],
            "There is no stage called none (saved: drivers): save a running cluster with 'gaudi3-simulator save'.",
        ),
        (
            ["up", "--stage", "drivers", "--nodes", "3"],
            "--nodes was 3, but stage drivers has 2: bring these up, and add bare nodes with another 'up'.",
        ),
        (["save", "With Space"], "The stage's name was 'With Space': use lower-case letters, digits and hyphens."),
        (
            ["up", "--stage", "drivers", "--like", "-"],
            "--stage was given with --like: give one of them.",
        ),
    ],
)
def test_bad_input_is_one_sentence(
    saved: Cluster, arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(arguments) == 2
    assert capsys.readouterr().err == f"gaudi3-simulator: {sentence}\n"


def test_stages_are_listed(saved: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["stages", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == [
        {"stage": "drivers", "nodes": ["gaudi-1", "gaudi-2", "monitor-1"], "current": True}
    ]


def test_a_stage_whose_nodes_are_up_is_not_removed(
    saved: Cluster, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Podman would remove them with their images."""
    images = stages.load_stage("drivers").cluster.images
    running = Cluster("demo", "10.89.77.0/24", [Node("gaudi-1", "10.89.77.11", 8)], images=images)
    monkeypatch.setattr(stages, "clusters", lambda: [running])
    assert cli.main(["stages", "--remove", "drivers"]) == 2
    assert capsys.readouterr().err == (
        "gaudi3-simulator: Nodes of cluster demo are made of stage drivers, and would go with it: "
        "run 'gaudi3-simulator down --name demo' first.\n"
    )
    assert stages.load_stage("drivers")
