"""Fit a batch into a budget of memory with the least recomputation.

Levels of a block, in the order of what they cost: nothing recomputed; `selective`, all but the matrix products and
attention kernels; `full`, the whole block. The plan is the cheapest assignment whose predicted peak keeps to the
budget. Its cost is FLOPs of matrix products and attention, then the number of blocks with any recomputation.

For blocks of equal cost that is exact, because of two facts (a test compares with all assignments): to recompute an
earlier block saves at least as much as a later one, as its activations live longer; and `selective` recomputes no
product, so that every block has it before one is `full`, and loses it again where that `full` saved enough. Where
blocks differ, those that save most per FLOP are taken first, and what the rest makes superfluous is taken back: good,
not proven best.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from gaudi3_scale.errors import ConfigError
from gaudi3_scale.internals import CPU_ATTENTION, GROUPED_PRODUCT
from gaudi3_scale.memory.checkpointing import Level, checkpoint_blocks
from gaudi3_scale.memory.tracker import Loss, StepMemory, StorageTracker, fake_mode, fake_twin, predict_step
from gaudi3_scale.models.blocks import repeated_blocks

GIB = 2**30
MARGIN = 0.05
"""Share of the budget left free for what a prediction cannot see; chosen, not measured on a card."""


@dataclass(frozen=True)
class RecomputePlan:
    """What to recompute, and what that is predicted to need."""

    blocks: dict[str, Level]
    """The level of every repeated block."""
    predicted: StepMemory
    limit: int
    """Bytes the predicted peak had to keep to: the budget less its margin."""
    recompute_share: float
    """FLOPs of products computed a second time, at most, as a share of the step's without recomputation."""

    @property
    def predicted_peak(self) -> int:
        """Bytes."""
        return self.predicted.peak

    def count(self, level: Level) -> int:
        """Blocks of this level."""
        return sum(each == level for each in self.blocks.values())

    def apply(self, model: nn.Module) -> None:
        """Make the model do so."""
        checkpoint_blocks(model, self.blocks)

    def __str__(self) -> str:
        return (
            f"{self.count('full')} of {len(self.blocks)} blocks recomputed, {self.count('selective')} all but their "
            f"products (+{self.recompute_share:.1%} FLOPs); predicted peak {self.predicted_peak / GIB:.3f} GiB "
            f"of {self.limit / GIB:.3f}"
        )


def plan_recompute(
    model: nn.Module,
    loss: Loss,
    inputs: Callable[[int], Sequence[Tensor]],
    micro_batch_size: int,
    budget: int,
    *,
    margin: float = MARGIN,
    selective: bool = True,
    **step: Any,
) -> RecomputePlan:
    """The cheapest plan for a step of `micro_batch_size` samples in `budget` bytes; the model is not touched.

    Args:
        model: on any device, `meta` included.
        loss: as for `predict_step`.
        inputs: gives the tensors of a micro-batch of this many samples; `meta` will do.
        micro_batch_size: samples per forward pass.
        budget: bytes of the device that the step may use.
        margin: share of the budget to leave free.
        selective: allow the level that keeps products; it pays a Python dispatch per operation.
        **step: further arguments of `predict_step`.

    Raises:
        ConfigError: not even with every block recomputed; it says which batch would fit.
    """
    if not 0 <= margin < 1:
        raise ConfigError(f"The margin is {margin}: give the share of the budget to leave free, at least 0, below 1.")
    search = _Search(model, loss, inputs, selective, step)
    limit = int(budget * (1 - margin))
    blocks = len(search.names)
    if (needed := search.peak(micro_batch_size, blocks, 0)) > limit:
        raise ConfigError(_refusal(search, micro_batch_size, needed, budget, margin))

    def fits(full: int, kept: int) -> bool:
        return search.peak(micro_batch_size, full, kept) <= limit

    def most_kept(full: int) -> int | None:
        """The last block is recomputed when all else is still there, so that to keep its products may cost memory."""
        rest = blocks - full if selective else 0
        return next((kept for kept in (rest, max(0, rest - 1)) if fits(full, kept)), None)

    full = _smallest(0, blocks, lambda number: most_kept(number) is not None)
    kept = _smallest(0, most_kept(full) or 0, lambda number: fits(full, number))
    levels = search.prune(search.assignment(full, kept), micro_batch_size, limit)
    return RecomputePlan(levels, search.predict(micro_batch_size, levels), limit, search.share(levels))


