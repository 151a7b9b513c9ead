"""Parts of a source, prepared side by side; and prepared data that is not as it was written."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import IO, Any

import numpy as np
import pytest

from gaudi3_scale.config import DataConfig
from gaudi3_scale.data import Corpus, collect, sources
from gaudi3_scale.data.compressed import open_bytes
from gaudi3_scale.data.part import Part
from gaudi3_scale.data.shards import read_index
from gaudi3_scale.data.sources import START, open_source
from gaudi3_scale.errors import ConfigError

PARTS = 4


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of lines, one large file and small ones, and of a text."""
    folder = tmp_path_factory.mktemp("source")
    for name, count in (("a", 900), ("b", 30), ("c", 40)):
        lines = (json.dumps({"text": f"{name} {n} " * (n % 13 + 1)}) + "\n" for n in range(count))
        (folder / f"{name}.jsonl").write_text("".join(lines))
    (folder / "d.txt").write_text("the end\n" * 300)
    return folder


def content(folder: Path) -> dict[str, bytes]:
    """All files that a corpus is."""
    own = ("checked.json", ".source")  # times of change
    return {
        p.relative_to(folder).as_posix(): p.read_bytes()
        for p in folder.rglob("*")
        if p.is_file() and p.name not in own and not p.name.startswith(".lock")
    }


def tokens(corpus: Corpus) -> bytes:
    return b"".join(array.tobytes() for array in corpus.arrays())


@pytest.mark.parametrize("workers", [2, 4])
def test_what_several_prepare_is_what_one_prepares(
    source: Path, tmp_path: Path, workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = DataConfig(source=str(source), parts=PARTS, shard_tokens=5000)
    alone = collect(config, tmp_path / "alone")
    meet = threading.Barrier(workers, timeout=30)
    run = Part.run
    worked: list[tuple[int, int]] = []

    def together(self: Part, *rest: Any) -> Any:
        meet.wait()  # so that each takes a part before any takes its next
        worked.append((threading.get_ident(), self.number or 0))
        return run(self, *rest)

    monkeypatch.setattr(Part, "run", together)
    made: list[Corpus] = []
    threads = [
        threading.Thread(target=lambda: made.append(collect(config, tmp_path / "shared"))) for _ in range(workers)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(made) == workers and content(made[0].folder) == content(alone.folder)
    assert sorted(number for _, number in worked) == list(range(PARTS))  # none twice
    each = [ident for ident, _ in worked]
    assert {each.count(ident) for ident in each} == {PARTS // workers}


def test_parts_have_the_documents_of_the_whole(source: Path, tmp_path: Path) -> None:
    whole = collect(DataConfig(source=str(source)), tmp_path)
    for parts in (2, 3, 50):
        divided = collect(DataConfig(source=str(source), parts=parts), tmp_path)
        assert tokens(divided) == tokens(whole) and divided.documents == whole.documents == 971
    opened = open_source(DataConfig(source=str(source)))
    sizes = np.diff([opened.done(border) for border in opened.borders(4)])
    assert sizes.max() < 1.2 * sizes.mean()


def test_a_part_goes_on_where_it_was_killed(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = DataConfig(source=str(source), parts=2, shard_tokens=5000)
    alone = collect(config, tmp_path / "alone")
    save, saved = Part._save, []

    def die(self: Part, state: Any) -> None:
        save(self, state)
        saved.append(self.number)
        if len(saved) == 3:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Part, "_save", die)
        collect(config, tmp_path / "killed")
    said: list[str] = []
    again = collect(config, tmp_path / "killed", said.append)
    assert said[0] == "preparing data part 1 of 2 goes on after shard 3"
    assert content(again.folder) == content(alone.folder)


def test_a_node_with_another_source_is_refused_while_one_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "one"}\n' * 50)
    config = DataConfig(source=str(path), parts=2)
    run, begun, go_on = Part.run, threading.Event(), threading.Event()

    def wait(self: Part, *rest: Any) -> Any:
        begun.set()
        go_on.wait(30)
        return run(self, *rest)

    monkeypatch.setattr(Part, "run", wait)
    thread = threading.Thread(target=collect, args=(config, tmp_path / "data"))
    thread.start()
    assert begun.wait(30)
    path.write_text('{"text": "two"}\n' * 60)
    with pytest.raises(ConfigError, match=r"prepares .* from a data.source whose files have other names, sizes or "):
        collect(config, tmp_path / "data")
    go_on.set()
    thread.join(30)


class CountedFile:
    """A file that counts what is asked of it."""

    def __init__(self, file: IO[bytes], calls: list[str]) -> None:
        self._file, self._calls = file, calls

    def __enter__(self) -> CountedFile:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def __getattr__(self, name: str) -> Any:
        self._calls.append(name)
        return getattr(self._file, name)


def test_bytes_that_are_no_text_do_not_slow_the_reading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Text is not divided within a character, and in these bytes no character begins; few calls read each piece."""
    path = tmp_path / "a.txt"
    path.write_bytes(b"a" * 2**20 + b"\x80" * 2**21)
    calls: list[str] = []
    monkeypatch.setattr(sources, "open_bytes", lambda *given: CountedFile(open_bytes(*given), calls))
    pieces = list(open_source(DataConfig(source=str(path), format="text")).pieces(START))
    assert sum(len(piece.text) for piece in pieces) == 3 * 2**20
    assert len(pieces) <= 3 and 0 < len(calls) <= 20 * len(pieces)
    calls.clear()
    with pytest.raises(ConfigError, match=r"a\.txt has no UTF-8 at byte 1,048,576, so it is no text: "):
        list(open_source(DataConfig(source=str(path))).pieces(START))
    assert 0 < len(calls) <= 20


def test_prepared_data_that_was_changed_is_not_read(source: Path, tmp_path: Path) -> None:
    config = DataConfig(source=str(source), shard_tokens=5000)
    corpus = collect(config, tmp_path)
    index = corpus.folder / "index.json"
    good = index.read_text()
    for name in (corpus.shards[1].file, corpus.shards[1].beside(".starts")):
        data = bytearray((corpus.folder / name).read_bytes())
        data[7] ^= 1
        (corpus.folder / name).write_bytes(data)
        said: list[str] = []
        assert read_index(corpus.folder) is None
        assert collect(config, tmp_path, said.append) == corpus == read_index(corpus.folder)
        assert said == [f"the data in {corpus.folder} is not as it was written: it is prepared again"]
    for old, new in (
        (f'"file": "{corpus.shards[0].file}"', '"file": "../x.bin"'),
        ('"dtype": "uint8"', '"dtype": "O"'),
        ('"tokens": 5000', '"tokens": 1e999'),
    ):
        index.write_text(good.replace(old, new))
        assert good != index.read_text() and read_index(corpus.folder) is None
    index.write_text(good.replace('"format": 2', '"format": 1'))
    said = []
    assert collect(config, tmp_path, said.append) == corpus
    assert said == [
        f"the data in {corpus.folder} was prepared by an earlier version, in another format: it is prepared again"
    ]
