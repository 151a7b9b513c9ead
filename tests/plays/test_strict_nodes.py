"""What the product does not bear yet of a node that is as strict as the hardware: each test turns one rule on."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._jobs import needs as job_needs
from ansible_collections.gaudi3.scale.plugins.module_utils._jobs.launch_command import NodeShare
from ansible_collections.gaudi3.scale.plugins.module_utils._jobs.spec import JobSpec
from ansible_collections.gaudi3.scale.plugins.module_utils._jobs.unit import unit_text
from gaudi3_simulator import nodes, prepared
from gaudi3_simulator.home import Cluster as Simulated
from gaudi3_simulator.home import Node
from gaudi3_simulator.node import cli
from gaudi3_simulator.vendor.catalogue import MODULES_LOAD, modules_load

from . import host as hosts
from .cluster import Cluster
from .test_preflight import VAULT, preflight


def ip(argv: list[str]) -> tuple[int, str, str]:
    """ip of the first node: net0 has its address, and leads to its network."""
    if argv[2] == "address":
        lo = {"ifname": "lo", "flags": ["LOOPBACK"], "addr_info": [{"local": "127.0.0.1"}, {"local": "127.0.1.1"}]}
        net = {"ifname": "net0", "flags": ["UP"], "addr_info": [{"local": "10.42.0.11"}, {"local": "fe80::1"}]}
        return 0, json.dumps([lo, net]), ""
    assert argv[2:4] == ["route", "get"]
    near = argv[4].startswith("10.42.0.")
    return (0, json.dumps([{"dst": argv[4], "dev": "net0"}]), "") if near else (2, "", "unreachable")


@pytest.fixture
def rule(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Turns the rule of the test on."""
    monkeypatch.setenv("GAUDI3_SIMULATOR_STRICTNESS", f"{request.param}=on")


def test_preflight_names_a_device_file_that_the_user_cannot_open(tmp_path: Path) -> None:
    """By default the job gets the group that owns it; here the site gives it none."""
    cluster = Cluster(tmp_path / "site")
    cluster.gaudi(1, cards=1)
    assert cluster["gaudi-1"].mode("/dev/accel/accel0") == 0o660
    without_pytorch = ("--tags", "preflight", "--skip-tags", "pytorch")
    run = cluster.play("site.yml", "--check", *without_pytorch, trainer_groups=[])
    assert run.returncode != 0 and run.changed() == set()
    assert run.messages() == [
        "gaudi3-scale cannot open /dev/accel/accel0 on gaudi-1 (owner root, group render, mode 0660), which a job on "
        "its cards needs: add the group to trainer_groups, or give the file to another group by a udev rule and add "
        "that."
    ]


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


@pytest.mark.parametrize(
    ("address", "peers"), [("10.42.0.11", []), ("gaudi-1", ["gaudi-2"]), ("203.0.113.7", ["nowhere", "10.42.0.12"])]
)
def test_a_job_names_the_interface_of_its_node(
    address: str, peers: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GAUDI3_SIMULATOR_HOME", str(tmp_path))
    cluster = Simulated("c", "10.42.0.0/16", [Node("gaudi-1", "10.42.0.11", 8), Node("gaudi-2", "10.42.0.12", 8)])
    cluster.folder.mkdir(parents=True)
    nodes.update_hosts(cluster)
    lines = (cluster.folder / "hosts-gaudi-1").read_text().splitlines()
    assert "127.0.1.1 gaudi-1" in lines
    known = {name: [at] for at, name in (line.split(" ") for line in lines)}
    monkeypatch.setattr(job_needs, "_resolved", lambda name: [name] if name[0].isdigit() else known.get(name, []))
    interface = job_needs.find_interface(ip, "ip", address, peers)
    assert interface == "net0"
    spec = JobSpec(
        name="demo", config={}, nodes=("gaudi-1", "gaudi-2"), head_address="10.42.0.11", processes_per_node=8
    )
    share = NodeShare("/var/lib/gaudi3-scale/jobs/demo", address="10.42.0.11", interface=interface)
    unit = unit_text(spec, share).splitlines()
    assert "Environment=GLOO_SOCKET_IFNAME=net0" in unit
    assert "Environment=HCCL_SOCKET_IFNAME=net0" in unit


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
