"""Which size of DDP's buckets is fastest on this link: measured before training, on gradients of the same shapes.

The gradients come from a module of matrices of the same shapes, each of which is multiplied once with as many rows as a
micro-batch has, so that reductions overlap with products as they do in training. No weight, generator or optimizer of
the job is touched. What was chosen is kept in a file: with three processes or more, the size of buckets decides in
which order a ring sums, so that a job that goes on needs the same one.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from gaudi3_scale.files import write_atomically
from gaudi3_scale.integration.ddp.compression import gathered

CANDIDATES = (5.0, 25.0, 100.0)
"""MiB; 25 is torch's own default. All gradients in one bucket, without overlap, is tried besides."""
MIB = 2**20
WARM, PASSES = 2, 4
ROWS = 1024
FILE = "ddp.json"


@dataclass(frozen=True)
class BucketSize:
    """A size of buckets, in MiB, and why this one."""

    bucket_cap_mb: float
    sentence: str
    speeds: tuple[float, ...] = ()
    """Of each process's own products, as a share of the fastest one's; empty where nothing was measured."""


def candidates(gradient_bytes: int) -> list[float]:
    """Sizes that differ for this many bytes of gradients, the smallest first; the last one takes all of them.

    >>> candidates(60 * 2**20)
    [5.0, 25.0, 60.0]
    >>> candidates(2**20)
    [1.0]
    """
    whole = max(1.0, float(-(-gradient_bytes // MIB)))
    return [size for size in CANDIDATES if size < whole] + [whole]


def key(parameters: Sequence[Tensor], about: Sequence[object]) -> str:
    """Of a choice: shapes and dtypes of the gradients in their order, and whatever else matters."""
    shapes = [[list(p.shape), str(p.dtype)] for p in parameters]
    return hashlib.sha256(json.dumps([shapes, [str(each) for each in about]]).encode()).hexdigest()[:32]


class Memory:
    """Choices of earlier starts, in a file of this node."""

    def __init__(self, folder: Path | None) -> None:
        """Without a folder nothing is kept."""
        self._path = folder / FILE if folder is not None else None

    def read(self, name: str) -> float | None:
        """The size that was chosen; None if there is none that can be read."""
        value = self._all().get(name)
        return float(value) if isinstance(value, int | float) and value > 0 else None

    def write(self, name: str, size: float) -> None:
        """Keep it; a disk that is full is no reason to stop."""
        if self._path is None or self.read(name) == size:
            return
        try:
            write_atomically(self._path, json.dumps({**self._all(), name: size}, indent=2) + "\n")
        except OSError:
            return

    def _all(self) -> dict[str, Any]:
        try:
            values = json.loads(self._path.read_text()) if self._path is not None else {}
        except (OSError, ValueError):
            return {}
        return values if isinstance(values, dict) else {}


class _Products(nn.Module):
    """Parameters of the given shapes; a backward pass gives each its gradient by a product with `rows` rows."""

    def __init__(self, like: Sequence[Tensor], rows: int, device: torch.device) -> None:
        super().__init__()
        self.each = nn.ParameterList(nn.Parameter(torch.zeros(p.shape, dtype=p.dtype, device=device)) for p in like)
        self._rows = rows
        self._inputs: dict[tuple[int, torch.dtype], Tensor] = {}

    def forward(self) -> Tensor:
        total: Any = 0.0
        for parameter in self.each:
            matrix = parameter.flatten(1) if parameter.ndim > 1 else parameter
            if matrix.ndim > 1:
                total = total + (self._input(matrix) @ matrix.t()).sum()
            else:
                total = total + matrix.sum()
        result: Tensor = total
        return result

    def _input(self, matrix: Tensor) -> Tensor:
        wanted = matrix.shape[1], matrix.dtype
        if wanted not in self._inputs:
            self._inputs[wanted] = torch.ones((self._rows, wanted[0]), dtype=matrix.dtype, device=matrix.device)
        return self._inputs[wanted]


def choose(parameters: Sequence[Tensor], device: torch.device, rows: int, settle: Callable[[], None]) -> BucketSize:
    """Try the candidates on all processes, which get the same answer. Collective.

    Args:
        parameters: those that are trained, in DDP's order.
        device: where.
        rows: of a product, as many as a micro-batch has tokens.
        settle: waits until the device has done all it was given.
    """
    sizes = candidates(sum(p.numel() * p.element_size() for p in parameters))
    if len(sizes) == 1:
        return BucketSize(sizes[0], f"buckets of {sizes[0]:g} MiB: all gradients fit one")
    products = _Products(parameters, rows, device)
    alone = _seconds(products, settle)
    taken = [_measure(products, size, device, settle) for size in sizes]
    told = gathered([alone, *taken], device)
    slowest = [max(each[number + 1] for each in told) for number in range(len(sizes))]
    best = min(range(len(sizes)), key=slowest.__getitem__)
    fastest = min(each[0] for each in told)
    speeds = tuple(fastest / each[0] for each in told)
    shown = ", ".join(f"{_name(sizes, n)} {seconds * 1000:.1f} ms" for n, seconds in enumerate(slowest))
    return BucketSize(sizes[best], f"buckets of {_name(sizes, best)}: a backward pass took {shown}", speeds)


def _name(sizes: Sequence[float], number: int) -> str:
    return f"{sizes[number]:g} MiB" + (" (all, no overlap)" if number == len(sizes) - 1 else "")


def _measure(products: nn.Module, size: float, device: torch.device, settle: Callable[[], None]) -> float:
    ids = [device.index] if device.type == "cuda" else None
    model = DistributedDataParallel(products, device_ids=ids, bucket_cap_mb=size, gradient_as_bucket_view=True)
    return _seconds(model, settle)


def _seconds(model: nn.Module, settle: Callable[[], None]) -> float:
    """Median of a few backward passes."""
    taken = []
    for _ in range(WARM + PASSES):
        loss = model()
        settle()
        began = time.perf_counter()
        loss.backward()
        settle()
        taken.append(time.perf_counter() - began)
        model.zero_grad()
    return median(taken[WARM:])
