"""Where documents come from: local files, read from any position on, so that a killed preparation can continue."""

from __future__ import annotations

import hashlib
import json
import sysconfig
from collections.abc import Callable, Iterator
from itertools import accumulate
from pathlib import Path
from typing import Any, Protocol

from gaudi3_scale.config import DataConfig
from gaudi3_scale.data.compressed import open_bytes, skip
from gaudi3_scale.data.conversation import kind
from gaudi3_scale.data.forms import Form, form_of
from gaudi3_scale.data.json_file import RepeatedFieldError, json_records, unique
from gaudi3_scale.data.local_files import local_files, without_links
from gaudi3_scale.data.named_splits import several_splits
from gaudi3_scale.data.piece import START as START
from gaudi3_scale.data.piece import Cursor, Piece
from gaudi3_scale.data.records import fields, present, text_of
from gaudi3_scale.errors import ConfigError

# Not sources of the library itself, or packaged apart by distributions.
STDLIB_EXCLUDED = {"site-packages", "dist-packages", "__pycache__", "test", "tests", "idle_test", "idlelib", "lib2to3"}
STDLIB = "stdlib"
PIECE_BYTES = 2**20
CONTINUATION = 3
"""Bytes of a character of UTF-8 after its first, at most."""


class Source(Protocol):
    """Documents in an order that is the same on every node."""

    size: int
    """Work to do, in the units of `done`."""

    def fingerprint(self) -> str:
        """Changes when a partial preparation must not be continued."""
        ...

    def pieces(self, cursor: Cursor) -> Iterator[Piece]:
        """What comes after a position."""
        ...

    def done(self, cursor: Cursor) -> int:
        """Share of `size` that comes before a position."""
        ...

    def borders(self, parts: int) -> list[Cursor]:
        """Where each of this many parts begins, and where the last one ends; between two documents, always."""
        ...


def open_source(config: DataConfig, log: Callable[[str], None] | None = None) -> Source:
    """The source of a configuration; ConfigError where there is nothing to read. `log` is given what is left out."""
    if config.source.startswith("hf:"):
        from gaudi3_scale.data.tabular import HubSource

        return HubSource(config)
    source = FileSource(config)
    whys = (("hold none of its records", source.left_out), ("are links to others of these files", source.links))
    for why, names in whys:
        if names and log is not None:
            log(f"{config.source}: left out, as they {why}: {', '.join(names)}")
    return source


