"""Prepared data on disk: token ids in memory-mapped files, and an index that is written when all of them are there.

KEY/shard-00000.bin   token ids of one width, as many as data.shard_tokens
KEY/index.json        what the files hold, with the SHA-256 of each; its presence says that preparation ended
KEY/partial.json      the same for the files so far, and where to go on; gone when the index is there
KEY/tokenizer/        the tokenizer, as transformers reads it
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from gaudi3_scale.errors import TrainerError
from gaudi3_scale.files import sync_directory, write_atomically

FORMAT = 1
INDEX = "index.json"
PARTIAL = "partial.json"
TOKENIZER = "tokenizer"


@dataclass(frozen=True)
class Shard:
    """One file."""

    file: str
    tokens: int
    sha256: str


@dataclass(frozen=True)
class Corpus:
    """Prepared data and what identifies it."""

    folder: Path
    source: str
    dtype: str
    documents: int
    vocabulary: int
    """Ids are smaller than this."""
    separator: int
    mask: int | None
    unit: str
    """What a token is: byte or token."""
    shards: tuple[Shard, ...]

    @property
    def size(self) -> int:
        """Tokens in all."""
        return sum(shard.tokens for shard in self.shards)

    @property
    def sha256(self) -> str:
        """Of the only file, or of the digests of all."""
        digests = [shard.sha256 for shard in self.shards]
        return digests[0] if len(digests) == 1 else hashlib.sha256("".join(digests).encode()).hexdigest()

    def arrays(self) -> list[npt.NDArray[Any]]:
        """The files, mapped read-only: plain arrays, since a memmap's own indexing is several times slower."""
        return [np.asarray(np.memmap(self.folder / shard.file, dtype=self.dtype, mode="r")) for shard in self.shards]


def identity(corpus: Corpus) -> dict[str, Any]:
    """What must be equal on all nodes."""
    return {"size": corpus.size, "sha256": corpus.sha256}


def width(vocabulary: int) -> str:
    """The narrowest unsigned type that holds every id."""
    return next(t for t, bound in (("uint8", 2**8), ("uint16", 2**16), ("uint32", 2**32)) if vocabulary <= bound)


def read_index(folder: Path) -> Corpus | None:
    """What a folder holds, if its preparation ended and every file has its size."""
    try:
        values = json.loads((folder / INDEX).read_text())
        if values.pop("format") != FORMAT:
            return None
        shards = tuple(Shard(**shard) for shard in values.pop("shards"))
        corpus = Corpus(folder=folder, shards=shards, **values)
        item = np.dtype(corpus.dtype).itemsize
        whole = shards and all((folder / s.file).stat().st_size == s.tokens * item for s in shards)
        return corpus if whole else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def write_index(corpus: Corpus) -> None:
    """Say that the preparation ended."""
    values = {"format": FORMAT, **asdict(corpus)}
    del values["folder"]
    write_atomically(corpus.folder / INDEX, json.dumps(values, indent=1))
    (corpus.folder / PARTIAL).unlink(missing_ok=True)


class ShardWriter:
    """Appends tokens to the file being built; a complete file has its name only once it is durable."""

    def __init__(
        self, folder: Path, dtype: str, capacity: int, shards: list[Shard], vocabulary: int | None = None
    ) -> None:
        """Ids are smaller than `vocabulary`, or than what the type holds."""
        self.shards = shards
        self._bound = np.iinfo(dtype).max + 1 if vocabulary is None else vocabulary
        self._folder = folder
        self._dtype = np.dtype(dtype)
        self._capacity = capacity
        self._file: BinaryIO | None = None
        self._digest = hashlib.sha256()
        self._tokens = 0

    @property
    def room(self) -> int:
        """Tokens that still fit into the file being built."""
        return self._capacity - self._tokens

    def write(self, tokens: npt.NDArray[Any]) -> None:
        """Append; at most `room` of them. An id that would be stored as another is refused."""
        largest = int(tokens.max(initial=0))
        if largest >= self._bound:
            raise TrainerError(
                f"The tokenizer gave the id {largest}, and its vocabulary ends at {self._bound - 1}: the tokenizer is "
                "broken; give another one as data.tokenizer."
            )
        if self._file is None:
            self._file = self._building.open("wb")
        data = tokens.astype(self._dtype, copy=False).tobytes()
        self._digest.update(data)
        self._file.write(data)
        self._tokens += len(tokens)

    def finish(self) -> None:
        """Close the file being built, if there is anything in it."""
        if self._file is None:
            return
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        name = self._name
        self._building.replace(self._folder / name)
        sync_directory(self._folder)
        self.shards.append(Shard(name, self._tokens, self._digest.hexdigest()))
        self._file, self._digest, self._tokens = None, hashlib.sha256(), 0

    def abandon(self) -> None:
        """Leave nothing half-written behind."""
        if self._file is not None:
            self._file.close()
            self._building.unlink(missing_ok=True)

    @property
    def _name(self) -> str:
        return f"shard-{len(self.shards):05d}.bin"

    @property
    def _building(self) -> Path:
        return self._folder / f".{self._name}.tmp"
