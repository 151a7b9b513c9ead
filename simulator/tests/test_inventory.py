"""The inventory that the simulator gives to Ansible, and the record behind it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gaudi3_simulator.home import Cluster, Node, clusters, load_cluster
from gaudi3_simulator.inventory import inventory, main


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    monkeypatch.setenv("GAUDI3_SIMULATOR_HOME", str(tmp_path))
    made = Cluster(
        "rehearsal", "10.89.80.0/24",
        [Node("gaudi-1", "10.89.80.11", 8), Node("gaudi-2", "10.89.80.12", 8)], Node("monitor-1", "10.89.80.3"),
    )  # fmt: skip
    made.save()
    return made


def test_record_survives_a_round_trip(cluster: Cluster) -> None:
    cluster.network = "gaudi3-rehearsal-1f2e3d4c"
    cluster.save()
    assert load_cluster("rehearsal") == cluster
    assert clusters() == [cluster]
    assert load_cluster("other") is None


def test_groups_and_addresses(cluster: Cluster) -> None:
    made = inventory(cluster)
    assert made["gaudi"] == {"hosts": ["gaudi-1", "gaudi-2"]}
    assert made["gaudi_head"] == {"hosts": ["gaudi-1"]}
    assert made["monitoring"] == {"hosts": ["monitor-1"]}
    variables = made["_meta"]["hostvars"]["gaudi-2"]
    assert variables["ansible_host"] == "10.89.80.12"
    assert variables["ansible_ssh_private_key_file"].endswith("clusters/rehearsal/id_ed25519")
    # Host key checking stays on: the keys are recorded from inside the nodes.
    assert "StrictHostKeyChecking=yes" in variables["ansible_ssh_common_args"]


def test_script_prints_the_named_cluster(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GAUDI3_SIMULATOR_CLUSTER", "rehearsal")
    assert main(["--list"]) == 0
    assert json.loads(capsys.readouterr().out)["gaudi"]["hosts"] == ["gaudi-1", "gaudi-2"]


def test_no_cluster_gives_empty_groups(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GAUDI3_SIMULATOR_CLUSTER", "none-of-that-name")
    assert main(["--list"]) == 0
    assert json.loads(capsys.readouterr().out)["gaudi"] == {"hosts": []}
