"""The fabric of one host without cables, and of hosts whose cards show no network ports."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.served_folder import served

from .cluster import Cluster


@pytest.fixture
def mirror(tmp_path: Path) -> Iterator[str]:
    """A server with files of the wrapper's names."""
    (tmp_path / "mirror").mkdir()
    for name in ("hccl_ofi_wrapper.cpp", "hccl_ofi_wrapper.h", "hccl_ofi_wrapper_interface.h"):
        (tmp_path / "mirror" / name).write_text("// not the real one\n")
    with served(tmp_path / "mirror") as address:
        yield address


def test_one_host_names_the_ports_that_are_down(cluster: Cluster) -> None:
    cluster.gaudi(1, cards=2, profile="single")
    run = cluster.role("fabric", fabric_ports_wait=0)
    assert run.returncode == 0, run.messages()
    (said,) = run.result("gaudi-1", "Tell what does not leave a host")["msg"]
    assert said.startswith("gaudi-1: External ports without a link: card ") and said.count(") port ") == 6
    several = cluster.role("fabric", fabric_ports_wait=0, fabric_ports="up")
    assert several.returncode != 0 and "6 of 6 external ports stayed down" in several.messages()[0]


def test_the_ports_of_a_gaudi_2_are_brought_up_by_its_own_script(cluster: Cluster) -> None:
    """Its external ports have other numbers, and the vendor's script lies in its generation's folder."""
    cluster.add("two", "gaudi", "gaudi_head", cards=2, board="HL-225", profile="single")
    host = cluster["two"]
    script = host.path("/opt/habanalabs/qual/gaudi2/bin/manage_network_ifs.sh")
    script.parent.mkdir(parents=True)
    script.write_text(f"#!/bin/sh\necho gaudi2 $* >> {host.folder}/calls\n")
    script.chmod(0o755)
    run = cluster.play("site.yml", "--tags", "fabric", fabric_ports_wait=0, fabric_ports="up")
    assert run.returncode != 0 and any(call.startswith("gaudi2 --up") for call in host.calls), run.output
    (said,) = run.messages()
    assert "6 of 6 external ports stayed down" in said and "port 8" in said and "port 22" in said, said


def test_one_host_without_port_devices_needs_nothing(cluster: Cluster) -> None:
    cluster.gaudi(1, cards=1, profile="vm")
    run = cluster.play("site.yml", "--check", "--tags", "fabric", fabric_ofi_wrapper_url="http://127.0.0.1:1")
    assert run.returncode == 0, run.messages()
    assert run.result("gaudi-1", "Tell what does not leave a host")["msg"] == [
        "gaudi-1: The cards show no network ports: collectives stay within this host."
    ]


def test_several_hosts_without_a_way_are_refused_first_of_all(cluster: Cluster) -> None:
    cluster.gaudi(2, cards=1, profile="vm")
    cluster.add("bare", "gaudi", cards=1, driver=False, packages=True, variables={"gaudi_cloud": "ibm"})
    cluster.add("cabled", "gaudi", cards=1)
    given = {"fabric_ofi_wrapper_archive": "/srv/hccl_ofi_wrapper.tar.gz"}
    cluster.add("given", "gaudi", cards=1, profile="vm", variables=given)
    run = cluster.play("site.yml", "--check", "--tags", "fabric", fabric_ofi_wrapper_url="http://127.0.0.1:1/x")
    assert run.returncode != 0 and run.changed() == set()
    refused = {message.split(": ")[0]: message for message in run.messages()}
    assert set(refused) == {"gaudi-1", "gaudi-2", "bare"}
    assert refused["gaudi-1"].startswith(
        "gaudi-1: its cards show no network ports, so collectives between the 5 Gaudi hosts need libfabric and "
        "HabanaAI's OFI wrapper, whose source cannot be fetched ("
    )
    assert "Connection refused" in refused["gaudi-1"] and "open the way to http://127.0.0.1:1/x" in refused["gaudi-1"]
    assert refused["bare"].startswith("bare: IBM Cloud has no cluster network for its cards, so")


def test_several_hosts_with_a_source_are_planned(cluster: Cluster, mirror: str) -> None:
    cluster.gaudi(2, cards=1, profile="vm")
    cluster.all = {"fabric_ofi_wrapper_url": mirror, "fabric_ofi_wrapper_packages": ["ethtool"]}
    run = cluster.play("site.yml", "--check", "--diff", "--tags", "fabric")
    assert run.returncode == 0, run.messages()
    assert run.result("gaudi-1", "Build the wrapper")["built"] is True
    environment = run.result("gaudi-2", "Write the collective library's configuration")["environment"]
    assert environment["HCCL_OVER_OFI"] == "1" and set(environment) <= {"HCCL_OVER_OFI", "HCCL_SOCKET_IFNAME"}


