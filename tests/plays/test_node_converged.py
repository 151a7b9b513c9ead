"""A Gaudi node that is as wanted is left out of all phases; what is disturbed there sends exactly its phase."""

from __future__ import annotations

import http.server
import itertools
import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from tests.stand_in_pytorch import Vendor

from . import disturb
from .cluster import Cluster
from .host import program
from .test_monitoring import ADDRESS
from .test_pytorch import where

PHASES = {"tuning", "drivers", "fabric", "firewall", "pytorch", "node_exporter", "hpu_exporter"}
EXPORTER, UNITS = "prometheus-node-exporter", "/etc/systemd/system"
#: By phase, what somebody or a fault does to the node for which that phase has to run. A path is one of the host.
DISTURBED: dict[str, list[list[str]]] = {
    "tuning": [
        ["put", "5", "/proc/sys/vm/nr_hugepages"],  # kernel setting
        ["put", "x", "/sys/devices/system/cpu/cpu1/cpufreq/scaling_governor"],  # governor of a processor
        ["rm", "/etc/sysctl.d/90-gaudi3-scale.conf"],  # settings of the next boot gone
        ["own", "/etc/security/limits.d/90-gaudi3-scale.conf"],  # limits of another user
        ["chmod", "600", "/etc/tmpfiles.d/gaudi3-scale.conf"],  # governor of the next boot closed
    ],
    "drivers": [
        ["put", "x", "/etc/modules-load.d/gaudi3-scale.conf"],  # modules of the next boot edited
        ["own", f"{UNITS}/gaudi3-scale-ports.service"],  # unit of the ports of another user
        ["rm", "/etc/tmpfiles.d/gaudi3-scale-logs.conf"],  # logs kept for ever
        ["unit", "gaudi3-scale-ports", "enabled", ""],  # unit of the ports not at boot
    ],
    "fabric": [
        ["put", "X=1", "/etc/gaudi3-scale/fabric.env"],  # environment edited
        ["chmod", "600", "/etc/gaudi3-scale/fabric.env"],  # environment closed
    ],
    "firewall": [
        ["rm", "../nft"],  # table emptied
        ["cut", "../nft"],  # rule removed
        ["put", "", "/etc/gaudi3-scale/firewall.nft"],  # rules edited
        ["own", "/etc/gaudi3-scale/firewall.nft"],  # rules of another user
        ["rm", f"{UNITS}/nftables.service.d/00-gaudi3-scale.conf"],  # drop-in gone
        ["unit", "gaudi3-scale-firewall", "enabled", ""],  # firewall not at boot
    ],
    "pytorch": [
        ["rm", "../../opt/torch"],  # PyTorch's link gone
    ],
    "trainer": [
        ["rm", "../../opt/scale/venv/bin/gaudi3-train"],  # trainer's command gone
        ["rm", "../../opt/scale/venv/lib/*/site-packages/*.pth"],  # vendor's folder hidden from the trainer
    ],
    "node_exporter": [
        ["rm", f"/etc/default/{EXPORTER}"],  # arguments gone
        ["unit", EXPORTER, "word", "stopped"],  # exporter stopped
        ["unit", EXPORTER, "word", "failed"],  # exporter failed
        ["unit", EXPORTER, "enabled", ""],  # exporter not at boot
        ["touch", f"/usr/bin/{EXPORTER}"],  # exporter newer than its process
    ],
    "hpu_exporter": [
        ["put", "x", f"{UNITS}/gaudi-hpu-exporter.service"],  # unit of the cards' exporter edited
        ["rm", "/usr/local/lib/gaudi-hpu-exporter/gaudi_hpu_page.py"],  # program of the exporter gone
        ["own", "/usr/local/lib/gaudi-hpu-exporter/_hl_smi/hl_smi.py"],  # program of another user
        ["unit", "gaudi-hpu-exporter", "word", "stopped"],  # cards' exporter stopped
    ],
}
#: Phases that are disturbed at the same time: where more run than these, one is sent by what is not its own.
SIDES = (("tuning", "fabric", "pytorch", "hpu_exporter"), ("drivers", "firewall", "trainer", "node_exporter"))
#: For these the drivers run, or say that the vendor's repository is not there. Phases behind them are asked later.
OF_THE_DRIVER = [
    ["package", "habanalabs-graph"],
    ["package", "build-essential"],
    ["rm", "/sys/module/habanalabs_ib"],
    ["put", "0x1002", "/sys/bus/pci/devices/*/net/*/flags"],
]


