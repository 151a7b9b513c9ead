"""hl_smi_facts: what it asks the tool, and what it makes of the answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._hl_smi.hl_smi import QUERY_FIELDS
from ansible_collections.gaudi3.scale.plugins.modules import hl_smi_facts

ALL = ["-Q", ",".join(QUERY_FIELDS), "-f", "csv,noheader,nounits"]
CONFIRMED_FIELDS = tuple(name for name in QUERY_FIELDS if name != "power.max")
CONFIRMED = ["-Q", ",".join(CONFIRMED_FIELDS), "-f", "csv,noheader,nounits"]
CARD_0 = ("0000:19:00.0", "Operational", "1.23.0-fw-62.2.1-sec-9")
CARD_1 = ("0000:b3:00.0", "In reset", "1.22.0-fw-61.3.2-sec-9")
DOWN = (
    "hl-smi says that the Gaudi driver is not up (exit code 1 and 'no device can be opened'): load the "
    "kernel modules, as role gaudi3.scale.synapseai does, and see the kernel log for "
    "'habanalabs' if they are loaded."
)


def facts(result: dict[str, Any]) -> dict[str, Any]:
    assert list(result["ansible_facts"]) == ["gaudi"]
    assert result["changed"] is False
    gaudi: dict[str, Any] = result["ansible_facts"]["gaudi"]
    return gaudi


def test_two_calls_give_every_card(tool: Any, samples: Any, run_module: Any) -> None:
    tool.answer(ALL, samples.row() + "\n" + samples.row(**samples.second) + "\n")
    tool.answer(["-L"], samples.log(CARD_0, CARD_1))
    gaudi = facts(run_module(hl_smi_facts, executable=str(tool.path)))
    assert tool.calls() == [ALL, ["-L"]]
    assert {name: gaudi[name] for name in gaudi if name != "cards"} == {
        "installed": True,
        "driver_up": True,
        "driver_version": "1.23.0-2eae87a",
        "nic_driver_version": "1.23.0-213b09b",
        "hl_smi_version": "hl-1.23.0-fw-62.2.1.1",
        "release": "1.23.0",
        "card_count": 2,
        "firmware": {
            "cpld": "Version: 0x4, Timestamp(epoch): 0x6512bd43",
            "fit": "hl-gaudi3-1.23.0-fw-62.2.1-sec-9",
            "os": "hl-gaudi3-1.23.0-fw-62.2.1-sec-9",
            "spi": None,
        },
    }
    assert gaudi["cards"][0] == {
        "index": 0,
        "module_id": 3,
        "bus_id": "0000:19:00.0",
        "name": "HL-325L",
        "uuid": "01P4-HL3090A0-18-ABC123-01-02-03",
        "serial": "AO00000001",
        "driver_version": "1.23.0-2eae87a",
        "memory_total_mib": 131072,
        "memory_used_mib": 672,
        "memory_free_mib": 130400,
        "power_draw_w": 228,
        "power_max_w": 850,
        "temperature_c": 36,
        "utilization_percent": 0,
        "memory_utilization_percent": 1,
        "ecc_mode": {"current": "Enabled", "pending": "Enabled"},
        "ecc": {
            "uncorrected_volatile": 0,
            "uncorrected_aggregate": 2,
            "corrected_volatile": 1,
            "corrected_aggregate": 3,
            "dram_volatile": 4,
            "dram_aggregate": 5,
            "dram_corrected_volatile": 6,
            "dram_corrected_aggregate": 7,
        },
        "pcie": {
            "gen_current": 5,
            "gen_max": 5,
            "width_current": 8,
            "width_max": 16,
            "speed_current": "32GT/s",
            "speed_max": "32GT/s",
        },
        "clocks": {
            "soc_current_mhz": 1600,
            "soc_max_mhz": 1700,
            "soc_limit_mhz": 1650,
            "tpc_limit_mhz": 1800,
        },
        "violations": {"power": "0", "thermal": "0"},
        "device": "accel0",
        "status": "Operational",
        "model": "F08GL0DIG017A",
        "power_rails_w": {"54v": 228},
        "power_total_w": None,
        "rows_pending": None,
        "firmware": {
            "cpld": "Version: 0x4, Timestamp(epoch): 0x6512bd43",
            "fit": "hl-gaudi3-1.23.0-fw-62.2.1-sec-9",
            "os": "hl-gaudi3-1.23.0-fw-62.2.1-sec-9",
            "spi": "hl-gaudi3-1.23.0-fw-62.2.1-sec-9",
        },
    }
    second = gaudi["cards"][1]
    assert (second["bus_id"], second["status"]) == ("0000:b3:00.0", "In reset")
    assert second["firmware"]["spi"] == "hl-gaudi3-1.22.0-fw-61.3.2-sec-9"


def test_cards_alone_is_one_call(tool: Any, samples: Any, run_module: Any) -> None:
    tool.answer(ALL, samples.row() + "\n")
    gaudi = facts(run_module(hl_smi_facts, executable=str(tool.path), gather_subset=["cards"]))
    assert tool.calls() == [ALL]
    assert gaudi["hl_smi_version"] is None
    assert gaudi["firmware"] == {}
    assert not {"status", "firmware", "ports"} & set(gaudi["cards"][0])


def test_ports_are_asked_by_number_and_full_address(tool: Any, samples: Any, run_module: Any) -> None:
    tool.answer(ALL, samples.row() + "\n")
    tool.answer(["-n", "ports", "-i", "0000:19:00.0"], samples.ports)
    numbers = ",".join(str(port) for port in range(24))
    link = ["-n", "link", "-i", "0000:19:00.0", "-P", numbers]
    tool.answer(link, samples.links)
    gaudi = facts(run_module(hl_smi_facts, executable=str(tool.path), gather_subset=["ports"]))
    assert tool.calls() == [ALL, ["-n", "ports", "-i", "0000:19:00.0"], link]
    ports = gaudi["cards"][0]["ports"]
    assert len(ports) == 24
    assert [port for port in ports if port["type"] == "external"] == [
        {"port": 1, "type": "external", "link": "up"},
        {"port": 11, "type": "external", "link": "down"},
        {"port": 23, "type": "external", "link": "up"},
    ]


def test_counters_come_with_the_ports(tool: Any, samples: Any, run_module: Any) -> None:
    tool.answer(ALL, samples.row() + "\n")
    tool.answer(["-n", "ports", "-i", "0000:19:00.0"], "port 0: internal\nport 1: external\n")
    tool.answer(["-n", "link", "-i", "0000:19:00.0", "-P", "0,1"], "port  0:\tUP\nport  1:\tDOWN\n")
    stats = ["-n", "stats", "-i", "0000:19:00.0", "-P", "0,1"]
    tool.answer(stats, "port 0:\n\tpcs_local_faults: 0\nport 1:\n\tpcs_local_faults: 1\n")
    gaudi = facts(run_module(hl_smi_facts, executable=str(tool.path), gather_subset=["counters"]))
    assert gaudi["cards"][0]["ports"] == [
        {"port": 0, "type": "internal", "link": "up", "counters": {"pcs_local_faults": 0}},
        {"port": 1, "type": "external", "link": "down", "counters": {"pcs_local_faults": 1}},
    ]
    assert tool.calls()[-1] == stats


def test_values_not_available_are_null(tool: Any, samples: Any, run_module: Any) -> None:
    tool.answer(ALL, samples.row(temperature__aip="N/A", power__draw="N/A", memory__used="N/A", name="N/A"))
    card = facts(run_module(hl_smi_facts, executable=str(tool.path), gather_subset=["cards"]))["cards"][0]
    assert card["temperature_c"] is None
    assert card["power_draw_w"] is None
    assert card["memory_used_mib"] is None
    assert card["name"] is None
    assert card["memory_total_mib"] == 131072


@pytest.mark.parametrize("code", [1, 2, 255])
def test_a_tool_which_refuses_power_max_is_asked_without(tool: Any, samples: Any, run_module: Any, code: int) -> None:
    tool.answer(ALL, "power.max: unknown field\n", code)
    tool.answer(CONFIRMED, samples.row(CONFIRMED_FIELDS) + "\n")
    gaudi = facts(run_module(hl_smi_facts, executable=str(tool.path), gather_subset=["cards"]))
    assert tool.calls() == [ALL, CONFIRMED]
    assert gaudi["cards"][0]["power_max_w"] is None
    assert gaudi["cards"][0]["power_draw_w"] == 228


def test_environment_switches_output_on(tool: Any, samples: Any, run_module: Any, monkeypatch: Any) -> None:
    monkeypatch.setenv("ENABLE_CONSOLE", "false")
    monkeypatch.setenv("HABANA_LOGS", str(tool.path.parent))
    tool.answer(ALL, samples.row())
    run_module(hl_smi_facts, executable=str(tool.path), gather_subset=["cards"])
    assert tool.environments() == [{"ENABLE_CONSOLE": "true", "HABANA_LOGS": str(tool.path.parent)}]


def test_log_folder_that_cannot_be_written_is_replaced(
    tool: Any, samples: Any, run_module: Any, monkeypatch: Any
) -> None:
    monkeypatch.setenv("HABANA_LOGS", str(tool.path.parent / "absent"))
    tool.answer(ALL, samples.row())
    run_module(hl_smi_facts, executable=str(tool.path), gather_subset=["cards"])
    assert tool.environments()[0]["HABANA_LOGS"] not in ("", str(tool.path.parent / "absent"))


def test_driver_not_up_fails_in_one_sentence(tool: Any, samples: Any, run_module: Any) -> None:
    tool.answer(ALL, "no device can be opened\n", 1)
    tool.answer(CONFIRMED, "no device can be opened\n", 1)
    result = run_module(hl_smi_facts, executable=str(tool.path))
    assert result["failed"] is True
    assert result["msg"] == DOWN


def test_driver_not_up_may_be_told_as_a_fact(tool: Any, samples: Any, run_module: Any) -> None:
    tool.answer(ALL, "", 1)
    tool.answer(CONFIRMED, "", 1)
    gaudi = facts(run_module(hl_smi_facts, executable=str(tool.path), allow_missing=True))
    assert gaudi == {
        "installed": True,
        "driver_up": False,
        "driver_version": None,
        "nic_driver_version": None,
        "hl_smi_version": None,
        "release": None,
        "card_count": 0,
        "firmware": {},
        "cards": [],
    }


def test_no_tool_names_its_package(tmp_path: Path, run_module: Any) -> None:
    result = run_module(hl_smi_facts, executable=str(tmp_path / "hl-smi"))
    assert result["failed"] is True
    assert result["msg"] == (
        f"{tmp_path}/hl-smi was not found on this host: install package habanalabs-firmware-tools "
        "(role gaudi3.scale.synapseai does), or give its path as 'executable'."
    )
    gaudi = facts(run_module(hl_smi_facts, executable=str(tmp_path / "hl-smi"), allow_missing=True))
    assert (gaudi["installed"], gaudi["driver_up"], gaudi["card_count"]) == (False, False, 0)


def test_garbage_is_quoted_and_not_guessed_at(tool: Any, samples: Any, run_module: Any) -> None:
    garbage = "Segmentation fault " + "x" * 200 + "\n"
    tool.answer(ALL, garbage)
    tool.answer(CONFIRMED, garbage)
    result = run_module(hl_smi_facts, executable=str(tool.path), allow_missing=True)
    assert result["failed"] is True
    assert result["msg"].startswith("command 'hl-smi -Q index,")
    assert "'Segmentation fault xxx" in result["msg"]
    assert result["msg"].endswith("...' is not a row of 37 fields.")
    assert len(result["msg"]) < 250


def test_a_cell_that_cannot_be_read_is_null_with_a_warning(tool: Any, samples: Any, run_module: Any) -> None:
    odd = {"clocks__max__soc": "fast", "temperature__aip": "N/A C", "pcie__link__gen__current": "Gen4"}
    tool.answer(ALL, samples.row(**odd) + "\n" + samples.row(**samples.second) + "\n")
    result = run_module(hl_smi_facts, executable=str(tool.path), gather_subset=["cards"])
    first, second = facts(result)["cards"]
    assert (first["clocks"]["soc_max_mhz"], second["clocks"]["soc_max_mhz"]) == (None, 1700)
    assert (first["temperature_c"], first["pcie"]["gen_current"], first["memory_total_mib"]) == (None, 4, 131072)
    assert [warning["event"]["msg"] for warning in result["warnings"]] == [
        "hl-smi gives 'fast' as clocks.max.soc of 0000:19:00.0, where a number was expected: the value is left out."
    ]


def test_a_card_without_its_module_id_fails(tool: Any, samples: Any, run_module: Any) -> None:
    tool.answer(ALL, samples.row(module_id="N/A"))
    result = run_module(hl_smi_facts, executable=str(tool.path), gather_subset=["cards"])
    assert result["failed"] is True
    assert result["msg"].endswith("names no card: its module_id is 'N/A'.")


def test_other_exit_codes_are_told_with_the_first_line(tool: Any, samples: Any, run_module: Any) -> None:
    tool.answer(ALL, "\nDevice acquire failed\nmore\n", 3)
    tool.answer(CONFIRMED, "\nDevice acquire failed\nmore\n", 3)
    result = run_module(hl_smi_facts, executable=str(tool.path), allow_missing=True)
    assert result["failed"] is True
    assert result["msg"].endswith("ended with exit code 3 and said 'Device acquire failed'.")


def test_a_tool_that_hangs_is_killed_once(tmp_path: Path, run_module: Any) -> None:
    hang = tmp_path / "hl-smi"
    hang.write_text(f"#!/bin/sh\necho called >> {tmp_path}/calls\nexec sleep 30\n")
    hang.chmod(0o755)
    result = run_module(hl_smi_facts, executable=str(hang), timeout=1)
    assert result["failed"] is True
    assert result["msg"] == (
        "hl-smi gave no answer in 1 seconds: a card may be in reset, so try again or raise 'timeout'."
    )
    assert (tmp_path / "calls").read_text() == "called\n"


def test_a_card_missing_from_the_log_is_an_error(tool: Any, samples: Any, run_module: Any) -> None:
    tool.answer(ALL, samples.row() + "\n" + samples.row(**samples.second) + "\n")
    tool.answer(["-L"], samples.log(CARD_0))
    result = run_module(hl_smi_facts, executable=str(tool.path))
    assert result["msg"] == "card 0000:b3:00.0 is in the csv and not in the detail log."


def test_check_mode_gathers_the_same(tool: Any, samples: Any, run_module: Any) -> None:
    tool.answer(ALL, samples.row())
    options = {"executable": str(tool.path), "gather_subset": ["cards"]}
    assert facts(run_module(hl_smi_facts, check=True, **options)) == facts(run_module(hl_smi_facts, **options))
