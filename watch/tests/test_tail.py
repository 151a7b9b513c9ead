"""A growing file, and all that happens to one."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from gaudi3_watch import tail
from gaudi3_watch.tail import JsonLines

ALL = 10**9


class Reader:
    """A file's lines as they were accepted since its beginning."""

    def __init__(self, path: Path) -> None:
        self.steps: list[int] = []
        self.file = JsonLines(path, self.accept, self.steps.clear)

    def accept(self, line: dict[str, Any]) -> None:
        self.steps.append(int(line["step"]))

    def poll(self, most: int = ALL) -> list[int]:
        self.file.poll(most)
        return list(self.steps)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "metrics.jsonl"


def lines(*steps: int) -> str:
    return "".join(json.dumps({"step": step}) + "\n" for step in steps)


def test_only_what_is_new_is_read(path: Path) -> None:
    path.write_text(lines(1, 2))
    reader = Reader(path)
    assert reader.poll() == [1, 2]
    assert not reader.file.poll(ALL)
    with path.open("a") as file:
        file.write(lines(3))
    assert reader.poll() == [1, 2, 3]
    assert reader.file.lines == 3 and not reader.file.is_behind


def test_half_a_line_at_the_end_waits_for_its_rest(path: Path) -> None:
    path.write_text(lines(1) + '{"ste')
    reader = Reader(path)
    assert reader.poll() == [1] and reader.file.malformed == 0
    with path.open("a") as file:
        file.write('p": 2}\n')
    assert reader.poll() == [1, 2] and reader.file.malformed == 0


def test_a_file_that_was_cut_off_is_read_again(path: Path) -> None:
    path.write_text(lines(1, 2, 3))
    reader = Reader(path)
    reader.poll()
    path.write_text(lines(1))
    assert reader.poll() == [1]


def test_a_file_that_was_cut_off_and_has_grown_beyond_is_read_again(path: Path) -> None:
    path.write_text(lines(1, 2, 3))
    reader = Reader(path)
    reader.poll()
    path.write_text(lines(1, 7, 8, 9, 10))
    assert reader.poll() == [1, 7, 8, 9, 10]


def test_a_file_that_was_replaced_is_read_again(path: Path, tmp_path: Path) -> None:
    path.write_text(lines(1, 2, 3))
    reader = Reader(path)
    reader.poll()
    (tmp_path / "new").write_text(lines(1, 2, 3, 4))
    (tmp_path / "new").replace(path)
    assert reader.poll() == [1, 2, 3, 4]


def test_a_file_that_goes_and_comes_again(path: Path) -> None:
    reader = Reader(path)
    assert reader.poll() == [] and not reader.file.error
    path.write_text(lines(1))
    assert reader.poll() == [1]
    path.unlink()
    assert reader.file.poll(ALL) and reader.steps == []
    path.write_text(lines(2))
    assert reader.poll() == [2]


@pytest.mark.parametrize(
    "bad",
    ["nonsense", "[1]", "3", '{"step": "x"}', '{"other": 1}', "[" * 5000, '{"step": NaN}', '{"step": 1e999}', "\x00"],
)
def test_a_line_that_is_none_is_counted_and_the_others_are_read(path: Path, bad: str) -> None:
    path.write_text(lines(1) + bad + "\n" + lines(2))
    reader = Reader(path)
    assert reader.poll() == [1, 2]
    assert (reader.file.malformed, reader.file.first_malformed, reader.file.sample) == (
        1,
        2,
        bad[: tail.LONGEST_SAMPLE],
    )


def test_bytes_that_are_no_text_are_counted(path: Path) -> None:
    path.write_bytes(b"\xff\xfe\n" + lines(1).encode())
    reader = Reader(path)
    assert reader.poll() == [1] and reader.file.malformed == 1


def test_a_line_without_end_takes_no_memory(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tail, "PIECE", 1000)
    monkeypatch.setattr(tail, "LONGEST_LINE", 3000)
    path.write_text(lines(1) + "x" * 50_000)
    reader = Reader(path)
    assert reader.poll() == [1] and len(reader.file._rest) < 1000
    with path.open("a") as file:
        file.write("\n" + lines(2))
    assert reader.poll() == [1, 2] and reader.file.malformed == 1


def test_a_long_file_is_read_in_pieces(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tail, "PIECE", 100)
    path.write_text(lines(*range(100)))
    reader = Reader(path)
    reader.poll(200)
    assert 0 < len(reader.steps) < 100 and reader.file.is_behind
    while reader.file.is_behind:
        reader.poll(200)
    assert reader.steps == list(range(100))


def test_what_is_no_regular_file_is_not_opened(path: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(lines(1))
    path.symlink_to(tmp_path / "secret")
    reader = Reader(path)
    assert reader.poll() == [] and reader.file.error == "it is a link"
    path.unlink()
    os.mkfifo(path)
    assert reader.poll() == [] and reader.file.error == "it is no regular file"
    path.unlink()
    path.write_text(lines(2))
    assert reader.poll() == [2] and not reader.file.error
