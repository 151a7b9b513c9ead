"""Public tables of hl-smi as twins: the collection's reader says of the twin what the table says, cell by cell."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gaudi3_simulator import RequestError
from gaudi3_simulator.twin import commands, folder, product, table
from gaudi3_simulator.twin.reports import open_report
from gaudi3_simulator.twin.stand import Stand

TRANSCRIPTS = Path(__file__).parent / "node/transcripts"
FIELDS = ("index", "bus_id", "name", "driver_version", "memory.total")
#: Of each table: driver, product of the twin, MiB in all and at rest, watts allowed, and the cards' addresses by their
#: index.
TABLES = {
    "table-1.12.1-gaudi2.txt": (
        "1.12.1-cb7a7bc", "HL-225", 98304, 768, 600, "43 44 1a 19 b3 b4 cc cd",
    ),
    "table-1.14.0-gaudi2.txt": (
        "1.15.0-c43dc7b", "HL-225", 98304, 768, 600, "09 08 0a 0c 0b 0d 0f 0e",
    ),
    "table-1.15.1-gaudi2.txt": ("1.15.1-62f612b", "HL-225", 98304, 768, 600, "19"),
    "table-1.16.0-gaudi2.txt": (
        "1.16.0-94aac46", "HL-225", 98304, 768, 600, "b3 b4 cc cd 19 1a 43 44",
    ),
    "table-1.17.1-gaudi2.txt": ("1.17.1-78932ae", "HL-225", 98304, 768, 600, "4d b4"),
    "table-1.18.0-gaudi3.txt": ("1.18.0-ee698fb", "HL-325L", 131072, 672, 900, "21"),
    "table-1.21.0-gaudi3.txt": ("1.20.1-366eb9c", "HL-325L", 131072, 672, 900, "e9"),
    "table-1.22.1-gaudi2.txt": (
        "1.22.1-97ec1a4", "HL-225", 98304, 768, 600, "33 9a 34 4d 4e 9b b3 b4",
    ),
    "table-1.23.0-gaudi2e.txt": ("1.23.0-2eae87a", "HL-225", 98304, 768, 450, "2a"),
}  # fmt: skip


@pytest.mark.parametrize("name", TABLES)
def test_the_twin_of_a_table_answers_with_its_cells(tmp_path: Path, name: str) -> None:
    driver, board, total, rest, _limit, places = TABLES[name]
    files = folder.make(open_report(TRANSCRIPTS / name), "gaudi-1")
    twin, state = json.loads(files[folder.TWIN]), json.loads(files[folder.STATE])
    with Stand(tmp_path, twin, state).up() as stand:
        hl_smi = product.part("_hl_smi.command").HlSmi("hl-smi", stand.run)
        found = hl_smi.query((*FIELDS, "memory.used"))
    every = enumerate(places.split())
    assert sorted(found, key=lambda row: row["index"]) == [
        {
            "index": str(index), "bus_id": f"0000:{place}:00.0", "name": board, "driver_version": driver,
            "memory.total": str(total), "memory.used": str(rest),
        }
        for index, place in every
    ]  # fmt: skip


@pytest.mark.parametrize("name", TABLES)
def test_what_a_table_says_of_its_cards(name: str) -> None:
    driver, _board, total, rest, limit, places = TABLES[name]
    text = (TRANSCRIPTS / name).read_text()
    rows = table.rows(text)
    assert table.driver(text) == driver
    assert [row.bus_id for row in rows] == [f"0000:{place}:00.0" for place in places.split()]
    assert {(row.memory_total, row.power_max) for row in rows} == {(total, limit)}
    assert sorted({row.memory_used for row in rows})[0] == rest


def test_every_cell_of_a_row() -> None:
    rows = table.rows((TRANSCRIPTS / "table-1.16.0-gaudi2.txt").read_text())
    assert rows[6] == table.Row(6, "HL-225", "0000:43:00.0", 26, 101, 600, 27098, 98304, 0)
    assert rows[6].memory_used == 768 + 26330, "what its process has stands above what a card has at rest"
    first = table.rows((TRANSCRIPTS / "table-1.4.1-gaudi.txt").read_text())
    assert first[0] == table.Row(0, "HL-205", "0000:20:1d.0", 35, 102, 350, 512, 32768, 2)
    assert [row.utilization for row in first] == [2, 1, 3, 0, 1, 0, 4, 1]


def test_events_that_a_table_counts_are_said(tmp_path: Path) -> None:
    lines, _code = commands.from_report(TRANSCRIPTS / "table-1.22.1-gaudi2.txt", tmp_path / "twin", "gaudi-1", False)
    counted = ", ".join(f"accel{index} 2" for index in range(8))
    assert f"  note      uncorrectable events that the table counts are not in the twin: {counted}" in lines


def test_every_public_table_with_cards_that_are_simulated_is_a_profile() -> None:
    refused = {"table-1.4.1-gaudi.txt", "table-1.20.0.txt"}
    assert {path.name for path in TRANSCRIPTS.glob("table-*.txt")} == {*TABLES} | refused
    assert len(TABLES) >= 9


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (
            "table-1.4.1-gaudi.txt",
            "names no card that is simulated: make one of a node with cards like HL-325L, HL-225",
        ),
        ("table-1.20.0.txt", "names no card that is simulated"),
        ("log-1.12.1-gaudi2.txt", "is no JSON"),
    ],
)
def test_a_table_without_a_card_that_is_simulated_is_refused(name: str, said: str) -> None:
    with pytest.raises(RequestError, match=said):
        folder.make(open_report(TRANSCRIPTS / name), "gaudi-1")


def test_the_command_keeps_the_table_and_says_what_it_stands_for(tmp_path: Path) -> None:
    source = tmp_path / "printed.txt"
    source.write_text("$ hl-smi\n" + (TRANSCRIPTS / "table-1.23.0-gaudi2e.txt").read_text())
    lines, code = commands.from_report(source, tmp_path / "twin", "gaudi-1", False)
    assert code == 0 and lines == [
        f"{tmp_path / 'twin'} is the twin of a table of hl-smi",
        "  node      gaudi-1: 1 cards HL-225, profile cluster",
        "  release   1.23.0-695, driver 1.23.0-2eae87a",
        "  system    unknown, kernel unknown (of the report)",
        "  note      HL-288E is not simulated: cards HL-225 stand for it",
        "  note      it is a table of hl-smi, so no fault is known and no verdict can be compared",
    ]
    assert (tmp_path / "twin/report.txt").read_bytes() == source.read_bytes()
    with pytest.raises(RequestError, match="A table of hl-smi has no verdicts to compare with: give a doctor's report"):
        commands.from_report(tmp_path / "twin", None, "gaudi-1", True)
