"""One part of a source, or all of it, into shards of its own."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np

from gaudi3_scale.config import DataConfig
from gaudi3_scale.data.encode import Encoder, Learnt
from gaudi3_scale.data.piece import Cursor, Piece
from gaudi3_scale.data.progress import PreparationProgress
from gaudi3_scale.data.shards import Shard, width
from gaudi3_scale.data.sources import Source
from gaudi3_scale.data.tokenizer import Tokenizer, Tokens, load_tokenizer
from gaudi3_scale.data.writer import ShardWriter
from gaudi3_scale.files import write_atomically

BATCH_CHARACTERS = 2**22
BATCH_PIECES = 4096


@dataclass
class State:
    """Where to go on: after this cursor, and this many tokens into the piece that begins there."""

    fingerprint: str
    cursor: Cursor
    skip: int = 0
    begins: bool = True
    """The piece at the cursor is the first of its document."""
    shards: list[Shard] = field(default_factory=list)
    done: bool = False


def partial_of(name: str) -> str:
    """File of the state of a part; the empty name is for all."""
    return f"partial-{name}.json" if name else "partial.json"


class Part:
    """A part of a source; None is all of it. Only one process at a time may run it."""

    def __init__(self, config: DataConfig, source: Source, encoder: Encoder, folder: Path, number: int | None) -> None:
        borders = source.borders(1 if number is None else config.parts)
        self.number = number
        self._begin, self._end = borders[number or 0 : (number or 0) + 2]
        self._of = config.parts
        self._source = source
        self._encoder = encoder
        self._folder = folder
        self._tokenizer: Tokenizer = load_tokenizer(config)
        self._dtype = width(self._tokenizer.vocabulary)
        self._capacity = config.shard_tokens
        self._prefix = "" if number is None else f"part-{number:03d}-"
        self._partial = folder / partial_of("" if number is None else f"{number:03d}")

    @property
    def fingerprint(self) -> str:
        """Of the source."""
        return self._source.fingerprint()

    def finished(self) -> State | None:
        """What the part holds, if it has been prepared."""
        state = self._stored()
        return state if state is not None and state.done else None

    def run(self, log: Callable[[str], None], bar: bool) -> State:
        """Prepare what is missing of it."""
        state = self._resume()
        if state.done:
            return state
        what = "" if self.number is None else f" part {self.number + 1} of {self._of}"
        if state.shards:
            log(f"preparing data{what} goes on after shard {len(state.shards)}")
        writer = ShardWriter(self._folder, self._dtype, self._capacity, state.shards, self._tokenizer.vocabulary)
        writer.prefix = self._prefix
        first = self._source.done(self._begin)
        size = self._source.size if self.number is None else self._source.done(self._end) - first
        progress = PreparationProgress(size, self._source.done(state.cursor) - first, log, bar, what=what)
        try:
            with progress:
                for batch in _batches(self._pieces(state.cursor), state.cursor):
                    self._add(batch, state, writer, progress)
                    progress.update(self._source.done(batch[-1][1].after) - first)
                writer.finish()
        finally:
            writer.abandon()
        state.cursor, state.done = self._end, True
        if self.number is not None:
            self._save(state)
        return state

    def _pieces(self, cursor: Cursor) -> Iterator[Piece]:
        for piece in self._source.pieces(cursor):
            if piece.after[:2] > self._end[:2]:
                return
            yield piece

    def _add(
        self, batch: list[tuple[Cursor, Piece]], state: State, writer: ShardWriter, progress: PreparationProgress
    ) -> None:
        pieces = [piece for _, piece in batch]
        begins = [state.begins, *(piece.ends for piece in pieces[:-1])]
        for (cursor, piece), first, encoded in zip(batch, begins, self._encoder.encode(pieces, begins), strict=True):
            written = self._append(cursor, first, encoded, state, writer)
            progress.tokens += written
            state.begins = piece.ends

    def _append(
        self, cursor: Cursor, first: bool, encoded: tuple[Tokens, Learnt], state: State, writer: ShardWriter
    ) -> int:
        """Append a piece's tokens, ending as many shards as they fill; how many were not there before."""
        tokens, learnt = encoded
        skipped = written = state.skip
        state.skip = 0
        if first and not written and len(tokens):
            writer.begin_document()
        while written < len(tokens):
            end = min(len(tokens), written + writer.room)
            writer.write(tokens[written:end], None if learnt is None else learnt[written:end])
            written = end
            if not writer.room:
                writer.finish()
                self._save(State(state.fingerprint, cursor, written, first, state.shards))
        return len(tokens) - skipped

    def _save(self, state: State) -> None:
        write_atomically(self._partial, json.dumps(asdict(state)))

    def _stored(self) -> State | None:
        """The state that a preparation left, if its source and its files are as they were."""
        try:
            values = json.loads(self._partial.read_text())
            state = State(**{**values, "shards": [Shard(**shard) for shard in values["shards"]]})
            sizes = {s.file: s.tokens * np.dtype(self._dtype).itemsize for s in state.shards}
            whole = all((self._folder / name).stat().st_size == size for name, size in sizes.items())
            return state if whole and state.fingerprint == self._source.fingerprint() else None
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return None

    def _resume(self) -> State:
        for half in (*self._folder.glob(f".{self._prefix}shard-*.tmp"), *self._folder.glob(f".{self._partial.name}.*")):
            half.unlink()
        return self._stored() or State(self._source.fingerprint(), list(self._begin))


def _batches(pieces: Iterator[Piece], begin: Cursor) -> Iterator[list[tuple[Cursor, Piece]]]:
    """Pieces with the cursor before each, enough at a time to keep all cores busy tokenising."""
    batch: list[tuple[Cursor, Piece]] = []
    characters = 0
    for piece in pieces:
        batch.append((begin, piece))
        begin = piece.after
        characters += len(piece.text)
        if characters >= BATCH_CHARACTERS or len(batch) == BATCH_PIECES:
            yield batch
            batch, characters = [], 0
    if batch:
        yield batch
