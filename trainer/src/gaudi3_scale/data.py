"""The bytes to learn: collected once per output directory into one memory-mapped file, then read in batches."""

from __future__ import annotations

import hashlib
import json
import os
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from gaudi3_scale.config import DataConfig
from gaudi3_scale.errors import ConfigError
from gaudi3_scale.files import write_atomically
from gaudi3_scale.order import SampleOrder

# Not sources of the library itself, or packaged apart by distributions.
STDLIB_EXCLUDED = {"site-packages", "dist-packages", "__pycache__", "test", "tests", "idle_test", "idlelib", "lib2to3"}
AHEAD = 4096  # samples whose order is computed at once


@dataclass(frozen=True)
class Corpus:
    """One file of bytes and what identifies it."""

    path: Path
    size: int
    sha256: str


def collect(config: DataConfig, directory: Path) -> Corpus:
    """Build the file, unless the directory already has it for this source; the description is written last."""
    name = hashlib.sha256(config.source.encode()).hexdigest()[:12]
    path, about = directory / f"{name}.bin", directory / f"{name}.json"
    known = _described(path, about)
    if known:
        return known
    sources = _sources(config.source)
    directory.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(f".{os.getpid()}.tmp")
    digest = hashlib.sha256()
    try:
        with temporary.open("wb") as file:
            for source in sources:
                data = source.read_bytes() + b"\n"
                digest.update(data)
                file.write(data)
            size = file.tell()
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    corpus = Corpus(path, size, digest.hexdigest())
    description = {"source": config.source, "files": len(sources), "size": size, "sha256": corpus.sha256}
    write_atomically(about, json.dumps(description))
    return corpus


def _described(path: Path, about: Path) -> Corpus | None:
    try:
        description = json.loads(about.read_text())
        corpus = Corpus(path, int(description["size"]), str(description["sha256"]))
        return corpus if path.stat().st_size == corpus.size else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _sources(source: str) -> list[Path]:
    """The files to read, in an order that depends on their names only."""
    if source == "stdlib":
        root = Path(sysconfig.get_path("stdlib"))
        found = [p for p in root.rglob("*.py") if STDLIB_EXCLUDED.isdisjoint(p.relative_to(root).parts)]
    else:
        root = Path(source)
        if not root.exists():
            raise ConfigError(
                f"data.source is {source!r}, which does not exist on this node: give stdlib, or the path of a text "
                "file or folder."
            )
        found = [root] if root.is_file() else [p for p in root.rglob("*") if _visible(p.relative_to(root))]
    files = sorted((p for p in found if p.is_file()), key=lambda p: p.relative_to(root).as_posix())
    if not files:
        raise ConfigError(f"data.source is {source!r}, where there is no text: give a file or folder that has some.")
    return files


def _visible(path: Path) -> bool:
    return not any(part.startswith(".") for part in path.parts)


class Samples:
    """Samples of sequence_length + 1 bytes; a target is the byte after its input, so neighbours share one byte."""

    def __init__(self, corpus: Corpus, config: DataConfig, sequence_length: int, seed: int) -> None:
        self._bytes: npt.NDArray[np.uint8] = np.memmap(corpus.path, dtype=np.uint8, mode="r")
        self._window = np.arange(sequence_length + 1, dtype=np.int64)
        self.sequence_length = sequence_length
        blocks = (corpus.size - 1) // sequence_length
        if blocks < 2:
            raise ConfigError(
                f"data.source {config.source!r} has {corpus.size} bytes, fewer than two samples of "
                f"{sequence_length + 1}: give more text or a smaller model.sequence_length."
            )
        self.order = SampleOrder(blocks, config.validation_fraction, seed)

    def fetch(self, blocks: npt.NDArray[np.int64]) -> torch.Tensor:
        """The samples of these blocks at once: int64 of shape (len(blocks), sequence_length + 1)."""
        rows = self._bytes[blocks[:, None] * self.sequence_length + self._window]
        return torch.from_numpy(rows.astype(np.int64))

    def baseline(self) -> float:
        """Entropy of the held-out bytes' frequencies, nats per byte: the best loss without looking at context."""
        counts = np.zeros(256, dtype=np.int64)
        blocks = self.order.validation()
        for start in range(0, len(blocks), AHEAD):
            rows = blocks[start : start + AHEAD, None] * self.sequence_length + self._window[1:]
            counts += np.bincount(self._bytes[rows].ravel(), minlength=256)
        shares = counts[counts > 0] / counts.sum()
        return float(-(shares * np.log(shares)).sum())


class RankBatches:
    """This rank's micro-batches from a global position on, without end.

    The samples of one micro-step of all ranks are consecutive in the global order, so that the order of a job does not
    depend on how many processes share the work, as long as they take the same number of samples per step together.
    """

    def __init__(self, samples: Samples, start: int, micro_batch: int, rank: int, world_size: int) -> None:
        self._samples = samples
        self._start = start
        self._micro_batch = micro_batch
        self._offset = rank * micro_batch
        self._stride = micro_batch * world_size

    def __iter__(self) -> Iterator[torch.Tensor]:
        ahead = max(1, AHEAD // self._stride) * self._stride
        start = self._start
        while True:
            blocks = self._samples.order.train(start, ahead)
            for first in range(self._offset, ahead, self._stride):
                yield self._samples.fetch(blocks[first : first + self._micro_batch])
            start += ahead


def identity(corpus: Corpus) -> dict[str, Any]:
    """What must be equal on all nodes."""
    return {"size": corpus.size, "sha256": corpus.sha256}
