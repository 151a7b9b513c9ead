"""A record only grows: through writers at once, writers that are killed, and a full disk."""

from __future__ import annotations

import json
import multiprocessing
import os
from pathlib import Path

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._audit import chain
from ansible_collections.gaudi3.scale.plugins.module_utils._audit.verify import verify


def write(path: str, who: str) -> None:
    for number in range(40):
        chain.append(path, {"who": who, "number": number})


def read(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def test_each_line_holds_the_hash_of_the_one_before(tmp_path: Path) -> None:
    path = tmp_path / "new" / "audit.jsonl"
    first = chain.append(str(path), {"text": "ä\n\u2028"})
    second = chain.append(str(path), {"text": "b"})
    one, two = read(path)
    assert (one["n"], one["previous"], one["text"]) == (1, "0" * 64, "ä\n\u2028")
    assert (two["n"], two["previous"]) == (2, first)
    assert second == chain.digest(path.read_bytes().splitlines()[1])
    assert path.stat().st_mode & 0o777 == 0o600 and path.parent.stat().st_mode & 0o777 == 0o700


def test_writers_at_once_make_one_chain(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    writers = [multiprocessing.get_context("fork").Process(target=write, args=(str(path), name)) for name in "ab"]
    for each in writers:
        each.start()
    for each in writers:
        each.join()
        assert each.exitcode == 0
    found = read(path)
    assert verify(chain.lines(str(path)))[0:3:2] == (80, "")
    for name in "ab":
        assert [each["number"] for each in found if each["who"] == name] == list(range(40))


@pytest.mark.parametrize("kept", [1, 40, -2, -1, 0])
def test_a_killed_writer_loses_and_hides_nothing(tmp_path: Path, kept: int) -> None:
    path = tmp_path / "audit.jsonl"
    for text in ("a", "b"):
        chain.append(str(path), {"text": text * 60})
    whole = path.read_bytes()
    first, second = whole.splitlines(keepends=True)
    left = second[: kept or len(second)]
    path.write_bytes(first + left)
    chain.append(str(path), {"text": "c"})
    chain.append(str(path), {"text": "d"})
    lines = path.read_bytes().splitlines(keepends=True)
    assert lines[0] == first and lines[1].rstrip(b"\n") == left.rstrip(b"\n") and len(lines) == 4
    third = json.loads(lines[2])
    assert third["n"] == 3 and third["previous"] == chain.digest(left.rstrip(b"\n"))
    is_whole = kept in (-1, 0)
    assert third.get("after_cut") == (None if is_whole else [len(left)])
    verdict = verify(lines)
    assert verdict.problem == "" and len(verdict.notes) == (0 if is_whole else 1)


def test_a_second_writer_killed_behind_a_cut_line_is_told_too(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    path.write_bytes(b'{"n":1,"prev\n{"n":2,')
    chain.append(str(path), {"text": "c"})
    assert json.loads(path.read_bytes().splitlines()[2])["after_cut"] == [12, 7]
    verdict = verify(chain.lines(str(path)))
    assert (verdict.lines, verdict.problem, len(verdict.notes)) == (3, "", 2)


def test_lines_longer_than_what_is_read_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chain, "BLOCK", 16)
    path = tmp_path / "audit.jsonl"
    for number in range(5):
        chain.append(str(path), {"text": "x" * 100 * number})
    assert verify(chain.lines(str(path)))[0:3:2] == (5, "")


def test_what_cannot_be_written_whole_is_taken_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "audit.jsonl"
    chain.append(str(path), {"text": "a"})
    before, write = path.read_bytes(), os.write

    def full(handle: int, text: bytes) -> int:
        if len(text) < 40:
            raise OSError(28, "No space left on device")
        return write(handle, text[:40])

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OSError, match="No space left"):
        chain.append(str(path), {"text": "b"})
    assert path.read_bytes() == before


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "other").write_text("mine")
    (tmp_path / "audit.jsonl").symlink_to("other")
    with pytest.raises(OSError):
        chain.append(str(tmp_path / "audit.jsonl"), {})
    assert (tmp_path / "other").read_text() == "mine"


def test_a_number_that_nobody_can_count_on_is_no_record_and_stops_no_writer(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    chain.append(str(path), {"what": 1})
    forged = b'{"n":%s,"previous":"%s"}' % (b"9" * 4300, b"0" * 64)
    path.write_bytes(path.read_bytes() + forged + b"\n")
    chain.append(str(path), {"what": 2})
    last = chain.parse(path.read_bytes().splitlines()[-1])
    assert last is not None and (last["n"], last["after_cut"]) == (3, [len(forged)])