def test_addresses_that_a_site_wrote_itself_stop_it_before_anything_changes(cluster: Cluster) -> None:
    cluster.gaudi(2)
    written = cluster["gaudi-2"].path("/etc/habanalabs/gaudinet.json")
    written.parent.mkdir(parents=True, exist_ok=True)
    written.write_text('{"NIC_NET_CONFIG": []}')
    run = cluster.play("site.yml", "--tags", "drivers,fabric")
    assert run.returncode != 0
    assert any("mode=unmanaged" in message for message in run.messages()), run.messages()
    assert written.read_text() == '{"NIC_NET_CONFIG": []}'
    assert run.changed() == set()


WRITTEN = "gaudi3.scale.fabric : Write the collective library's configuration"
LLDPCLI = """#!/bin/sh
cat {folder}/neighbours.json
"""


def neighbour(port: int, address: str) -> dict[str, object]:
    """A switch at a port of the host, as lldpcli 1.0.16 writes it with -f json0."""
    return {
        "name": f"hl{port}",
        "chassis": [{"id": [{"type": "mac", "value": "06:05:04:03:02:01"}], "name": [{"value": "leaf1"}]}],
        "port": [{"id": [{"type": "ifname", "value": f"Ethernet{port}"}], "descr": [{"value": address}]}],
    }


@pytest.fixture
def routed(cluster: Cluster) -> Cluster:
    """A host of one card whose three ports are up, and their switch, which lldpd has heard."""
    cluster.gaudi(1, cards=1)
    host = cluster["gaudi-1"]
    host.give(packages={**json.loads((host.folder / "packages.json").read_text()), "lldpd": "1.0.16-1"})
    host.write("/lib/systemd/system/lldpd.service", "[Service]\nExecStart=/usr/sbin/lldpd\n")
    host.unit("lldpd")
    program = host.folder / "bin/lldpcli"
    program.write_text(LLDPCLI.format(folder=host.folder))
    program.chmod(0o755)
    return cluster


#: A fabric whose addresses the switches tell.
ROUTED: dict[str, Any] = {
    "fabric_mode": "l3",
    "fabric_lldp": True,
    "fabric_lldp_wait": 0,
    "fabric_ports": "reported",
}


def heard(cluster: Cluster, *found: dict[str, object]) -> list[str]:
    """Let lldpd have heard these; the names of the host's ports."""
    host = cluster["gaudi-1"]
    names = sorted(path.name for path in host.path("/sys/bus/pci/devices").glob("*/net/*"))
    for number, each in enumerate(found):
        each["name"] = names[number]
    host.give(neighbours={"lldp": [{"interface": list(found)}]})
    return names


def test_switches_tell_the_addresses_of_a_routed_fabric(routed: Cluster) -> None:
    names = heard(routed, *(neighbour(port, f"gaudi-1 10.0.1.{4 * port + 2}/30") for port in range(3)))
    assert len(names) == 3
    predicted = routed.role("fabric", "--check", "--diff", **ROUTED)
    assert predicted.returncode == 0, predicted.messages()
    run = routed.role("fabric", **ROUTED)
    assert run.returncode == 0, run.messages()
    assert predicted.changed() == run.changed() == {("gaudi-1", WRITTEN)}
    written = json.loads(routed["gaudi-1"].path("/etc/habanalabs/gaudinet.json").read_text())["NIC_NET_CONFIG"]
    assert sorted(each["NIC_IP"] for each in written) == ["10.0.1.1", "10.0.1.5", "10.0.1.9"]
    assert {each["GATEWAY_MAC"] for each in written} == {"06:05:04:03:02:01"}
    assert routed.role("fabric", **ROUTED).changed() == set()
    site = routed.play("site.yml", "--check", "--tags", "fabric", **ROUTED)
    assert site.returncode == 0, site.messages()
    assert site.changed() == set()


def test_a_port_without_a_neighbour_leaves_the_file_as_it_was(routed: Cluster) -> None:
    names = heard(routed, *(neighbour(port, f"10.0.1.{4 * port + 2}/30") for port in range(2)))
    run = routed.role("fabric", **ROUTED)
    assert run.returncode != 0 and run.changed() == set()
    assert run.messages() == [
        f"port {names[2]} of gaudi-1 has no LLDP neighbour: plug it in, bring it up, and have its switch speak LLDP."
    ]
    assert not routed["gaudi-1"].path("/etc/habanalabs/gaudinet.json").exists()


def test_a_dry_run_before_lldpd_says_that_the_addresses_are_not_known(routed: Cluster) -> None:
    (routed["gaudi-1"].folder / "bin/lldpcli").unlink()
    options: dict[str, Any] = {"fabric_mode": "l3", "fabric_lldp": True, "fabric_ports": "reported"}
    run = routed.role("fabric", "--check", "--diff", **options)
    assert run.returncode == 0, run.messages()
    assert run.changed() == {("gaudi-1", WRITTEN)}
    said = run.result("gaudi-1", "Write the collective library's configuration")
    assert said["warnings"] == [
        "The addresses that LLDP tells are known once lldpd runs and all external ports are up."
    ]
    assert "the addresses that LLDP tells" in said["diff"][0]["after"]
