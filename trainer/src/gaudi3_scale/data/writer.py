"""Writing shards: a complete file has its name only once it is durable."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from gaudi3_scale.data.shards import LEARNT, START_TYPE, STARTS, Shard
from gaudi3_scale.errors import TrainerError
from gaudi3_scale.files import create, sync_directory


class _Growing:
    """A file under its temporary name, and the digest of what is in it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._temporary = path.with_name(f".{path.name}.tmp")
        self._digest = hashlib.sha256()
        self._file: BinaryIO = create(self._temporary)

    def append(self, values: npt.NDArray[Any]) -> None:
        data = values.tobytes()
        self._digest.update(data)
        self._file.write(data)

    def finish(self) -> str:
        """Make it durable under its name; its SHA-256."""
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        self._temporary.replace(self._path)
        return self._digest.hexdigest()

    def abandon(self) -> None:
        self._file.close()
        self._temporary.unlink(missing_ok=True)


class ShardWriter:
    """Appends tokens to the files of the shard being built."""

    def __init__(
        self, folder: Path, dtype: str, capacity: int, shards: list[Shard], vocabulary: int | None = None
    ) -> None:
        """Ids are smaller than `vocabulary`, or than what the type holds."""
        self.shards = shards
        self.prefix = ""
        """Names of files begin with it."""
        self._bound = np.iinfo(dtype).max + 1 if vocabulary is None else vocabulary
        self._folder = folder
        self._dtype = np.dtype(dtype)
        self._capacity = capacity
        self._tokens = 0
        self._documents = 0
        self._files: dict[str, _Growing] = {}

    @property
    def room(self) -> int:
        """Tokens that still fit into the shard being built."""
        return self._capacity - self._tokens

    def begin_document(self) -> None:
        """The token that is written next is the first of a document."""
        self._open(STARTS).append(np.array([self._tokens], START_TYPE))
        self._documents += 1

    def write(self, tokens: npt.NDArray[Any], learnt: npt.NDArray[Any] | None = None) -> None:
        """Append; at most `room` of them. An id that would be stored as another is refused."""
        largest = int(tokens.max(initial=0))
        if largest >= self._bound:
            raise TrainerError(
                f"The tokenizer gave the id {largest}, and its vocabulary ends at {self._bound - 1}: the tokenizer is "
                "broken; give another one as data.tokenizer."
            )
        self._open(STARTS)  # empty where no document begins
        self._open(".bin").append(tokens.astype(self._dtype, copy=False))
        if learnt is not None:
            self._open(LEARNT).append(learnt.astype(np.uint8, copy=False))
        self._tokens += len(tokens)

    def finish(self) -> None:
        """Close the shard being built, if there is anything in it."""
        if not self._tokens:
            return
        name = self._name
        digests = {suffix: self._files[suffix].finish() for suffix in sorted(self._files, reverse=True)}  # .bin last
        sync_directory(self._folder)
        self.shards.append(
            Shard(
                f"{name}.bin",
                self._tokens,
                digests[".bin"],
                self._documents,
                digests[STARTS],
                digests.get(LEARNT, ""),
            )
        )
        self._files, self._tokens, self._documents = {}, 0, 0

    def abandon(self) -> None:
        """Leave nothing half-written behind."""
        for file in self._files.values():
            file.abandon()
        self._files = {}

    def _open(self, suffix: str) -> _Growing:
        if suffix not in self._files:
            self._files[suffix] = _Growing(self._folder / f"{self._name}{suffix}")
        return self._files[suffix]

    @property
    def _name(self) -> str:
        return f"{self.prefix}shard-{len(self.shards):05d}"
