"""What the product's own readers say of a card with a fault: facts of hl-smi, and the exporter's series."""

from __future__ import annotations

import importlib
from typing import Any

import pytest
from simulated_machine import Machine, of_the_product

READER = of_the_product("plugins/module_utils/_hl_smi/hl_smi.py")
CARDS = importlib.import_module("_hl_smi.card")
of_the_product("roles/hpu_exporter/files/gaudi_hpu_page.py")
EXPORTER = of_the_product("roles/hpu_exporter/files/gaudi_hpu_exporter.py")


def facts(machine: Machine) -> list[dict[str, Any]]:
    """The facts of every card, by index."""
    query = ("-Q", ",".join(READER.QUERY_FIELDS), "-f", "csv,noheader,nounits")
    rows = READER.parse_csv(machine.ok("hl-smi", *query).out, READER.QUERY_FIELDS)
    log = READER.parse_log(machine.ok("hl-smi", "-L").out)
    ports = {}
    for row in rows:
        links, counters = (
            parse(machine.ok("hl-smi", "-n", view, "-i", row["bus_id"]).out)
            for view, parse in (("link", READER.parse_links), ("stats", READER.parse_counters))
        )
        ports[row["bus_id"]] = [READER.Port(port, "internal", link, counters[port]) for port, link in links.items()]
    cards: list[dict[str, Any]] = CARDS.host_facts(rows, log, ports, True, True)["cards"]
    return sorted(cards, key=lambda card: int(card["index"]))


def flat(value: Any, name: str = "") -> dict[str, Any]:
    """Facts by their path, without what no fault decides."""
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else None
    if parts is None:
        return {name: value}
    return {key: each for part, below in parts for key, each in flat(below, f"{name}.{part}".strip(".")).items()}


@pytest.mark.parametrize(
    ("fault", "changed"),
    [
        ("needs-reset", {"status": "Needs reset"}),
        ("in-device-creation", {"status": "In device creation"}),
        ("reset-failed", {"status": "Disabled", "temperature_c": None, "memory_used_mib": None}),
        ("cpu-timeout", {"status": "Disabled", "temperature_c": None}),
        ("temperature-absurd", {"temperature_c": 505712272}),
        ("pcie-generation", {"pcie.gen_current": 3, "pcie.speed_current": "8GT/s"}),
        ("throttled-power", {"violations.power": "1"}),
        ("throttled-thermal", {"violations.thermal": "1"}),
        ("ecc-corrected", {"ecc.corrected_volatile": 1}),
        ("memory-kept", {"memory_used_mib": 672 + 40960}),
        ("port-down --port 7", {"ports.6.link": "down"}),
        ("mac-timeout --port 0", {"ports.0.link": "down"}),
        (
            "port-symbol-errors --port 5",
            {"ports.4.link": "up", "ports.4.counters.cw_corrected": 73412, "ports.4.counters.pre_FEC_SER_int": 5},
        ),
        ("port-flapping --port 9", {"ports.8.counters.pcs_link_restores": 1}),
    ],
)
@pytest.mark.parametrize("card", [1, 6])
def test_the_facts_name_the_card(machine: Machine, fault: str, changed: dict[str, Any], card: int) -> None:
    sound = [flat(each) for each in facts(machine)]
    machine.ok("node", "fault", *fault.split(), "--card", str(card))
    for index, (before, after) in enumerate(zip(sound, map(flat, facts(machine)), strict=True)):
        assert (before == after) is (index != card)
        if index == card:
            assert {name: after[name] for name in changed} == changed


@pytest.mark.parametrize("card", [0, 5])
def test_the_facts_name_the_card_with_other_preboot(machine: Machine, card: int) -> None:
    machine.ok("node", "fault", "spi-release", "--card", str(card))
    versions = [each["firmware"]["spi"] for each in facts(machine)]
    assert [versions.count(version) for version in versions] == [1 if each == card else 7 for each in range(8)]


@pytest.mark.parametrize("card", [2, 7])
def test_the_facts_name_the_card_whose_rows_wait(machine: Machine, card: int) -> None:
    machine.ok("node", "fault", "row-pending", "--card", str(card))
    assert [each["index"] for each in facts(machine) if each["rows_pending"]] == [card]


def exported(machine: Machine) -> str:
    """The exporter's page of this machine."""

    def run(arguments: list[str]) -> tuple[int, str, str]:
        """hl-smi, started in this process."""
        return 0, machine.ok(*arguments).out, ""

    reader = EXPORTER.Reader(EXPORTER.HlSmi("hl-smi", run), 60.0, 15.0, 60.0)
    while reader.step() <= 0:  # one call of hl-smi each
        pass
    return str(EXPORTER.render(*reader.snapshot()))


@pytest.mark.parametrize(
    "kind",
    ["reset-failed", "temperature-absurd", "pcie-generation", "ecc-corrected", "memory-kept", "port-down"],
)
def test_the_exporters_page_changes(machine: Machine, kind: str) -> None:
    def page() -> list[str]:
        return [line for line in exported(machine).splitlines() if "seconds" not in line and "timestamp" not in line]

    machine.ok("manage_network_ifs.sh", "--up")
    sound = page()
    assert any(line.startswith("habanalabs_temperature_onchip") for line in sound)
    machine.ok("node", "fault", kind, "--card", "3")
    assert page() != sound