class Page(http.server.BaseHTTPRequestHandler):
    """What both exporters answer."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_arguments: Any) -> None:
        """Nothing."""


@pytest.fixture
def node(cluster: Cluster, wheel: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A node with driver, the packages of the distribution and nothing else, and what answers there."""
    servers = [http.server.ThreadingHTTPServer((ADDRESS, 0), Page) for _number in range(2)]
    ports = dict(zip(("hpu_exporter_port", "node_exporter_port"), (each.server_port for each in servers), strict=True))
    cluster.gaudi(1, cards=1)
    cluster.variables["gaudi-1"] |= {"gaudi_cluster_address": ADDRESS, **ports}
    host = cluster["gaudi-1"]
    packages = json.loads((host.folder / "packages.json").read_text())
    host.give(packages={**packages, "nftables": "1.0.6", EXPORTER: "1.3.1-1"})
    program(host, "manage_network_ifs.sh", "manage_network_ifs", "main", ", release='1.23.0-695'")
    ports_script = (host.folder / "bin/manage_network_ifs.sh").read_text()
    host.write("/opt/habanalabs/qual/gaudi3/bin/manage_network_ifs.sh", ports_script, 0o755)
    host.path("/usr/sbin").mkdir(parents=True, exist_ok=True)
    host.path("/usr/sbin/nft").symlink_to(host.folder / "bin/nft")
    for unit, text in ((EXPORTER, ""), ("nftables", "ExecStart=/usr/sbin/nft -f /etc/nftables.conf\n")):
        host.write(f"/lib/systemd/system/{unit}.service", f"[Service]\n{text}")
    host.write(f"/usr/bin/{EXPORTER}", "", 0o755)
    host.write("/proc/sys/vm/nr_hugepages", "0\n")
    for number in range(2):
        host.write(f"/sys/devices/system/cpu/cpu{number}/cpufreq/scaling_governor", "powersave\n")
    for server in servers:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    made = Vendor(tmp_path_factory.mktemp("vendor"))
    made.tarballs()
    opt = cluster.folder / "opt"
    with made.served() as address:
        cluster.all = {
            "trainer_wheel": wheel, "trainer_root": str(opt / "scale"), "trainer_dependencies": "preinstalled",
            "trainer_user": "root", "firewall_enabled": True,
            **where(address, opt, pytorch_requirements=[]),
        }  # fmt: skip
        yield cluster
    for server in servers:
        server.shutdown()


def looks(cluster: Cluster, rounds: list[list[list[str]]]) -> list[dict[str, Any]]:
    """What the plan says of the node behind each of the rounds of disturbances."""
    wheel = {"import_role": {"name": "gaudi3.scale.trainer", "tasks_from": "wheel", "rolespec_validate": False}}
    tasks: list[dict[str, Any]] = [{"name": "Build the trainer", **wheel}]
    for number, acts in enumerate(rounds):
        tasks += [
            disturb.task(cluster["gaudi-1"].folder, acts),
            {"name": f"Look {number}", "gaudi3.scale.gaudi_host_plan": None},
        ]
    path = cluster.folder / "disturb.yml"
    path.write_text(json.dumps([{"hosts": "gaudi", "gather_facts": False, "tasks": tasks}]))
    run = cluster.play(str(path))
    assert run.returncode == 0, (run.messages(), run.output)
    return [run.result("gaudi-1", f"Look {number}") for number in range(len(rounds))]


def sent(look: dict[str, Any]) -> set[str]:
    """The phases that a plan sends. The trainer's goes by its own answer, as root is no user as jobs have it."""
    assert look["problem"] == "", look["problem"]
    return (PHASES - set(look["leave"])) | ({"trainer"} if look["found"]["trainer"]["changed"] else set())


def test_each_disturbance_of_a_converged_node_sends_its_phase(node: Cluster) -> None:
    predicted = node.play("site.yml", "--check")
    first = node.play("site.yml")
    assert (first.returncode, first.messages(), first.changed()) == (0, [], predicted.changed())
    assert node.play("site.yml").changed() == {("gaudi-1", "gaudi3.scale.trainer : Create the user of the jobs")}
    rounds: list[dict[str, list[str]]] = [{}]
    for side in SIDES:
        for acts in itertools.zip_longest(*(DISTURBED[phase] for phase in side)):
            rounds.append({phase: each for phase, each in zip(side, acts, strict=True) if each})
    found = looks(node, [*([*each.values()] for each in rounds), *([each] for each in OF_THE_DRIVER)])
    for disturbed, look in zip(rounds, found, strict=False):
        assert (disturbed, sent(look)) == (disturbed, set(disturbed))
    for disturbance, look in zip(OF_THE_DRIVER, found[len(rounds) :], strict=True):
        assert (disturbance, "drivers" in look["leave"]) == (disturbance, False)