class FileSource:
    """Files, in the order of their names; a cursor is the file's index, an offset within it and its line or row."""

    def __init__(self, config: DataConfig) -> None:
        self._config = config
        root, found, companions = _files(config.source)
        files, links = without_links(root, found)
        self.links = sorted(str(path.relative_to(root)) for path in links)
        forms = {path: _form(path, config) for path in files}
        # Known by the content: a part of a corpus often has no suffix.
        if companions and not any(form.of_records for form in forms.values()):
            forms |= {path: _form(path, config) for path in companions}
            companions = []
        self._files = sorted(forms, key=lambda path: path.relative_to(root).as_posix())
        self._forms = [forms[path] for path in self._files]
        self.left_out = sorted(str(path.relative_to(root)) for path in companions)
        if not self._files:
            raise ConfigError(
                f"data.source is {config.source!r}, where there is no text: give a file or folder that has some."
            )
        if config.source != STDLIB:
            self._refuse_splits(root)
        self._sizes = [path.stat().st_size for path in self._files]
        self._before = [0, *accumulate(self._sizes)]
        self.size = self._before[-1]

    def _refuse_splits(self, root: Path) -> None:
        """Nobody trains on the data that a model is tested with unless that is said."""
        names = [path.relative_to(root).as_posix() for path in self._files]
        splits = several_splits(names, [form.of_records for form in self._forms])
        if splits:
            raise ConfigError(
                f"{root} has files of several splits ({', '.join(splits)}): set data.source to hf:{root}:{splits[0]}, "
                "or to a folder that has only what is to be trained on."
            )

    def fingerprint(self) -> str:
        """Names, sizes and times of change of all files."""
        listed = [[str(path), path.stat().st_size, path.stat().st_mtime_ns] for path in self._files]
        return hashlib.sha256(json.dumps(listed).encode()).hexdigest()

    def done(self, cursor: Cursor) -> int:
        """Bytes before the cursor; those of a compressed or columnar file are an estimate."""
        file, offset, _ = cursor
        return min(self._before[file] + offset, self._before[min(file + 1, len(self._files))])

    def pieces(self, cursor: Cursor) -> Iterator[Piece]:
        """Documents from the cursor on."""
        readers: dict[str, Callable[[int, int, int], Iterator[Piece]]] = {
            "text": self._text,
            "jsonl": self._jsonl,
            "json": self._json,
            "parquet": self._parquet,
            "arrow": self._arrow,
        }
        first, offset, line = cursor
        for index in range(first, len(self._files)):
            yield from readers[self._forms[index].kind](index, offset, line)
            offset = line = 0

    def _text(self, index: int, offset: int, line: int) -> Iterator[Piece]:
        if self._config.content != "text":
            raise ConfigError(
                f"data.content is {self._config.content}, and {self._files[index]} is plain text: give JSONL, Parquet "
                "or a Hugging Face dataset, or set data.format."
            )
        with self._open(index) as file:
            skip(file, offset)
            while True:
                data = file.read(PIECE_BYTES)
                if len(data) == PIECE_BYTES:
                    data += file.readline(PIECE_BYTES)
                for _ in range(CONTINUATION):  # never within a character of UTF-8
                    if file.peek(1)[:1] and file.peek(1)[0] & 0xC0 == 0x80:
                        data += file.read(1)
                if self._forms[index].strict:
                    _check_text(data, offset, self._files[index])
                offset += len(data)
                ends = not file.peek(1)
                yield Piece(data, ends, [index + 1, 0, 0] if ends else [index, offset, 0])
                if ends:
                    return

    def _jsonl(self, index: int, offset: int, line: int) -> Iterator[Piece]:
        path = self._files[index]
        since = f" from byte {offset:,} on" if offset and not line else ""  # a part begins within the file
        with self._open(index) as file:
            skip(file, offset)
            for raw in iter(file.readline, b""):
                line += 1
                offset += len(raw)
                if raw.strip():
                    yield Piece(self._value(raw, f"Line {line}{since} of {path}"), True, [index, offset, line])

    def _value(self, raw: bytes, where: str) -> str:
        try:
            record = json.loads(raw, object_pairs_hook=unique)
        except RepeatedFieldError as error:
            raise ConfigError(f"{where} has the field {str(error)!r} twice: mend or delete it.") from None
        except (ValueError, RecursionError):
            raise ConfigError(f"{where} is not JSON: mend or delete it.") from None
        return self._text_of(record, where)

    def _text_of(self, record: Any, where: str) -> str:
        if not isinstance(record, dict):
            raise ConfigError(
                f"{where} is {kind(record)}: it has to be an object with the field {fields(self._config)[0][0]!r}"
                + (", or set data.format to json if the file is one array." if isinstance(record, list) else ".")
            )
        advice = "set data.field to the one with the text, or delete the record"
        names = present(self._config, list(record), where, "field", advice)
        return text_of({name: record[name] for name in names}, where, self._config)

    def _json(self, index: int, offset: int, line: int) -> Iterator[Piece]:
        path = self._files[index]
        with self._open(index) as file:
            for number, (end, record) in enumerate(json_records(file, path), 1):
                if number > line:
                    yield Piece(self._text_of(record, f"Record {number} of {path}"), True, [index, end, number])

    def _parquet(self, index: int, offset: int, line: int) -> Iterator[Piece]:
        from gaudi3_scale.data.tabular import parquet_rows

        path = self._files[index]
        for row, rows, text in parquet_rows(path, self._config, line):
            yield Piece(text, True, [index, self._sizes[index] * (row + 1) // rows, row + 1])

    def _arrow(self, index: int, offset: int, line: int) -> Iterator[Piece]:
        from gaudi3_scale.data.tabular import arrow_rows

        for row, end, text in arrow_rows(self._files[index], self._config, line):
            yield Piece(text, True, [index, end, row + 1])

    def _open(self, index: int) -> Any:
        return open_bytes(self._files[index], self._forms[index].compression)

    def borders(self, parts: int) -> list[Cursor]:
        """A file is divided only if it is of lines and not compressed: at the first line that begins in the part."""
        result: list[Cursor] = [list(START)]
        for part in range(1, parts):
            goal = self.size * part // parts
            index = next(number for number, end in enumerate(self._before[1:]) if goal < end or end == self.size)
            path = self._files[index]
            if self._forms[index].seekable:
                with path.open("rb") as file:
                    file.seek(max(0, goal - self._before[index] - 1))
                    file.readline()
                    found = [index, file.tell(), 0]
            else:
                found = [index + (goal > self._before[index]), 0, 0]
            result.append(max(found, result[-1]))
        return [*result, [len(self._files), 0, 0]]


def _form(path: Path, config: DataConfig) -> Form:
    if config.source == STDLIB:
        return Form("text", None, strict=False)
    return form_of(path, config.format, fields(config)[0])


def _check_text(data: bytes, offset: int, path: Path) -> None:
    """ConfigError for bytes that are no text, with the place of the first."""
    at = data.find(b"\0")
    reason = "a NUL byte"
    if at < 0:
        try:
            data.decode()
            return
        except UnicodeDecodeError as error:
            at, reason = error.start, "no UTF-8"
    raise ConfigError(
        f"{path} has {reason} at byte {offset + at:,}, so it is no text: convert it to UTF-8, take it out of "
        "data.source, or set data.format to text to train on its bytes."
    )


def _files(source: str) -> tuple[Path, list[Path], list[Path]]:
    """The folder or file, the files to read, and those that accompany records."""
    if source != STDLIB:
        return Path(source), *local_files(Path(source))
    root = Path(sysconfig.get_path("stdlib"))
    return root, [p for p in root.rglob("*.py") if STDLIB_EXCLUDED.isdisjoint(p.relative_to(root).parts)], []
