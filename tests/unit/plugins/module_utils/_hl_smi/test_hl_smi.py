"""Parsing of hl-smi's texts, with the shapes it is known to print."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._hl_smi.card import (
    _CELLS,
    Card,
    host_facts,
    read_card,
    shared_firmware,
)
from ansible_collections.gaudi3.scale.plugins.module_utils._hl_smi.hl_smi import (
    QUERY_FIELDS,
    HlSmiError,
    OddCell,
    Port,
    firmware_version,
    number,
    odd_cell_warnings,
    parse_counters,
    parse_csv,
    parse_links,
    parse_log,
    parse_ports,
    quote,
    release_of,
)

FIELDS = (
    "index",
    "uuid",
    "name",
    "driver_version",
    "memory.total",
    "memory.used",
    "memory.free",
    "power.draw",
    "power.max",
    "temperature.aip",
    "utilization.aip",
)
WITH_UNITS = (
    "0, 01P4-HL3090A0-18-ABC123-01-02-03, HL-325L, 1.22.1-97ec1a4, 131072 MiB, 672 MiB, 130400 MiB, 226 W, "
    "850 W, 36 C, 0 %\n"
)


def test_csv_row_with_units_reads_like_one_without() -> None:
    [cells] = parse_csv(WITH_UNITS, FIELDS)
    assert cells["uuid"] == "01P4-HL3090A0-18-ABC123-01-02-03"
    facts = read_card({**cells, "bus_id": "0000:19:00.0", "module_id": "3"}, None, None).as_facts()
    assert (facts["memory_total_mib"], facts["power_draw_w"], facts["power_max_w"]) == (131072, 226, 850)
    assert (facts["temperature_c"], facts["utilization_percent"]) == (36, 0)


def test_empty_lines_of_a_csv_are_skipped() -> None:
    assert parse_csv("\n1, a\n\n  \n2, b\n", ("index", "name")) == [
        {"index": "1", "name": "a"},
        {"index": "2", "name": "b"},
    ]


def test_row_with_too_few_cells_is_quoted() -> None:
    with pytest.raises(HlSmiError, match=r"^'3, HL-325L' is not a row of 3 fields$"):
        parse_csv("3, HL-325L\n", ("index", "name", "uuid"))


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ("672", 672),
        ("672 MiB", 672),
        ("x16", 16),
        ("-1", -1),
        ("0 %", 0),
        ("Gen5", 5),
        ("Gen 4", 4),
        ("32GT/s", 32),
        ("2.5 GT/s", 2),
        ("N/A", None),
        ("N/A MiB", None),
        ("N/A W", None),
        ("", None),
        (None, None),
    ],
)
def test_numbers(cell: str | None, expected: int | None) -> None:
    assert number(cell, "memory.used") == expected


@pytest.mark.parametrize("cell", ["warm", "12 GB", "0x10", "1,5"])
def test_a_cell_that_is_no_number_names_its_field(cell: str) -> None:
    with pytest.raises(HlSmiError, match=rf"^field temperature.aip is '{cell}' where a number was expected$"):
        number(cell, "temperature.aip")


@pytest.mark.parametrize("cell", ["N/A", "", "third", "N/A MiB"])
@pytest.mark.parametrize("name", ["index", "module_id", "bus_id"])
def test_a_row_without_its_mandatory_cells_names_no_card(name: str, cell: str) -> None:
    row = {"index": "0", "bus_id": "0000:19:00.0", "module_id": "3", name: cell}
    with pytest.raises(HlSmiError, match=rf"names no card: its {name} is {quote(cell)}$"):
        read_card(row, None, None).as_facts()


@pytest.mark.parametrize(
    ("field", "cell", "fact"),
    [
        ("temperature.aip", "warm", "temperature_c"),
        ("memory.used", "12 GB", "memory_used_mib"),
        ("power.max", "[Unknown Error]", "power_max_w"),
        ("utilization.aip", "0x10", "utilization_percent"),
    ],
)
def test_an_odd_cell_costs_its_own_fact_alone(field: str, cell: str, fact: str, samples: Any) -> None:
    fields = QUERY_FIELDS
    sound, odd = (parse_csv(samples.row(**cells), fields)[0] for cells in ({}, {field.replace(".", "__"): cell}))
    cells: list[OddCell] = []
    expected = read_card(sound, None, None).as_facts()
    assert expected[fact] is not None
    assert read_card(odd, None, None, cells).as_facts() == {**expected, fact: None}
    assert cells == [OddCell(field, "0000:19:00.0", cell)]


def test_odd_cells_are_reported_once_for_each_field() -> None:
    cells = [OddCell("power.draw", f"0000:{bus}:00.0", "much") for bus in ("19", "b3")]
    end = ", where a number was expected: the value is left out."
    assert odd_cell_warnings([*cells, OddCell("memory.used", "0000:19:00.0", "some")]) == [
        "hl-smi gives 'much' as power.draw of 0000:19:00.0 and 1 more" + end,
        "hl-smi gives 'some' as memory.used of 0000:19:00.0" + end,
    ]


#: Addresses and modules by index, of an HL-325L node with 1.24.1 (redhat-et/GKM, device tests).
REAL_NODE = dict(zip(["3b", "4c", "5d", "9b", "19", "bb", "cb", "db"], (1, 3, 2, 6, 0, 7, 5, 4), strict=True))


def test_cards_of_a_real_node_keep_their_modules(samples: Any) -> None:
    rows = [
        samples.row(index=str(index), bus_id=f"0000:{bus}:00.0", module_id=str(module), driver_version="1.24.1-b336d5e")
        for index, (bus, module) in enumerate(REAL_NODE.items())
    ]
    facts = host_facts(parse_csv("\n".join(rows), QUERY_FIELDS), None, {}, installed=True, driver_up=True)
    assert facts["release"] == "1.24.1"
    assert {card["bus_id"][5:7]: card["module_id"] for card in facts["cards"]} == REAL_NODE
    assert {
        (card["memory_total_mib"], card["memory_free_mib"], card["memory_used_mib"]) for card in facts["cards"]
    } == {(131072, 130400, 672)}


def test_log(samples: Any) -> None:
    log = parse_log(samples.log(("0000:19:00.0", "Operational", samples.spi)))
    assert (log.driver_version, log.hl_smi_version) == ("1.23.0-2eae87a", "hl-1.23.0-fw-62.2.1.1")
    card = log.cards["0000:19:00.0"]
    assert (card.device, card.status, card.model) == ("accel0", "Operational", "F08GL0DIG017A")
    assert card.firmware == {
        "fit": "hl-gaudi3-1.23.0-fw-62.2.1-sec-9",
        "spi": "hl-gaudi3-1.23.0-fw-62.2.1-sec-9",
        "os": "hl-gaudi3-1.23.0-fw-62.2.1-sec-9",
        "cpld": "Version: 0x4, Timestamp(epoch): 0x6512bd43",
    }


@pytest.mark.parametrize(
    ("rails", "expected", "total"),
    [
        ({"54": "700 W", "12": "35 W"}, {"54v": 700, "12v": 35}, 735),
        ({"54": "50 W", "12": "31 W"}, {"54v": 50, "12v": 31}, 81),
        ({"54": "700 W", "12": "N/A"}, {"54v": 700, "12v": None}, None),
        ({"54": "700 W"}, {"54v": 700}, None),
        ({"12": "35 W"}, {"12v": 35}, None),
        ({}, {}, None),
    ],
)
def test_a_cards_power_is_the_sum_of_both_rails(
    rails: dict[str, str], expected: dict[str, int | None], total: int | None, samples: Any
) -> None:
    text = samples.log(("0000:19:00.0", "Operational", samples.spi))
    start, end = text.index("        Power Readings"), text.index("        Network Information")
    sections = "".join(
        f"\tPower Readings ({volts}V PSU)\n\t\tPower Management        : auto\n\t\tPower Draw              : {watts}\n"
        "\t\tPower Max               : 900 W\n"
        for volts, watts in rails.items()
    )
    log = parse_log(text[:start] + sections + text[end:])
    [row] = parse_csv(samples.row(power__draw="700"), QUERY_FIELDS)
    facts = read_card(row, log.cards["0000:19:00.0"], None).as_facts()
    assert (facts["power_draw_w"], facts["power_rails_w"], facts["power_total_w"]) == (700, expected, total)


@pytest.mark.parametrize(("cell", "pending"), [("Yes", True), ("No", False), ("N/A", None), (None, None)])
def test_rows_that_wait_for_their_replacement(cell: str | None, pending: bool | None, samples: Any) -> None:
    text = samples.log(("0000:19:00.0", "Operational", samples.spi))
    if cell is not None:
        text += f"\tReplaced Rows\n\t\tSingle Bit ECC          : 1\n\t\tPending                 : {cell}\n"
    [row] = parse_csv(samples.row(), QUERY_FIELDS)
    assert read_card(row, parse_log(text).cards["0000:19:00.0"], None).as_facts()["rows_pending"] is pending


def test_log_of_an_older_tool() -> None:
    text = (
        "================ HL-SMI LOG ================\n\n"
        "Driver Version                          : 1.12.1-cb7a7bc\n"
        "HL-SMI Version                          : hl-1.12.1-fw-46.0.5.0 (Oct 19 2023 - 01:19:50)\n\n"
        "Attached AIPs                           : 1\n\n"
        "[0] AIP (accel0) 0000:43:00.0\n"
        "        Module status                   : Operational\n"
        "        Firmware [UBOOT] Version        : U-Boot 2021.04-hl-gaudi2-1.12.1-fw-46.0.5-sec-6 (...)\n"
        "        CPLD Version                    : 0x0000000d\n"
    )
    card = parse_log(text).cards["0000:43:00.0"]
    assert card.firmware == {"uboot": "hl-gaudi2-1.12.1-fw-46.0.5-sec-6", "cpld": "0x0000000d"}


def test_cards_of_log_and_csv_meet_whatever_the_case_of_their_address(samples: Any) -> None:
    assert list(parse_log(samples.log(("0000:B3:00.0", "Operational", samples.spi))).cards) == ["0000:b3:00.0"]


def test_log_which_describes_fewer_cards_than_it_announces(samples: Any) -> None:
    text = samples.log(("0000:19:00.0", "Operational", samples.spi)).replace(
        "Attached AIPs                           : 1", "Attached AIPs                           : 8"
    )
    with pytest.raises(HlSmiError, match=r"announces 8 cards and describes 1$"):
        parse_log(text)


def test_log_which_is_none() -> None:
    with pytest.raises(HlSmiError) as error:
        parse_log("\nBus error\n")
    assert str(error.value) == (
        "the detail log beginning with 'Bus error' announces no number of cards and describes 0"
    )


def test_ports_and_links(samples: Any) -> None:
    ports = parse_ports(samples.ports)
    assert len(ports) == 24
    assert [port.port for port in ports if port.type == "external"] == [1, 11, 23]
    assert ports[8] == Port(8, "internal")
    links = parse_links(samples.links)
    assert [port for port, link in links.items() if link == "down"] == [11]
    assert len(links) == 24


def test_counters_of_ports() -> None:
    text = "port 0:\n\tpcs_local_faults: 2\n\tpre_FEC_SER_exp (negative): 9\n\nport 11:\n\tCongestion Q err: N/A\n"
    assert parse_counters(text) == {
        0: {"pcs_local_faults": "2", "pre_FEC_SER_exp (negative)": "9"},
        11: {"Congestion Q err": "N/A"},
    }


def test_counters_are_facts_of_their_port_and_odd_ones_are_left_out(samples: Any) -> None:
    (row,) = parse_csv(samples.row(), QUERY_FIELDS)
    ports = [
        Port(0, "internal", "up", {"faults": "2", "rate": "N/A"}),
        Port(1, "external", "down", {"faults": "few", "rate": "7"}),
        Port(2, "external", "up"),
    ]
    odd: list[OddCell] = []
    assert read_card(row, None, ports, odd).as_facts()["ports"] == [
        {"port": 0, "type": "internal", "link": "up", "counters": {"faults": 2, "rate": None}},
        {"port": 1, "type": "external", "link": "down", "counters": {"faults": None, "rate": 7}},
        {"port": 2, "type": "external", "link": "up"},
    ]
    assert odd == [OddCell("port counter faults", "0000:19:00.0", "few")]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("no such card\n", "counters of ports were expected and 'no such card' was printed"),
        ("", "counters of ports were expected and '' was printed"),
        ("port 0:\n\tfaults 2\n", "'faults 2' is not a line of a port's counters"),
        ("\tfaults: 2\nport 0:\n", "'faults: 2' is not a line of a port's counters"),
    ],
)
def test_texts_without_counters(text: str, sentence: str) -> None:
    with pytest.raises(HlSmiError) as error:
        parse_counters(text)
    assert str(error.value) == sentence


def test_port_texts_which_are_none() -> None:
    with pytest.raises(HlSmiError, match=r"^a port list was expected and 'no such card' was printed$"):
        parse_ports("no such card\n")
    with pytest.raises(HlSmiError, match=r"^'port eight: external' is not a line of a port list$"):
        parse_ports("port eight: external\n")
    with pytest.raises(HlSmiError, match=r"^port 8 is 'MAYBE' where UP or DOWN was expected$"):
        parse_links("port  8:\tMAYBE\n")


def test_firmware_names() -> None:
    assert firmware_version("Preboot version hl-gaudi3-1.20.0-fw-58.1.1-sec-2 (Jan 1)") == (
        "hl-gaudi3-1.20.0-fw-58.1.1-sec-2"
    )
    assert firmware_version("Version: 0x4") == "Version: 0x4"


def test_firmware_that_differs_between_cards_has_no_common_version() -> None:
    cards = [{"firmware": {"spi": "a", "os": "o"}}, {"firmware": {"spi": "b", "os": "o"}}]
    assert shared_firmware(cards) == {"os": "o", "spi": None}
    assert shared_firmware([{}, {}]) == {}


def test_release_is_the_part_that_compares() -> None:
    assert release_of("1.23.0-2eae87a") == "1.23.0"
    assert release_of(None) is None
    assert release_of("unknown") is None


def test_quote_folds_and_shortens() -> None:
    assert quote("a \t b\x00") == repr("a b\x00")
    assert quote("x" * 100) == repr("x" * 77 + "...")


def test_every_field_that_is_asked_for_has_its_place_in_a_card() -> None:
    # The driver of the network is the host's, not a card's.
    assert {cell.field for cell in _CELLS} == set(QUERY_FIELDS) - {"nic_driver_version"}
    assert len({cell.fact for cell in _CELLS}) == len(_CELLS)
    assert {cell.attribute for cell in _CELLS} - {""} <= set(Card.__dataclass_fields__)
