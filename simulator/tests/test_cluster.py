"""What a cluster would be made of, and what is refused in one sentence."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest

from gaudi3_simulator import SimulatorError, cli, cluster, network, nodes
from gaudi3_simulator.home import Cluster, Node, read_cluster
from gaudi3_simulator.image import hpu, image_name, mounts_below, requirements_file
from gaudi3_simulator.node import store
from gaudi3_simulator.podman import Podman

pytestmark = pytest.mark.usefixtures("own_home")


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


def test_the_node_of_a_twin_has_the_twins_cards_and_faults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state = store.new_state("gaudi-7", 2, board_name="HL-225")
    state["faults"] = [{"kind": "pcie-width", "card": 1}]
    made: list[Cluster] = []

    def bring_up(name: str, wanted: Callable[[Cluster | None], Cluster], _log: object) -> Cluster:
        made.append(wanted(None))
        return made[-1]

    monkeypatch.setattr(cluster, "bring_up", bring_up)
    found = cluster.up_twins("fleet", {"gaudi-7": state}, True, print, "10.89.81.0/24")
    assert [(node.name, node.address, node.cards) for node in found.all_nodes()] == [
        ("gaudi-7", "10.89.81.11", 2),
        ("monitor-1", "10.89.81.3", 0),
    ]
    found.save()
    kept = read_cluster(found.folder / "cluster.json")
    nodes._add_cards(tmp_path / "root", kept.nodes[0], kept)
    assert json.loads((tmp_path / "root/var/lib/gaudi3-simulator/state.json").read_text()) == state


def test_leases_of_a_killed_cluster_do_not_matter() -> None:
    """They are kept by the network's name, outside the folder of the clusters: no two networks have the same one."""
    made: list[str] = []

    class Recorder:
        def ok(self, *arguments: str) -> bool:
            return arguments[-1] in made

        def run(self, *arguments: str) -> None:
            made.append(arguments[-1])

    killed, again = Cluster("c", "10.89.80.0/24"), Cluster("c", "10.89.80.0/24")
    for each in (killed, killed, again):
        cluster.ensure_network(cast(Podman, Recorder()), each)
    assert made == [killed.network, again.network]
    assert killed.network != again.network
    assert read_cluster(again.folder / "cluster.json").network == again.network


def test_each_cluster_has_a_network_of_its_own() -> None:
    first = network.free_subnet("one")
    Cluster("one", first).save()
    assert network.free_subnet("two") != first
    assert network.free_subnet("demo") == "10.89.78.0/24"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["up", "--nodes", "0"], "--nodes was 0: give 1 to 64."),
        (["up", "--cards", "9"], "--cards was 9: a Gaudi 3 node has 1 to 8 cards."),
    ],
)
def test_bad_input_is_one_sentence(arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(arguments) == 2
    assert capsys.readouterr().err == f"gaudi3-simulator: {sentence}\n"


def test_missing_packages_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "missing_packages", lambda: ["podman", "mmdebstrap"])
    monkeypatch.setattr(cluster.os, "geteuid", lambda: 0)
    with pytest.raises(SimulatorError, match=r"^Simulated nodes need podman mmdebstrap: apt-get install"):
        cluster.preflight()


def test_a_podman_that_does_not_end_is_named_in_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = tmp_path / "bin/podman"
    slow.parent.mkdir()
    slow.write_text("#!/bin/sh\nexec sleep 60\n")
    slow.chmod(0o755)
    monkeypatch.setenv("PATH", f"{slow.parent}:{os.environ['PATH']}")
    with pytest.raises(SimulatorError, match=r"^'podman rm --force' did not end in 0\.1 s: run the command again when"):
        Podman().run("rm", "--force", "one", timeout=0.1)


def test_what_podman_notes_of_an_earlier_boot_is_forgotten(tmp_path: Path) -> None:
    Podman()
    notes = [tmp_path / "podman" / name / "alive" for name in ("run", "tmp", "storage")]
    for note in notes:
        note.parent.mkdir()
        note.touch()
    Podman()
    assert all(note.exists() for note in notes), "the machine did not boot"
    (tmp_path / "podman/boot").write_text("an earlier one\n")
    Podman()
    assert [note.exists() for note in notes] == [False, False, True]


def test_root_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster.os, "geteuid", lambda: 1000)
    with pytest.raises(SimulatorError, match="need root"):
        cluster.preflight()


def test_what_the_image_s_build_left_mounted_is_found() -> None:
    table = """\
proc /proc proc rw 0 0
tmpfs /srv tmpfs rw 0 0
proc /srv/a\\040b/root/proc proc ro,relatime 0 0
sysfs /srv/a\\040b/root/sys sysfs ro 0 0
tmpfs /srv/a\\040b/root/sys/fs tmpfs ro 0 0
proc /srv/a\\040b/rootless/proc proc ro 0 0
"""
    root = Path("/srv/a b/root")
    assert mounts_below(root, table) == [root / "sys/fs", root / "sys", root / "proc"]


def test_only_the_image_with_torch_follows_what_torch_and_its_device_are_made_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A node is bare of PyTorch until somebody installs it."""
    bare = image_name()
    before = [image_name(torch=True)]
    assert image_name(torch=True) == before[0] != bare
    other = tmp_path / "trainer.txt"
    other.write_text(requirements_file().read_text() + "one-more==1.0\n")
    monkeypatch.setattr("gaudi3_simulator.image.requirements_files", lambda: [other, requirements_file("torch")])
    before.append(image_name(torch=True))
    names = {path.name for path in hpu.source_files()}
    assert {"setup.py", "pyproject.toml", "allocator.cpp", "allocator.h", "load.py"} <= names
    changed = tmp_path / "load.py"
    changed.write_text("# other\n")
    files = [changed if path.name == "load.py" else path for path in hpu.source_files()]
    monkeypatch.setattr(hpu, "source_files", lambda: files)
    assert len({*before, image_name(torch=True)}) == 3
    assert image_name() == bare


def test_the_hpu_device_is_built_once_for_its_sources_and_its_torch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands: list[list[str]] = []
    requirements = tmp_path / "trainer.txt"
    requirements.write_text("torch==2.13.0\n")

    def run(command: list[str], what: str) -> None:
        commands.append(command)
        assert (Path(command[1]) / "source" / "csrc" / "module.cpp").exists()
        assert (Path(command[1]) / "packages" / "torch.py").exists()
        with zipfile.ZipFile(Path(command[1]) / "out" / "device.whl", "w") as wheel:
            wheel.writestr("habana_frameworks/__init__.py", "")

    def ensure(number: int, python: str = "3.11") -> Path:
        packages = tmp_path / str(number) / "packages"

        def made() -> Path:
            packages.mkdir(parents=True)
            (packages / "torch.py").touch()
            return packages

        work = packages.parent
        kept = hpu.ensure_wheel(made, work, requirements, python, lambda root, _: root.mkdir(), run)
        left = sorted(path.name for path in work.iterdir()) if work.exists() else []
        assert left in ([], ["packages"]), "the compiler does not stay"
        return kept

    for number in (1, 2):
        assert zipfile.ZipFile(ensure(number)).namelist() == ["habana_frameworks/__init__.py"]
    assert len(commands) == 1
    requirements.write_text("torch==2.13.1\n")
    ensure(3)
    assert len(commands) == 2
    assert len(list(tmp_path.glob("hpu-*.whl"))) == 1, "the older one is of no more use"
    ensure(4, python="3.13")
    assert len(list(tmp_path.glob("hpu-*.whl"))) == 2, "each Python has its own"
