"""The fabric of one host without cables, and of hosts whose cards show no network ports."""

from __future__ import annotations

import socketserver
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler
from pathlib import Path

import pytest

from .cluster import Cluster


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Requests are not logged."""


@pytest.fixture
def mirror(tmp_path: Path) -> Iterator[str]:
    """A server with files of the wrapper's names."""
    (tmp_path / "mirror").mkdir()
    for name in ("hccl_ofi_wrapper.cpp", "hccl_ofi_wrapper.h", "hccl_ofi_wrapper_interface.h"):
        (tmp_path / "mirror" / name).write_text("// not the real one\n")
    with socketserver.ThreadingTCPServer(
        ("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path / "mirror"))
    ) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def test_one_host_names_the_ports_that_are_down(cluster: Cluster) -> None:
    cluster.gaudi(1, cards=2, profile="single")
    run = cluster.role("fabric", fabric_ports_wait=0)
    assert run.returncode == 0, run.messages()
    said = run.result("gaudi-1", "Tell what does not leave this host")["msg"]
    assert said.startswith("External ports without a link: card ") and said.count(") port ") == 6
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
    assert run.result("gaudi-1", "Tell what does not leave this host")["msg"] == (
        "The cards show no network ports: collectives stay within this host."
    )


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
