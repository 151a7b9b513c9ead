"""What site.yml leaves behind on Gaudi nodes, seen from outside."""

from __future__ import annotations

import json
import socket
from typing import Any

import pytest

testinfra_hosts = ["gaudi"]

TLS = "/etc/gaudi3-scale/hpu-exporter"
CERTIFICATE = f"--cacert {TLS}/ca.crt --cert {TLS}/metrics.crt --key {TLS}/metrics.key"
JOB = "/var/lib/gaudi3-scale/jobs/demo"


@pytest.fixture
def address(host: Any) -> str:
    """The node's address on the cluster network."""
    found: str = host.ansible.get_variables()["ansible_host"]
    return found


def test_the_driver_of_the_release_runs(host: Any) -> None:
    assert host.file("/sys/module/habanalabs/version").content_string.strip() == "1.23.0-2eae87a"
    rows = host.check_output("hl-smi -Q index,driver_version -f csv,noheader").splitlines()
    assert sorted(rows) == [f"{index}, 1.23.0-2eae87a" for index in range(8)]
    assert "habanalabs-dkms" in host.check_output("apt-mark showhold").split()


def test_external_ports_are_up(host: Any) -> None:
    status = host.check_output("/opt/habanalabs/qual/gaudi3/bin/manage_network_ifs.sh --status")
    assert status.count("3 ports up") == 8
    assert "ports down" not in status


@pytest.mark.parametrize("port", [9100, 41611])
def test_exporters_listen_on_the_cluster_network_only(host: Any, address: str, port: int) -> None:
    assert host.socket(f"tcp://{address}:{port}").is_listening
    assert not host.socket(f"tcp://127.0.0.1:{port}").is_listening


@pytest.mark.parametrize("port", [9100, 41611])
def test_exporters_do_not_answer_who_is_no_monitoring_host(address: str, port: int) -> None:
    """This program is neither a node nor the monitoring host; ssh answers it."""
    socket.create_connection((address, 22), timeout=5).close()
    with pytest.raises(TimeoutError):
        socket.create_connection((address, port), timeout=2)


@pytest.mark.parametrize("port", [9100, 41611])
def test_exporters_answer_nobody_without_a_certificate(host: Any, address: str, port: int) -> None:
    assert host.run(f"curl -s {CERTIFICATE} https://{address}:{port}/metrics").rc == 0
    for given in (f"http://{address}", f"--cacert {TLS}/ca.crt https://{address}"):
        assert "# TYPE" not in host.run(f"curl -s {given}:{port}/metrics").stdout


def test_every_card_is_exported_in_intels_names(host: Any, address: str) -> None:
    page = host.check_output(f"curl -s {CERTIFICATE} https://{address}:41611/metrics")
    assert sum(line.startswith("habanalabs_power_mW{") for line in page.splitlines()) == 8
    up = [line for line in page.splitlines() if line.startswith("habanalabs_nic_port_status{") and "external" in line]
    assert len(up) == 24
    assert all(line.endswith(" 1") for line in up)


def test_training_learnt_and_left_a_checkpoint(host: Any) -> None:
    status = json.loads(host.file(f"{JOB}/status.json").content_string)
    assert (status["state"], status["step"], status["world_size"]) == ("finished", status["max_steps"], 4)
    # Well below what knowing the frequency of each byte gives.
    assert status["loss"] < 0.75 * status["baseline_loss"]
    assert status["checkpoint_step"] == status["max_steps"] >= 120
    checkpoint = host.file(status["checkpoint"])
    assert checkpoint.is_directory
    assert checkpoint.user == "gaudi3-scale"


def test_both_nodes_saw_the_same_training(host: Any) -> None:
    lines = [json.loads(line) for line in host.file(f"{JOB}/metrics.jsonl").content_string.splitlines()]
    assert [line["step"] for line in lines] == sorted({line["step"] for line in lines})
    assert lines[-1]["step"] == json.loads(host.file(f"{JOB}/status.json").content_string)["max_steps"]


def test_nothing_failed(host: Any) -> None:
    assert host.check_output("systemctl --failed --no-legend --plain") == ""
