"""The first broken link is named: its line, what was expected and what was found."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._audit import chain
from ansible_collections.gaudi3.scale.plugins.module_utils._audit.verify import verify


@pytest.fixture
def five(tmp_path: Path) -> list[bytes]:
    path = tmp_path / "audit.jsonl"
    for text in "abcde":
        chain.append(str(path), {"text": text})
    return path.read_bytes().splitlines(keepends=True)


def test_a_whole_chain(five: list[bytes]) -> None:
    assert verify(five) == (5, chain.digest(five[4][:-1]), "", ())
    assert verify([]) == (0, chain.START, "", ())
    assert verify(five, chain.digest(five[2][:-1])).notes[0].startswith("2 lines were added since")


def test_a_changed_byte(five: list[bytes]) -> None:
    five[2] = five[2].replace(b'"c"', b'"x"')
    said = verify(five).problem
    assert said == (
        f"Line 4: expected number 4 behind {chain.digest(five[2][:-1])[:12]}..., found number 4 behind "
        f"{chain.parse(five[3])['previous'][:12]}...: line 3 was changed after it was written."  # type: ignore[index]
    )


def test_a_changed_byte_that_leaves_no_record(five: list[bytes]) -> None:
    five[2] = five[2].replace(b"{", b"[")
    assert verify(five).problem.startswith(f"Line 3: expected a record, found {len(five[2]) - 1} bytes that are none")


@pytest.mark.parametrize(
    "order, said",
    [
        ((0, 1, 3, 4), "Line 3: expected number 3 behind "),
        ((1, 2, 3, 4), "Line 1: expected number 1 behind 000000000000..., found number 2 behind "),
        ((0, 2, 1, 3, 4), "Line 2: expected number 2 behind "),
        ((0, 1, 1, 2, 3), "Line 3: expected number 3 behind "),
    ],
)
def test_removed_reordered_and_repeated_lines(five: list[bytes], order: tuple[int, ...], said: str) -> None:
    assert verify([five[each] for each in order]).problem.startswith(said)
    ends = {(0, 1, 3, 4): "1 lines before it are missing", (0, 1, 1, 2, 3): "lines were put in"}
    assert ends.get(order, "another order.") in verify([five[each] for each in order]).problem


def test_a_truncated_tail_in_and_between_lines(five: list[bytes]) -> None:
    assert verify([*five[:4], five[4][:20]]).problem.startswith("Line 5 is cut after 20 bytes: expected a whole record")
    # Whole lines that are missing from the end need what was noted elsewhere.
    noted = chain.digest(five[4][:-1])
    assert verify(five[:4]).problem == ""
    assert verify(five[:4], noted).problem.startswith(f"None of the 4 lines has the hash {noted[:12]}...")
    five[4] = five[4].replace(b'"e"', b'"x"')
    assert verify(five).problem == "" and verify(five, noted).problem.startswith("None of the 5 lines")


def test_a_cut_line_cannot_be_removed_or_invented(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    chain.append(str(path), {"text": "a"})
    with path.open("ab") as file:
        file.write(b'{"n":2,"pre')
    chain.append(str(path), {"text": "c"})
    one, two, three = path.read_bytes().splitlines(keepends=True)
    assert verify([one, two, three]).notes == (
        "Line 2 was cut after 11 bytes: its writer was killed, the next went on.",
    )
    assert verify([one, three]).problem.startswith("Line 2: expected a cut line before it")
    assert verify([one, two[:-2] + b"\n", three]).problem.startswith("Line 2: expected a record")
    assert verify([one, b"x" * 11 + b"\n", three]).problem.startswith("Line 3: expected number 3 behind")


@pytest.mark.parametrize("planted", [b"[" * 100_000, b'{"n":true,"previous":"' + b"0" * 64 + b'"}'])
def test_a_planted_line_is_named_and_stops_no_writer(planted: bytes, tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    path.write_bytes(planted + b"\n")
    assert verify([planted + b"\n"]).problem.startswith(f"Line 1: expected a record, found {len(planted)} bytes")
    chain.append(str(path), {"text": "a"})
    assert path.read_bytes().splitlines()[1].startswith(b'{"n":2,')
