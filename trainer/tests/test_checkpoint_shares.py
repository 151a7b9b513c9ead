"""The processes of a node read a checkpoint together when a job resumes."""

from __future__ import annotations

import hashlib
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from gaudi3_scale.checkpoint import Checkpoint, CheckpointStore, Entry, Manifest
from gaudi3_scale.checkpoint.peers import CheckpointPeers
from gaudi3_scale.checkpoint.resume import agree

SIZES = [900, 800, 700, 600, 500, 400, 300, 200, 100, 50]


class Meeting:
    """What the threads of one process gather."""

    def __init__(self, size: int) -> None:
        self.values: list[Any] = [None] * size
        self.barrier = threading.Barrier(size, timeout=10)

    def gather(self, rank: int, value: Any) -> list[Any]:
        self.values[rank] = value
        self.barrier.wait()
        found = list(self.values)
        self.barrier.wait()
        return found


class Thread(CheckpointPeers):
    """One of several ranks, as a thread."""

    def __init__(self, rank: int, places: list[int], meeting: Meeting) -> None:
        super().__init__(rank, places, None, None)
        self._meeting = meeting

    def gather(self, value: Any) -> list[Any]:
        """Everyone's."""
        return self._meeting.gather(self.rank, value)


def save(folder: Path, *steps: int) -> None:
    """Checkpoints of some files."""
    for step in steps:
        store = CheckpointStore(folder, 9)
        building = store.begin(step, "abc")
        files = {}
        for number, size in enumerate(SIZES):
            content = bytes([step, number]) * size
            (building / f"__{number}_0.distcp").write_bytes(content)
            files[f"__{number}_0.distcp"] = Entry(len(content), hashlib.sha256(content).hexdigest())
        store.commit(building, Manifest(step, "abc", "replicated", files, tuple(files), {}))


def resume(folders: list[Path], places: list[int]) -> tuple[list[Checkpoint | None], list[list[str]]]:
    """What each rank resumes from and says."""
    meeting = Meeting(len(places))
    said: list[list[str]] = [[] for _ in places]

    def one(rank: int) -> Checkpoint | None:
        store = CheckpointStore(folders[rank], 9, said[rank].append)
        return agree(Thread(rank, places, meeting), store, log=said[rank].append)

    with ThreadPoolExecutor(len(places)) as pool:
        return list(pool.map(one, range(len(places)))), said


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> dict[int, Counter[str]]:
    """How often each thread read which file whole."""
    found: dict[int, Counter[str]] = {}
    check = Entry.check

    def counted(self: Entry, path: Path) -> None:
        found.setdefault(threading.get_ident(), Counter())[f"{path.parent.parent.name}/{path.name}"] += self.size
        check(self, path)

    monkeypatch.setattr(Entry, "check", counted)
    return found


def test_each_process_of_a_node_reads_about_as_much_and_no_file_is_read_twice(
    tmp_path: Path, read: dict[int, Counter[str]]
) -> None:
    nodes = [tmp_path / "a", tmp_path / "b"]
    for each in nodes:
        save(each, 10)
    found, said = resume([nodes[0]] * 4 + [nodes[1]] * 4, [0] * 4 + [4] * 4)
    assert [each.step for each in found if each is not None] == [10] * 8 and said == [[]] * 8
    together = sum(read.values(), Counter())
    assert sorted(together.values()) == sorted(2 * [2 * size for size in SIZES])
    assert len(together) == 20 and len(read) == 8
    assert max(sum(each.values()) for each in read.values()) <= 1.1 * 2 * sum(SIZES) / 4


@pytest.mark.parametrize("number", range(4))
def test_damage_is_found_in_whosever_share_it_is(number: int, tmp_path: Path) -> None:
    save(tmp_path, 10, 20)
    path = tmp_path / "step-00000020" / f"__{number}_0.distcp"
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    found, said = resume([tmp_path] * 4, [0] * 4)
    assert [each.step for each in found if each is not None] == [10] * 4
    assert said[0] == [f"checkpoint {path.parent} is damaged (the content of {path.name} has changed) and is skipped"]
    assert said[1:] == [[]] * 3


def test_the_writer_reads_what_another_process_does_not_see(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As with a shared directory, of which another node sees a state of a moment ago."""
    save(tmp_path, 10)
    (tmp_path / "late").mkdir()
    found, said = resume([tmp_path, tmp_path / "late"], [0, 0])
    assert [each.step for each in found if each is not None] == [10, 10] and said == [[], []]
