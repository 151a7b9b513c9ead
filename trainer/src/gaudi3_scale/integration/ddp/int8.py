"""The mean of gradients over all processes, exchanged as 8-bit integers with error feedback.

Arithmetic, for a bucket `g` of process `r` among `W`, in blocks of `BLOCK` elements, in float32:

    x = g + e                             what was lost before is added
    s = max|x| / 127, q = round(x / s)    one scale per block; |x - s q| <= s / 2
    e' = x - s q                          kept for the next step
    m = (1/W) sum over r of s_r q_r       by one process for each of W parts, in the order of ranks
    y = m + f, t = max|y| / 127, p = round(y / t), f' = y - t p
    result = t p                          the same on all processes

An all-to-all brings every process its part of all `q`, an all-gather brings all parts of `p` to all. A process sends
2 (W - 1) / W bytes per element, and 4 / BLOCK of that for scales; in a ring's all-reduce of float32, 8 (W - 1) / W.

Sources: error feedback, Seide et al. 2014 (1-bit SGD) and Karimireddy et al. 2019 (arXiv:1901.09847); on both sides of
the exchange, Tang et al. 2019 (DoubleSqueeze, arXiv:1905.05957).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

BLOCK = 256
"""Elements with one scale."""
LEVELS = 127


def quantise(values: Tensor, block: int = BLOCK) -> tuple[Tensor, Tensor]:
    """Integers (n,) int8 and scales (n / block,) float32 of values (n,) float32, where block divides n.

    A block with a NaN or an infinite value has a scale that is one, so that it comes out as NaN.

    >>> import torch
    >>> numbers, scales = quantise(torch.tensor([-1.0, 0.5, 0.004, 0.0]), block=4)
    >>> numbers.tolist(), scales.tolist() == [1 / torch.tensor(127.0)]
    ([-127, 64, 1, 0], True)
    """
    rows = values.view(-1, block)
    scales = rows.abs().amax(dim=1) / LEVELS
    divisors = torch.where(scales > 0, scales, torch.ones_like(scales))
    numbers = (rows / divisors.unsqueeze(1)).round().nan_to_num(1.0).clamp(-LEVELS, LEVELS).to(torch.int8)
    return numbers.view(-1), scales


def restore(numbers: Tensor, scales: Tensor, block: int = BLOCK) -> Tensor:
    """Values (n,) float32 of what `quantise` gave."""
    return (numbers.view(-1, block).float() * scales.unsqueeze(1)).view(-1)


@dataclass
class _Pending:
    """A bucket whose parts are on their way."""

    index: int
    buffer: Tensor
    future: Any
    works: list[Any]
    numbers: Tensor
    scales: Tensor


class Int8Mean:
    """Averages buckets over a process group. Every process calls it with the same buckets in the same order.

    The first exchange of a bucket runs while others are computed; the second one follows the last bucket, so that
    collectives are issued in one order everywhere.
    """

    def __init__(self, group: Any = None, error_feedback: bool = True) -> None:
        self._group = group
        self._size = dist.get_world_size(group)
        self._rank = dist.get_rank(group)
        self.error_feedback = error_feedback
        self.sent: dict[int, Tensor] = {}
        """By bucket: what this process lost by sending, padded."""
        self.averaged: dict[int, Tensor] = {}
        """By bucket: what it lost of its part of the mean."""
        self._pending: list[_Pending] = []

    def start(self, index: int, buffer: Tensor, last: bool) -> Any:
        """Begin to average a bucket (n,) in place; a Future of it, which is done once the last bucket was started."""
        values = torch.zeros(self._size * self._part(buffer), dtype=torch.float32, device=buffer.device)
        values[: buffer.numel()] = buffer
        if self.error_feedback:
            values += _kept(self.sent, index, values)
        numbers, scales = quantise(values)
        if self.error_feedback:
            self.sent[index] = _lost(values, restore(numbers, scales))
        pending = _Pending(index, buffer, _future(buffer), [], torch.empty_like(numbers), torch.empty_like(scales))
        for theirs, mine in ((pending.numbers, numbers), (pending.scales, scales)):
            pending.works.append(dist.all_to_all_single(theirs, mine, group=self._group, async_op=True))
        self._pending.append(pending)
        if last:
            self._finish()
        return pending.future

    def owed(self, index: int, buffer: Tensor) -> None:
        """Add to a bucket what was lost of it before, and owe it no longer: for a step that is not compressed."""
        sent, averaged = self.sent.pop(index, None), self.averaged.pop(index, None)
        part = self._part(buffer)
        if sent is None or averaged is None or sent.numel() != self._size * part:
            return  # nothing is owed, or DDP has arranged its buckets anew
        buffer += sent[: buffer.numel()].to(buffer.dtype)
        mine = buffer[self._rank * part : (self._rank + 1) * part]
        mine += (averaged[: mine.numel()] * self._size).to(buffer.dtype)

    def _part(self, buffer: Tensor) -> int:
        """Elements of a bucket that one process averages, with what fills up the last block."""
        return -(-buffer.numel() // (self._size * BLOCK)) * BLOCK

    def _finish(self) -> None:
        pendings, self._pending = self._pending, []
        gathering = []
        for pending in pendings:
            _wait(pending.works)
            mean = restore(pending.numbers, pending.scales).view(self._size, -1).sum(dim=0) / self._size
            if self.error_feedback:
                mean += _kept(self.averaged, pending.index, mean)
            numbers, scales = quantise(mean)
            if self.error_feedback:
                self.averaged[pending.index] = _lost(mean, restore(numbers, scales))
            pending.works = [
                dist.all_gather(list(every.chunk(self._size)), mine, group=self._group, async_op=True)
                for every, mine in ((pending.numbers, numbers), (pending.scales, scales))
            ]
            gathering.append((numbers, scales))  # alive until they have been sent
        for pending in pendings:
            _wait(pending.works)
            result = restore(pending.numbers, pending.scales)
            pending.buffer.copy_(result[: pending.buffer.numel()])
            pending.future.set_result(pending.buffer)


def _kept(losses: dict[int, Tensor], index: int, like: Tensor) -> Tensor:
    """What was lost of a bucket before; zero for one that DDP has rearranged."""
    kept = losses.get(index)
    return kept if kept is not None and kept.shape == like.shape else torch.zeros_like(like)


def _lost(values: Tensor, restored: Tensor) -> Tensor:
    """A gradient that is not finite is lost for good: it would spoil every later one."""
    return (values - restored).nan_to_num(0.0, 0.0, 0.0)


def _wait(works: list[Any]) -> None:
    for work in works:
        work.wait()


def _future(buffer: Tensor) -> Any:
    devices: list[int | str | torch.device] = [] if buffer.device.type == "cpu" else [buffer.device]
    return torch.futures.Future(devices=devices)
