"""What a stand-in management controller shows of a node: the published names, the node's faults, and what it is."""

from __future__ import annotations

import json
from typing import Any

import pytest
from simulated_machine import Machine

from gaudi3_simulator.node import bmc, faults

PROCESSORS = "/redfish/v1/Systems/system/Processors"


def shown(machine: Machine) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(machine.ok("node", "bmc").out)
    return found


def values(content: Any, name: str) -> list[Any]:
    """The values of a field, wherever it is in a resource."""
    if not isinstance(content, dict):
        return []
    return [each for key, each in content.items() if key == name] + [
        found for each in content.values() for found in values(each, name)
    ]


def test_it_says_that_it_is_none(machine: Machine) -> None:
    root = shown(machine)["/redfish/v1"]
    assert root["Product"] == "gaudi3-simulator stand-in, no management controller is real"
    assert root["RedfishVersion"]


def test_each_resource_is_at_its_path_and_each_link_leads_to_one(machine: Machine) -> None:
    found = shown(machine)
    assert {path: each["@odata.id"] for path, each in found.items()} == {path: path for path in found}
    links = [each["@odata.id"] for content in found.values() for each in content.get("Members", [])]
    # What is below a card's place in the chassis are its sensors.
    assert [link for link in links if link not in found and "/Chassis/OAM_" not in link] == []
    assert len(found[PROCESSORS]["Members"]) == 8


def test_a_card_is_at_the_place_of_its_module_number(machine: Machine) -> None:
    found = shown(machine)
    rows = machine.csv("module_id,serial,temperature.aip")
    for module, serial, temperature in rows:
        assert found[f"{PROCESSORS}/OAM_{module}"]["SerialNumber"] == serial
        sensor = found[f"/redfish/v1/Chassis/OAM_{module}/Sensors/currentSOCTemperature"]
        assert (sensor["Reading"], sensor["ReadingUnits"]) == (int(temperature), "Cel")


@pytest.mark.parametrize("kind", sorted(bmc.MIRRORED))
def test_a_mirrored_fault_is_seen_in_its_field_and_ends(kind: str, machine: Machine) -> None:
    machine.ok("manage_network_ifs.sh", "--up")
    sound = shown(machine)
    machine.ok("node", "fault", kind)
    broken = shown(machine)
    assert set(broken) == set(sound)
    different = {path for path in sound if broken[path] != sound[path]}
    assert different, kind
    name = bmc.MIRRORED[kind].rpartition(".")[2]
    if "Reading" not in name and " " not in name:
        assert any(values(broken[path], name) != values(sound[path], name) for path in different), different
    machine.ok("node", "fault", kind, "--clear")
    assert shown(machine) == sound


def test_faults_of_the_host_are_not_seen(machine: Machine) -> None:
    sound = shown(machine)
    for kind in (faults.HL_SMI_HANG, faults.HL_SMI_GARBAGE, faults.KERNEL_EVENT, faults.PCIE_WIDTH, faults.SLOW_CARD):
        machine.ok("node", "fault", kind)
    assert shown(machine) == sound


def test_a_card_off_the_bus_keeps_its_place_without_readings(machine: Machine) -> None:
    machine.ok("node", "fault", faults.CARD_MISSING, "--card", "2")
    found = shown(machine)
    assert len(found[PROCESSORS]["Members"]) == 8
    path = "/redfish/v1/Chassis/OAM_{}/Sensors/currentSOC54VPower"
    assert [found[path.format(module)]["Reading"] for module in range(8)].count(None) == 1


def test_the_driver_s_absurd_number_is_none_of_a_sensor(machine: Machine) -> None:
    machine.ok("node", "fault", faults.TEMPERATURE_ABSURD, "--card", "2")
    readings = [each["Reading"] for path, each in shown(machine).items() if path.endswith("SOCTemperature")]
    assert readings.count(None) == 1 and max(each for each in readings if each) < 100


def test_a_node_that_is_off_keeps_its_identity_and_has_no_reading(machine: Machine) -> None:
    before = shown(machine)
    off = bmc.switched_off(before)
    assert off["/redfish/v1/Chassis/chassis"]["PowerState"] == "Off"
    assert off[f"{PROCESSORS}/OAM_0"] == before[f"{PROCESSORS}/OAM_0"]
    assert {each["Reading"] for path, each in off.items() if "/Sensors/" in path} == {None}
    assert "Oem" not in off[f"{PROCESSORS}/OAM_0/ProcessorMetrics"]
    assert before["/redfish/v1/Chassis/chassis"]["PowerState"] == "On"


def test_a_node_that_was_never_seen_is_off_and_lists_no_card() -> None:
    off = bmc.switched_off({})
    assert off["/redfish/v1/Chassis/chassis"]["PowerState"] == "Off"
    assert off["/redfish/v1"]["Product"] == bmc.PRODUCT
    assert off[PROCESSORS]["Members"] == []
