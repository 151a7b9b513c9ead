"""What a management controller says of its cards: by the published model, and whatever it answers."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._bmc.cards import (
    QUIET,
    RAISED,
    UNCLEAR,
    Machine,
    Reader,
    look,
    sensor_of,
    state_of,
    value_of,
)  # fmt: skip
from ansible_collections.gaudi3.scale.plugins.module_utils._bmc.redfish import Unread
from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal
from tests.stand_in_bmc import tree

ROOT = "/redfish/v1"
OAM = f"{ROOT}/Systems/system/Processors/OAM_3"
HBM = f"{ROOT}/Systems/system/Memory/OAM_3/MemoryMetrics"
#: The resources of the map that are read, with N for a number.
MODEL = {
    "Chassis", "Chassis/chassis", "Systems/system/Processors", "Systems/system/Memory",
    "Systems/system/Processors/OAM_N", "Systems/system/Processors/OAM_N/ProcessorMetrics",
    "Systems/system/Processors/OAM_N/CacheMemory/N/MemoryMetrics", "Systems/system/Memory/OAM_N/MemoryMetrics",
    *(f"Chassis/OAM_N/Sensors/{name}" for name in (
        "cTemp", "currentSOCTemperature", "currentHBMTemperature", "current_board_temperature",
        "current_vrm_temperature", "currentSOC54VPower", "currentSOC12VPower")),
}  # fmt: skip


class Told:
    """A controller that has these resources."""

    def __init__(self, resources: Mapping[str, Any]) -> None:
        self.resources = dict(resources)
        self.asked: list[str] = []

    def first(self) -> Any:
        return self.get(ROOT)

    def get(self, path: str) -> Any:
        self.asked.append(path)
        found = self.resources.get(path)
        if found is None:
            raise Unread("it has no such resource (HTTP 404)", is_absent=True)
        if isinstance(found, Exception):
            raise found
        return found


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return tree(tmp_path_factory.mktemp("node"))


def read(resources: Mapping[str, Any], ports: bool = False) -> Machine:
    return Reader(Told(resources), lambda: 1_700_000_000.0).machine(ports)  # type: ignore[arg-type]


def changed(resources: Mapping[str, Any], path: str, content: Any) -> dict[str, Any]:
    return {**resources, path: content}


def test_a_sound_machine_has_nothing_to_say(healthy: dict[str, Any]) -> None:
    machine = read(healthy)
    facts = machine.as_facts()
    assert machine.said == [] and facts["complete"]
    assert (facts["power"], facts["card_count"]) == ("On", 8)
    assert "no management controller is real" in facts["product"]
    card = facts["cards"][3]
    assert card["oam"] == 3 and re.fullmatch(r"A\w+", card["serial"])
    assert card["temperatures"]["soc"]["unit"] == "Cel" and 30 < card["temperatures"]["soc"]["reading"] < 45
    assert card["power"]["soc_54v"]["unit"] == "W" and card["power"]["soc_54v"]["reading"] > 200
    assert card["memory"]["double_errors"] == 0 and card["memory"]["alarm_uncorrected"] is False
    assert card["alerts"] == [] and card["ports"] == []
    json.dumps(facts, allow_nan=False)


def test_only_resources_of_the_published_model_are_asked_for(healthy: dict[str, Any]) -> None:
    told = Told(healthy)
    Reader(told).machine()  # type: ignore[arg-type]
    paths = {re.sub(r"(?<=[_/])\d+(?=/|$)", "N", each[len(ROOT) + 1 :]) for each in told.asked[1:]}
    assert paths == MODEL
    assert len(told.asked) == len(set(told.asked)) == 5 + 8 * 11


def test_ports_are_read_where_they_are_asked_for(healthy: dict[str, Any]) -> None:
    ports = read(healthy, ports=True).as_facts()["cards"][0]["ports"]
    assert [each["port"] for each in ports] == [str(number) for number in range(24)]
    assert ports[0]["state"]["pcs"] == "Connected" and ports[0]["speed_gbps"] == 200


@pytest.mark.parametrize(
    ("kind", "where", "value"),
    [
        ("ecc-uncorrected", "memory.double_errors", 2),
        ("ecc-corrected", "memory.single_errors", 2),
        ("throttled-thermal", "status.throttled_by_heat", 2),
        ("throttled-power", "status.throttled_by_power", 2),
        ("row-pending", "memory.row_replacements", "Pending"),
        ("temperature-zero", "temperatures.soc.reading", 0.0),
    ],
)
def test_a_fault_of_the_simulator_is_seen(kind: str, where: str, value: object, tmp_path: Path) -> None:
    count = {"count": 2} if value == 2 else {}
    facts = read(tree(tmp_path, {"kind": kind, "card": 0, **count})).as_facts()
    found = [look(card, where) for card in facts["cards"]]
    assert found.count(value) == 1, found


def test_a_dead_card_is_told_by_its_place_with_an_advice(tmp_path: Path) -> None:
    machine = read(tree(tmp_path, {"kind": "cpu-timeout", "card": 0}))
    (alert,) = [alert for card in machine.cards for alert in card.alerts]
    assert (alert.field, alert.name, alert.state) == ("Watchdog.Heartbeat", "HEARTBEAT", RAISED)
    assert (alert.severity, alert.action) == ("error", "reload")
    assert machine.said == [alert.message]
    assert re.fullmatch(r"OAM_\d: the card's firmware does not answer \(Watchdog\.Heartbeat is 1\)", alert.message)


def test_a_card_that_the_host_lost_is_still_listed(tmp_path: Path) -> None:
    machine = read(tree(tmp_path, {"kind": "card-missing", "card": 0}))
    assert len(machine.cards) == 8
    (lost,) = [card for card in machine.cards if card.temperatures["soc"].reading is None]
    assert lost.serial


@pytest.mark.parametrize(
    ("value", "state"),
    [
        (None, QUIET), (0, QUIET), (0.0, QUIET), (False, QUIET), ("", QUIET), ("Normal", QUIET), ("No failure", QUIET),
        (1, RAISED), (-1, RAISED), (True, RAISED), ("true", RAISED), ("Fail", RAISED), ("Perhaps", UNCLEAR),
    ],
)  # fmt: skip
def test_a_value_is_raised_quiet_or_unclear(value: Any, state: str) -> None:
    assert state_of(value) == state


def test_a_value_without_a_meaning_is_said_and_not_raised(healthy: dict[str, Any]) -> None:
    alerts = {"Oem": {"Intel": {"Alert": {"D2D": {"D2DErrorState": "Odd\x1b[2J", "D2DCoreIndex": 7}}}}}
    machine = read(changed(healthy, f"{OAM}/ProcessorMetrics", alerts))
    # A place is no alert of its own.
    assert [(each.field, each.state) for each in machine.cards[3].alerts] == [("D2D.D2DErrorState", UNCLEAR)]
    said = r'OAM_3: D2D.D2DErrorState has the value "Odd\x1b[2J", whose meaning is not published'
    assert machine.said == [said]


def test_names_are_found_whatever_their_case() -> None:
    assert look({"oem": {"INTEL": {"alert": 1}}}, "Oem.Intel.Alert") == 1
    assert look({"@odata.id": "/x"}, "@odata.id") == "/x"
    for content in ({}, {"Oem": None}, {"Oem": [1]}, {"Oem": {"Intel": 5}}):
        assert look(content, "Oem.Intel.Alert") is None


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("12", 12), (" -1.5 ", -1.5), ("1e3", 1000.0), ("0x12", "0x12"), ("a\nb", "a\\nb"), (True, True),
        (10**30, None), ("9" * 30, None),
        ("9" * 300, "9" * 197 + "..."), (float("nan"), None), ([], None), ({}, None), (None, None),
    ],
)  # fmt: skip
def test_values_are_numbers_texts_or_truths(value: object, found: object) -> None:
    assert value_of(value) == found


def test_a_reading_is_in_its_unit_or_shown_as_it_came() -> None:
    thresholds = {"UpperCaution": {"Reading": 800_000}, "UpperCritical": {"Reading": None}}
    milli = sensor_of({"Reading": 226_400, "ReadingUnits": "mW", "Thresholds": thresholds}, "W")
    assert (milli.reading, milli.unit, milli.upper_caution, milli.upper_critical) == (226.4, "W", 800.0, None)
    for unit in (None, "F", "W", 5):
        found = sensor_of({"Reading": 36, "ReadingUnits": unit}, "Cel")
        assert (found.reading, found.unit) == (36, None), unit
    assert sensor_of({"Reading": True, "ReadingUnits": "Cel"}, "Cel").reading is None


def test_what_is_missing_is_named_and_the_rest_is_read(healthy: dict[str, Any]) -> None:
    resources = {path: each for path, each in healthy.items() if "currentHBM" not in path}
    machine = read(changed(resources, HBM, Unread("HTTP 500")))
    facts = machine.as_facts()
    assert "Chassis/OAM_3/Sensors/currentHBMTemperature" in facts["absent"] or len(facts["absent"]) == 20
    assert facts["unread"] == ["Systems/system/Memory/OAM_3/MemoryMetrics: HTTP 500"] and not facts["complete"]
    assert facts["cards"][3]["memory"] == {} and facts["cards"][4]["memory"]
    assert machine.said == ["1 answers are missing: Systems/system/Memory/OAM_3/MemoryMetrics: HTTP 500"]


def test_a_machine_that_is_off_is_said_to_be(healthy: dict[str, Any]) -> None:
    machine = read(changed(healthy, f"{ROOT}/Chassis/chassis", {"PowerState": "Off"}))
    assert machine.said == ["the machine's power is Off"]


def test_a_controller_without_cards_says_so(healthy: dict[str, Any]) -> None:
    machine = read(changed(healthy, f"{ROOT}/Systems/system/Processors", {"Members": []}))
    assert machine.said == ["the controller lists no card"]


@pytest.mark.parametrize(
    "members",
    [None, 5, "OAM_3", {"a": 1}, [None, 5, {"@odata.id": 5}, {"@odata.id": "/"}, {"@odata.id": "/x/OAM_1%2f.."}]],
)
def test_odd_lists_hold_no_cards(members: object, healthy: dict[str, Any]) -> None:
    assert read(changed(healthy, f"{ROOT}/Systems/system/Processors", {"Members": members})).cards == ()


def test_a_link_leads_nowhere_else(healthy: dict[str, Any]) -> None:
    links = [
        f"https://evil.example/{each}" for each in ("OAM_3", "..", "../../Managers/bmc/OAM_5", "OAM_3?x=/y", "cpu0")
    ]
    members = [{"@odata.id": link} for link in links]
    told = Told(changed(healthy, f"{ROOT}/Systems/system/Processors", {"Members": members}))
    machine = Reader(told).machine()  # type: ignore[arg-type]
    assert [card.oam for card in machine.cards] == [3, 5]
    assert {path.rpartition("/OAM_")[0] for path in told.asked if "/OAM_" in path and "/Processors/" in path} == {
        f"{ROOT}/Systems/system/Processors"
    }


def test_a_list_without_end_is_cut(healthy: dict[str, Any]) -> None:
    members = [{"@odata.id": f"{ROOT}/Systems/system/Processors/OAM_{number}"} for number in range(900)]
    told = Told(changed(healthy, f"{ROOT}/Systems/system/Processors", {"Members": members}))
    assert len(Reader(told).machine().cards) == 16  # type: ignore[arg-type]
    assert len(told.asked) < 250


@pytest.mark.parametrize("content", [{}, {"Oem": 5}, {"Oem": {"Intel": [1]}}, {"SerialNumber": {"a": 1}}])
def test_any_content_can_be_read(content: dict[str, Any], healthy: dict[str, Any]) -> None:
    odd = {path: content if "OAM" in path else each for path, each in healthy.items()}
    facts = read(odd, ports=True).as_facts()
    assert facts["card_count"] == 8 and facts["cards"][0]["serial"] is None
    json.dumps(facts, allow_nan=False)


def test_a_refusal_is_everybody_s(healthy: dict[str, Any]) -> None:
    with pytest.raises(Refusal):
        read(changed(healthy, OAM, Refusal("HTTP 401.")))
