"""Prepared data on disk: token ids in memory-mapped files, and an index that is written when all of them are there.

KEY/shard-00000.bin     token ids of one width, as many as data.shard_tokens
KEY/shard-00000.starts  int64: which of them are the first of a document
KEY/shard-00000.learnt  uint8 per token: 1 if it is learnt, 0 if it is only read; in chat and prompt data
KEY/index.json          what the files hold, with the SHA-256 of each; its presence says that preparation ended
KEY/checked.json        size and time of change of each file when its SHA-256 was last compared
KEY/partial.json        the index of the files so far, and where to go on; gone when the index is there
KEY/tokenizer/          the tokenizer, as transformers reads it

With data.parts the names of files begin with part-000- and so on.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gaudi3_scale.files import write_atomically

FORMAT = 2
INDEX = "index.json"
CHECKED = "checked.json"
TOKENIZER = "tokenizer"
DTYPES = ("uint8", "uint16", "uint32")
STARTS, LEARNT = ".starts", ".learnt"
START_TYPE = np.dtype(np.int64)


@dataclass(frozen=True)
class Shard:
    """One file of tokens and those beside it."""

    file: str
    tokens: int
    sha256: str
    documents: int
    """Documents that begin in it."""
    starts_sha256: str
    learnt_sha256: str = ""
    """Empty where all tokens are learnt: there is no such file."""

    def beside(self, suffix: str) -> str:
        """The name of the file with this suffix."""
        return Path(self.file).stem + suffix


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
        return _digest([shard.sha256 for shard in self.shards])

    @property
    def partly_learnt(self) -> bool:
        """Are some tokens only read?"""
        return bool(self.shards[0].learnt_sha256)

    def arrays(self) -> list[npt.NDArray[Any]]:
        """The files, mapped read-only: plain arrays, since a memmap's own indexing is several times slower."""
        return [self._map(shard.file, self.dtype) for shard in self.shards]

    def starts(self) -> list[npt.NDArray[np.int64]]:
        """Per file, where documents begin in it."""
        empty = np.zeros(0, START_TYPE)
        return [self._map(shard.beside(STARTS), START_TYPE) if shard.documents else empty for shard in self.shards]

    def learnt(self) -> list[npt.NDArray[np.uint8]]:
        """Per file, 1 for each token that is learnt, else 0."""
        return [self._map(shard.beside(LEARNT), "uint8") for shard in self.shards]

    def digests(self) -> dict[str, tuple[int, str]]:
        """Bytes and SHA-256 of every file."""
        found: dict[str, tuple[int, str]] = {}
        for shard in self.shards:
            found[shard.file] = shard.tokens * np.dtype(self.dtype).itemsize, shard.sha256
            found[shard.beside(STARTS)] = shard.documents * START_TYPE.itemsize, shard.starts_sha256
            if shard.learnt_sha256:
                found[shard.beside(LEARNT)] = shard.tokens, shard.learnt_sha256
        return found

    def _map(self, name: str, dtype: Any) -> npt.NDArray[Any]:
        return np.asarray(np.memmap(self.folder / name, dtype=dtype, mode="r"))


def _digest(digests: list[str]) -> str:
    return digests[0] if len(digests) == 1 else hashlib.sha256("".join(digests).encode()).hexdigest()


def identity(corpus: Any) -> dict[str, Any]:
    """What must be equal on all nodes, of a Corpus or a Mixture."""
    if isinstance(corpus, Corpus):
        sides = [each for shard in corpus.shards for each in (shard.starts_sha256, shard.learnt_sha256)]
        return {"size": corpus.size, "sha256": corpus.sha256, "documents": _digest(sides)}
    about: dict[str, Any] = corpus.identity()
    return about


def width(vocabulary: int) -> str:
    """The narrowest unsigned type that holds every id."""
    return next(t for t, bound in (("uint8", 2**8), ("uint16", 2**16), ("uint32", 2**32)) if vocabulary <= bound)


def format_of(folder: Path) -> int | None:
    """The format of the index in a folder; None if there is none."""
    try:
        return int(json.loads((folder / INDEX).read_text())["format"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def read_index(folder: Path) -> Corpus | None:
    """What a folder holds, if its preparation ended and every file is as it was written."""
    try:
        values = json.loads((folder / INDEX).read_text())
        if values.pop("format") != FORMAT:
            return None
        shards = tuple(Shard(**shard) for shard in values.pop("shards"))
        corpus = Corpus(folder=folder, shards=shards, **values)
        if corpus.dtype not in DTYPES or not shards or not all(_is_name(shard.file) for shard in shards):
            return None
        return corpus if is_intact(folder, corpus.digests()) else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _is_name(name: str) -> bool:
    return Path(name).name == name and name.endswith(".bin") and not name.startswith(".")


def is_intact(folder: Path, digests: dict[str, tuple[int, str]]) -> bool:
    """Has every file its size and SHA-256? A file is read once, and again when its size or time of change differ."""
    known: dict[str, Any] = {}
    with contextlib.suppress(OSError, ValueError, RecursionError):
        known = json.loads((folder / CHECKED).read_text())
    checked: dict[str, Any] = {}
    for name, (size, sha256) in digests.items():
        found = (folder / name).stat()
        if found.st_size != size:
            return False
        checked[name] = [size, found.st_mtime_ns, sha256]
        if not isinstance(known, dict) or known.get(name) != checked[name]:
            with (folder / name).open("rb") as file:
                if hashlib.file_digest(file, "sha256").hexdigest() != sha256:
                    return False
    if checked != known:
        with contextlib.suppress(OSError):
            write_atomically(folder / CHECKED, json.dumps(checked))
    return True


def write_index(corpus: Corpus) -> None:
    """Say that the preparation ended."""
    values = {"format": FORMAT, **asdict(corpus)}
    del values["folder"]
    stamps = {name: [s, (corpus.folder / name).stat().st_mtime_ns, d] for name, (s, d) in corpus.digests().items()}
    write_atomically(corpus.folder / CHECKED, json.dumps(stamps))
    write_atomically(corpus.folder / INDEX, json.dumps(values, indent=1))
