"""What the product does not bear yet of a node that is as strict as the hardware: each test turns one rule on."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils.job_text import NodeShare, unit_text
from ansible_collections.gaudi3.scale.plugins.module_utils.jobs import JobSpec
from gaudi3_simulator import nodes, prepared
from gaudi3_simulator.home import Cluster as Simulated
from gaudi3_simulator.home import Node
from gaudi3_simulator.node import cli
from gaudi3_simulator.vendor.catalogue import MODULES_LOAD, modules_load

from . import host as hosts
from .cluster import Cluster
from .test_preflight import preflight

VAULT = "https://vault.habana.ai/artifactory/debian"


@pytest.fixture
def rule(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Turns the rule of the test on."""
    monkeypatch.setenv("GAUDI3_SIMULATOR_STRICTNESS", f"{request.param}=on")


@pytest.mark.xfail(strict=True, reason="no role gives the job's user a group, and no check opens the device files")
@pytest.mark.parametrize("rule", ["device-files-render"], indirect=True)
def test_preflight_names_a_device_file_that_the_user_cannot_open(rule: None, tmp_path: Path) -> None:
    cluster = Cluster(tmp_path / "site")
    cluster.gaudi(1, cards=1)
    assert cluster["gaudi-1"].mode("/dev/accel/accel0") == 0o660
    run = preflight(cluster)
    assert run.returncode != 0
    assert any("/dev/accel/accel0" in message and "render" in message for message in run.messages())


def test_preflight_names_a_foreign_sources_file(cluster: Cluster) -> None:
    """With the variable it is moved aside, and nothing else changes."""
    cluster.gaudi(1, cards=1)
    host = cluster["gaudi-1"]
    (path,) = [path for path in prepared.files() if path.startswith("/etc/apt/sources.list.d/")]
    host.write(path, prepared.files()[path].text.replace(prepared.REPOSITORY, VAULT))
    run = preflight(cluster)
    assert run.returncode != 0 and run.changed() == set()
    assert run.messages() == [
        f"{path} names {VAULT} already, which apt refuses to have twice; set synapseai_take_over_sources=true to "
        "move it aside, or remove it."
    ]
    run = cluster.role("synapseai", "--tags", "synapseai_install", synapseai_take_over_sources=True)
    assert run.returncode == 0, run.messages()
    assert run.result("gaudi-1", "Bring the packages to the release (apt)")["taken_over"] == [path]
    (backup,) = host.path("/etc/apt/sources.list.d").glob("habanalabs_synapseai.list*")
    assert backup.name.endswith("~")


@pytest.mark.xfail(strict=True, reason="gloo and HCCL publish the address that a node finds under its own name")
@pytest.mark.parametrize("rule", ["own-name-on-loopback"], indirect=True)
def test_a_job_names_the_interface_of_its_node(rule: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GAUDI3_SIMULATOR_HOME", str(tmp_path))
    cluster = Simulated("c", "10.42.0.0/16", [Node("gaudi-1", "10.42.0.11", 8), Node("gaudi-2", "10.42.0.12", 8)])
    cluster.folder.mkdir(parents=True)
    nodes.update_hosts(cluster)
    assert "127.0.1.1 gaudi-1" in (cluster.folder / "hosts-gaudi-1").read_text().splitlines()
    spec = JobSpec(
        name="demo", config={}, nodes=("gaudi-1", "gaudi-2"), head_address="10.42.0.11", processes_per_node=8
    )
    unit = unit_text(spec, NodeShare("/var/lib/gaudi3-scale/jobs/demo", address="10.42.0.11"))
    assert "GLOO_SOCKET_IFNAME" in unit
    assert "HCCL_SOCKET_IFNAME" in unit


@pytest.mark.parametrize("written", [True, False])
def test_the_driver_comes_back_after_a_reboot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], written: bool
) -> None:
    """By the file of the driver's role: with the vendor's alone it does not."""
    host = hosts.make(tmp_path / "gaudi-1", "gaudi-1", cards=2)  # as the driver's role leaves it
    host.write(MODULES_LOAD, modules_load(hosts.RELEASE))
    if written:
        ours = hosts.CHECKOUT / "roles/synapseai/files/modules-load.conf"
        host.write("/etc/modules-load.d/gaudi3-scale.conf", ours.read_text(encoding="utf-8"))
    monkeypatch.setenv("GAUDI3_SIMULATOR_ROOT", str(host.root))
    for volatile in ("/run", "/sys", "/dev"):
        shutil.rmtree(host.path(volatile))
    assert cli.main(["boot"]) == 0
    capsys.readouterr()
    assert cli.main(["status"]) == 0
    assert json.loads(capsys.readouterr().out)["driver_up"] is written
