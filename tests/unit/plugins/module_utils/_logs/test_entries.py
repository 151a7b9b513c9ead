"""Entries of nodes' journals: whatever a node writes is one line under the name of its certificate."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._logs import entries
from ansible_collections.gaudi3.scale.plugins.module_utils._logs.entries import Entry, Ranks

AT = 1_790_000_000_123_456


def entry(**fields: Any) -> Entry | None:
    given = {"__REALTIME_TIMESTAMP": str(AT), "_BOOT_ID": "b", "MESSAGE": "step 1", "SYSLOG_IDENTIFIER": "x", **fields}
    return entries.entry_of(json.dumps(given), "gaudi-1")


def line(**fields: Any) -> str:
    found = entry(**fields)
    assert found is not None
    return found.line()


@pytest.mark.parametrize(
    ("file", "sender"),
    [
        ("gaudi-1.journal", "gaudi-1"),
        ("10.0.0.1@0123456789abcdef-0000000000000001-0006.journal", "10.0.0.1"),
        ("gaudi-1@0006-00.journal~", "gaudi-1"),
        ("gaudi-1.journal.part", None),
        (".gaudi-1.journal", None),
        ("gaudi\u202e.journal", None),
        ("x", None),
    ],
)
def test_a_node_is_known_by_its_certificate(file: str, sender: str | None) -> None:
    assert entries.sender_of(file) == sender


def test_an_entry_is_one_line_with_time_node_and_source() -> None:
    assert line() == "2026-09-21 14:13:20.123 gaudi-1 x: step 1"
    assert line(_TRANSPORT="kernel") == "2026-09-21 14:13:20.123 gaudi-1 kernel: step 1"
    assert line(GAUDI_LOG_FILE="/jobs/a/habana_logs/0/hcl.log").endswith(
        " gaudi-1 /jobs/a/habana_logs/0/hcl.log: step 1"
    )


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("one\ntwo", "one\\ntwo"),
        ("\x1b[2J\x07", "\\x1b[2J\\x07"),
        ("\u202egaudi", "\\u202egaudi"),
        ([27, 91, 255, 65], "\\x1b[\ufffdA"),
        (["first", "second"], "first"),
        ([[1, 2], "x"], ""),
        (None, ""),
        ({"a": 1}, ""),
        (7, ""),
        ("{{ 7 * 7 }} $(id)", "{{ 7 * 7 }} $(id)"),
    ],
)
def test_whatever_a_node_wrote_is_shown_and_nothing_more(message: object, shown: str) -> None:
    assert line(MESSAGE=message).split(" x: ")[1] == shown


def test_a_source_that_looks_like_another_node_stands_behind_the_node() -> None:
    said = line(SYSLOG_IDENTIFIER="x: y\n2026-09-21 14:13:20.123 gaudi-9 kernel", MESSAGE="m")
    assert said.startswith("2026-09-21 14:13:20.123 gaudi-1 x: y\\n") and "\n" not in said


def test_what_is_long_is_cut() -> None:
    assert len(line(MESSAGE="m" * 100_000)) < entries.LONGEST + 100


@pytest.mark.parametrize(
    "text", ["", "null", "[1]", "{", '{"MESSAGE": "m"}', '{"__REALTIME_TIMESTAMP": "-1"}', "9" * 99]
)
def test_what_is_no_entry_is_none(text: str) -> None:
    assert entries.entry_of(text, "gaudi-1") is None


@pytest.mark.parametrize(("at", "shown"), [(10**19, "9999-12-31 23:59:59.000"), (0, "1970-01-01 00:00:00.000")])
def test_any_time_is_shown(at: int, shown: str) -> None:
    assert entries.shown_time(at) == shown


def made(at: int, message: str = "m", node: str = "gaudi-1", pid: int = 1, boot: str = "b") -> Entry:
    return Entry(at, node, str(at), boot, message, "x", pid)


def test_entries_of_all_nodes_are_in_the_order_of_time() -> None:
    late, early, other = made(9), made(3), made(5, node="gaudi-2")
    assert entries.merged([early, late, other], 10) == [early, other, late]
    assert entries.merged([early, late, other], 2) == [other, late]
    first, second = made(3, "b"), made(3, "a")
    assert entries.merged([first, second, other], 10)[:2] == [first, second], "written at once, in this order"


def came(texts: str, at: int = 5, serial: int = 1) -> list[Entry]:
    """Entries of one moment, a letter each, that came in one piece."""
    return [replace(made(at, text), serial=serial + number) for number, text in enumerate(texts)]


@pytest.mark.parametrize(
    ("pieces", "shown"),
    [
        ([came("abab")], "abab"),
        ([came("aa")], "aa"),
        ([came("aba"), came("x", 6, 4), came("aba", 5, 5), came("x", 6, 8)], "abax"),
        ([came("ab"), came("abab", 5, 9)], "abab"),
        ([came("abab"), came("ab", 5, 9)], "abab"),
        ([came("ab"), came("cd", 5, 9)], "abcd"),
        ([came("b", 7), came("a", 3, 9)], "ab"),
    ],
    ids=["alike in a piece", "twice", "sent again", "cut at first", "cut later", "of two programs", "late"],
)
def test_an_entry_that_was_sent_again_is_shown_once(pieces: list[list[Entry]], shown: str) -> None:
    found = entries.once(entry for piece in pieces for entry in piece)
    assert "".join(entry.message for entry in found) == shown


def test_the_number_of_an_entry_is_the_collectors() -> None:
    found = entry(__CURSOR="s=ab;i=2b;b=cd;m=1;t=2;x=3")
    assert found is not None and found.serial == 0x2B


def test_the_launcher_says_which_process_is_which_rank() -> None:
    said = made(100, "gaudi3-launch: ranks 8 to 10 are processes 70 71 99")
    assert entries.ranks_of(said) == Ranks(100, "gaudi-1", "b", {70: 8, 71: 9, 99: 10})
    assert entries.ranks_of(made(100, "gaudi3-launch: ranks 8 to 10 are processes 70 71")) is None
    assert entries.ranks_of(made(100, "he said gaudi3-launch: ranks 8 to 8 are processes 70")) is None


def test_a_rank_is_that_of_the_last_start_on_the_same_node_and_boot() -> None:
    first, again = Ranks(100, "gaudi-1", "b", {70: 8}), Ranks(10**9, "gaudi-1", "b", {70: 3})
    elsewhere, before = Ranks(10**9, "gaudi-2", "b", {70: 1}), Ranks(100, "gaudi-1", "a", {70: 5})
    starts = [elsewhere, again, first, before]
    assert entries.rank_of(made(200, pid=70), starts) == 8
    assert entries.rank_of(made(2 * 10**9, pid=70), starts) == 3
    assert entries.rank_of(made(200, pid=71), starts) is None
    assert entries.rank_of(made(200, pid=70, boot="c"), starts) is None
    assert made(200, pid=70).line(starts).endswith(" gaudi-1 rank 8: m")


def test_the_first_words_of_a_process_may_be_before_those_of_the_launcher() -> None:
    assert entries.rank_of(made(5, pid=70), [Ranks(entries.START_US, "gaudi-1", "b", {70: 8})]) == 8