class _Search:
    """Predictions of one model's step, each made once."""

    def __init__(
        self,
        model: nn.Module,
        loss: Loss,
        inputs: Callable[[int], Sequence[Tensor]],
        selective: bool,
        step: dict[str, Any],
    ) -> None:
        with fake_mode() as mode:
            self.model = fake_twin(model, mode)
        self.loss, self.inputs, self.selective, self.step = loss, inputs, selective, step
        self.names = [name for name, _ in repeated_blocks(model)]
        if not self.names:
            raise ConfigError(
                f"{type(model).__name__} has no repeated blocks, so none can be recomputed to fit a budget: "
                "set activation_checkpointing to none."
            )
        self.flops, self.total_flops = self._flops()
        self._known: dict[tuple[int, tuple[Level, ...]], StepMemory] = {}

    def assignment(self, full: int, kept: int) -> dict[str, Level]:
        """The first `full` blocks in the order of what pays, recomputed; the next `kept`, all but their products."""
        levels: dict[str, Level] = dict.fromkeys(self.names, "none")
        for place, name in enumerate(self.order[: full + kept]):
            levels[name] = "full" if place < full else "selective"
        return levels

    def predict(self, batch: int, levels: dict[str, Level]) -> StepMemory:
        """The step with these levels."""
        key = (batch, tuple(levels[name] for name in self.names))
        if key not in self._known:
            checkpoint_blocks(self.model, levels)
            self._known[key] = predict_step(self.model, self.loss, self.inputs(batch), **self.step)
        return self._known[key]

    def peak(self, batch: int, full: int, kept: int) -> int:
        """Bytes with this assignment."""
        return self.predict(batch, self.assignment(full, kept)).peak

    def prune(self, levels: dict[str, Level], batch: int, limit: int) -> dict[str, Level]:
        """Take back what is not needed, the dearest first; nothing is where all blocks cost the same."""
        if len(set(self.flops.values())) == 1:
            return levels
        cheaper: dict[Level, Level] = {"full": "selective" if self.selective else "none", "selective": "none"}
        for name in sorted(self.names, key=lambda each: -self.flops[each]):
            while levels[name] != "none":
                trial = {**levels, name: cheaper[levels[name]]}
                if self.predict(batch, trial).peak > limit:
                    break
                levels = trial
        return levels

    def share(self, levels: dict[str, Level]) -> float:
        """FLOPs of the products that are computed twice, over those of the step; backward counts as two forwards."""
        again = sum(self.flops[name] for name, level in levels.items() if level == "full")
        return again / (3 * self.total_flops) if self.total_flops else 0.0

    @cached_property
    def order(self) -> list[str]:
        """Blocks by FLOPs per byte that their recomputation saves, then as they come."""
        kinds = {flops: name for name, flops in reversed(self.flops.items())}
        if len(kinds) == 1:
            return self.names
        none: dict[str, Level] = dict.fromkeys(self.names, "none")
        kept = self.predict(1, none).activations
        price = {
            flops: flops / max(1, kept - self.predict(1, {**none, name: "full"}).activations)
            for flops, name in kinds.items()
        }
        return sorted(self.names, key=lambda name: price[self.flops[name]])

    def _flops(self) -> tuple[dict[str, int], int]:
        """FLOPs of each block's forward pass and of the whole, for one sample."""
        flops: dict[str, int] = {}
        mapping = {
            CPU_ATTENTION.get(): _flash_flops,
            GROUPED_PRODUCT.get(): _grouped_flops,
        }
        counter = FlopCounterMode(display=False, custom_mapping=mapping)
        with fake_mode() as mode:
            twin = fake_twin(self.model, mode)
            blocks = repeated_blocks(twin)
            checkpoint_blocks(twin, {name: "none" for name, _ in blocks})
            for name, block in blocks:
                block.register_forward_pre_hook(_note(flops, name, counter, -1))
                block.register_forward_hook(_note(flops, name, counter, +1))
            with torch.no_grad(), StorageTracker(), counter:
                self.loss(twin, *(torch.empty(each.shape, dtype=each.dtype) for each in self.inputs(1)))
        return flops, counter.get_total_flops()


def _note(flops: dict[str, int], name: str, counter: FlopCounterMode, sign: int) -> Callable[..., None]:
    def hook(*args: Any) -> None:
        flops[name] = flops.get(name, 0) + sign * counter.get_total_flops()

    return hook


def _flash_flops(query: Any, key: Any, value: Any, *args: Any, **kwargs: Any) -> int:
    """Both products of attention; shapes (B, H, T, D), where keys and values may have fewer heads.

    torch counts nothing for its CPU kernel, and the formula of torch 2.9 for the others refuses fewer heads.
    """
    batch, heads, length, width = query
    return int(2 * batch * heads * length * key[2] * (width + value[3]))


def _grouped_flops(a: Any, b: Any, *args: Any, **kwargs: Any) -> int:
    """Shapes (S, K) and (G, K, N): each row meets one of the G matrices."""
    return int(2 * a[0] * a[1] * b[2])


def _smallest(low: int, high: int, holds: Callable[[int], bool]) -> int:
    """The smallest number that holds, where `high` does and whatever follows one that does."""
    if holds(low):
        return low
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def _refusal(search: _Search, batch: int, needed: int, budget: int, margin: float) -> str:
    """One sentence with what would fit."""
    last = len(search.names)
    limit = int(budget * (1 - margin))
    start = (
        f"A step of {batch} sample(s) needs {needed / GIB:.3f} GiB even with every block recomputed, and the budget of "
        f"{budget / GIB:.3f} GiB leaves {limit / GIB:.3f} after its margin of {margin:.0%}: "
    )
    enough = f"the budget to {needed / (1 - margin) / GIB:.3f} GiB"
    if batch == 1 or search.peak(1, last, 0) > limit:
        return start + f"raise {enough}, or shard the model over more devices."
    too_many = _smallest(1, batch, lambda size: search.peak(size, last, 0) > limit)
    return start + f"lower the micro-batch to {too_many - 1}, or raise {enough}."
