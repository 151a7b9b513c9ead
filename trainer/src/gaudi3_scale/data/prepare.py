"""From documents to shards, once; killed at any instant, it goes on after the last complete shard."""

from __future__ import annotations

import fcntl
import hashlib
import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gaudi3_scale.config import DataConfig
from gaudi3_scale.data.piece import START, Cursor, Piece
from gaudi3_scale.data.progress import PreparationProgress
from gaudi3_scale.data.shards import (
    PARTIAL,
    TOKENIZER,
    Corpus,
    Shard,
    ShardWriter,
    read_index,
    width,
    write_index,
)
from gaudi3_scale.data.sources import Source, open_source
from gaudi3_scale.data.tokenizer import Tokenizer, load_tokenizer
from gaudi3_scale.errors import ConfigError
from gaudi3_scale.files import write_atomically

BATCH_CHARACTERS = 2**22
BATCH_PIECES = 4096


def silent(text: str) -> None:
    """Nobody wants to know."""


def collect(config: DataConfig, directory: Path, say: Callable[[str], None] = silent, bar: bool = False) -> Corpus:
    """The prepared data of a configuration, made now if the directory does not have it yet.

    Once there, it is not compared with its source again: a job goes on with the data it began with.
    """
    tokenizer = load_tokenizer(config)
    folder = directory / key(config, tokenizer)
    known = _known(folder, tokenizer)
    if known:
        return known
    source = open_source(config)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _alone(folder):
            known = _known(folder, tokenizer)  # another process may have made it meanwhile
            return known or _Preparation(config, tokenizer, source, folder, say, bar).run()
    except OSError as error:
        raise ConfigError(
            f"Preparing data in {folder} failed ({error}): there has to be space, and this user has to be allowed to "
            "read data.source and to write data.directory or output_dir."
        ) from None


def _known(folder: Path, tokenizer: Tokenizer) -> Corpus | None:
    """What is there, unless it was prepared for fewer ids than the tokenizer has."""
    known = read_index(folder)
    return known if known is not None and known.vocabulary == tokenizer.vocabulary else None


def key(config: DataConfig, tokenizer: Tokenizer) -> str:
    """The folder's name: whatever changes the tokens changes it."""
    settings = [config.source, config.format, config.field, tokenizer.digest, tokenizer.separator, config.shard_tokens]
    return hashlib.sha256(json.dumps(settings).encode()).hexdigest()[:12]


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """One process prepares; the kernel takes the lock back from a dead one."""
    with (folder / ".lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@dataclass
class _State:
    """Where to go on: after this cursor, and so many tokens of the piece that begins there."""

    fingerprint: str
    cursor: Cursor
    skip: int
    documents: int
    shards: list[Shard]


class _Preparation:
    def __init__(
        self,
        config: DataConfig,
        tokenizer: Tokenizer,
        source: Source,
        folder: Path,
        say: Callable[[str], None],
        bar: bool,
    ) -> None:
        self._config = config
        self._tokenizer = tokenizer
        self._source = source
        self._folder = folder
        self._dtype = width(tokenizer.vocabulary)
        self._say = say
        self._state = self._resume()
        self._writer = ShardWriter(folder, self._dtype, config.shard_tokens, self._state.shards, tokenizer.vocabulary)
        self._progress = PreparationProgress(source.size, source.done(self._state.cursor), say, bar)

    def run(self) -> Corpus:
        """Prepare what is missing."""
        if self._state.shards:
            self._say(f"preparing data goes on after shard {len(self._state.shards)}")
        try:
            with self._progress:
                for batch in _batches(self._source.pieces(self._state.cursor), self._state.cursor):
                    for (begin, piece), tokens in zip(
                        batch, self._tokenizer.encode([piece.text for _, piece in batch]), strict=True
                    ):
                        self._add(begin, piece, tokens)
                    self._progress.update(self._source.done(batch[-1][1].after))
                self._writer.finish()
        finally:
            self._writer.abandon()
        return self._corpus()

    def _add(self, begin: Cursor, piece: Piece, tokens: Any) -> None:
        """Append a piece's tokens, ending as many shards as they fill."""
        if piece.ends:
            tokens = np.append(tokens, np.array(self._tokenizer.separator, dtype=tokens.dtype))
        written = self._state.skip
        self._state.skip = 0
        self._progress.tokens += len(tokens) - written
        while len(tokens) - written >= self._writer.room:
            end = written + self._writer.room
            self._writer.write(tokens[written:end])
            self._writer.finish()
            written = end
            self._save(begin, written)
        if written < len(tokens):
            self._writer.write(tokens[written:])
        self._state.documents += piece.ends

    def _corpus(self) -> Corpus:
        tokenizer = self._tokenizer
        if not self._state.shards:
            raise ConfigError(
                f"data.source {self._config.source!r} has no text in it: give a file or folder that has some."
            )
        shutil.rmtree(self._folder / TOKENIZER, ignore_errors=True)
        tokenizer.save(self._folder / TOKENIZER)
        corpus = Corpus(
            folder=self._folder,
            source=self._config.source,
            dtype=self._dtype,
            documents=self._state.documents,
            vocabulary=tokenizer.vocabulary,
            separator=tokenizer.separator,
            mask=tokenizer.mask,
            unit=tokenizer.unit,
            shards=tuple(self._state.shards),
        )
        write_index(corpus)
        return corpus

    def _save(self, cursor: Cursor, skip: int) -> None:
        state = _State(self._state.fingerprint, cursor, skip, self._state.documents, self._state.shards)
        write_atomically(self._folder / PARTIAL, json.dumps(asdict(state)))

    def _resume(self) -> _State:
        """The state that a killed preparation left, if its source and its files are as they were."""
        for half in self._folder.glob(".*.tmp"):
            half.unlink()
        fingerprint = self._source.fingerprint()
        try:
            values = json.loads((self._folder / PARTIAL).read_text())
            state = _State(**{**values, "shards": [Shard(**shard) for shard in values["shards"]]})
            item = np.dtype(self._dtype).itemsize
            whole = all((self._folder / s.file).stat().st_size == s.tokens * item for s in state.shards)
            if whole and state.fingerprint == fingerprint:
                return state
        except (OSError, ValueError, KeyError, TypeError):
            pass
        return _State(fingerprint, list(START), 0, 0, [])


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
