"""What the role fabric leaves on a node."""

from __future__ import annotations

from typing import Any

testinfra_hosts = ["ansible://gaudi"]


def external_ports(host: Any) -> dict[str, dict[int, str]]:
    """Link states of the external ports by card, asked as a person would."""
    bus_ids = host.check_output("hl-smi -Q bus_id -f csv,noheader").split()
    links: dict[str, dict[int, str]] = {}
    for bus_id in bus_ids:
        listed = host.check_output(f"hl-smi -n ports -i {bus_id}").splitlines()
        external = [int(line.split()[1].rstrip(":")) for line in listed if line.endswith("external")]
        numbers = ",".join(map(str, external))
        states = host.check_output(f"hl-smi -n link -i {bus_id} -P {numbers}").splitlines()
        links[bus_id] = {port: line.split(":")[1].strip() for port, line in zip(external, states, strict=True)}
    return links


def test_every_external_port_is_up(host: Any) -> None:
    links = external_ports(host)
    assert len(links) == 8
    assert {len(ports) for ports in links.values()} == {3}
    assert {state for ports in links.values() for state in ports.values()} == {"UP"}


def test_layer_2_has_no_address_file(host: Any) -> None:
    assert not host.file("/etc/habanalabs/gaudinet.json").exists


def test_environment_of_the_collective_library(host: Any) -> None:
    environment = host.file("/etc/gaudi3-scale/fabric.env")
    assert environment.content_string.splitlines()[1:] == ["HCCL_SOCKET_IFNAME=eth0"]
    assert environment.mode == 0o644
    shown = host.check_output("systemd-run --wait --pipe -q -p EnvironmentFile=/etc/gaudi3-scale/fabric.env env")
    assert "HCCL_SOCKET_IFNAME=eth0" in shown.splitlines()


def test_facts_name_the_fabric(host: Any) -> None:
    result = host.ansible("gaudi3.scale.gaudi_fabric_facts", check=False)
    facts = result["ansible_facts"]["gaudi_fabric"]
    assert (facts["kind"], facts["candidates"]) == ("gaudi", ["gaudi"])
    assert len(facts["ports"]) == 24
    assert {port["state"] for port in facts["ports"]} == {"up"}
