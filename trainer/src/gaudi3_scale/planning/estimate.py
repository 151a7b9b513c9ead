"""The plan: what fits where, at which batch, for how long and for how much."""

from __future__ import annotations

import dataclasses
import importlib
import math
import multiprocessing
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from gaudi3_scale.config import Config
from gaudi3_scale.config.auto_precision import precision_of
from gaudi3_scale.cost.inputs import Inputs
from gaudi3_scale.cost.model import estimate, time
from gaudi3_scale.cost.values import CHEAP, EXPENSIVE, Range
from gaudi3_scale.errors import ConfigError
from gaudi3_scale.planning.accelerators import DTYPES, Accelerator, accelerator
from gaudi3_scale.planning.layers import Known, known
from gaudi3_scale.planning.options import FEW, MANY, RECOMPUTATIONS, Need, Option, options, split_over
from gaudi3_scale.planning.peak import MemoryPeak, max_batch, predict_peak

Start = Callable[..., Callable[[], Any]]
"""Called with a function and its arguments; gives a function that waits for the result."""
MARGIN = 0.1
"""Share of a device's memory left free: for what no prediction sees, and for what a driver keeps. Chosen, not measured
on a card."""


AFTER_A_FORK = "fork-based multiprocessing"
"""In the sentence with which torch refuses a backward pass in a fork of a process that has made one."""
DEFERRED_ABOVE = 2 * 10**9
"""Parameters above which a whole model in each of a node's processes, in float32, may be too much for its host."""


@dataclass(frozen=True)
class Row:
    """One kind of device in one number."""

    platform: str
    devices: int
    precision: str
    memory_bytes: int
    option: Option | None
    """The one that is preferred of those that fit; None where none fits."""
    micro_batch: int = 0
    """Largest that fits, in samples per device."""
    needed_bytes: int = 0
    """Predicted with that batch; where nothing fits, of the option that needs least, with one sample."""
    offer: str = ""
    hours: Range | None = None
    money: Range | None = None
    why: str = ""
    """Why nothing fits, or why there are no hours or no money."""

    @property
    def fits(self) -> bool:
        """Is there a way to train?"""
        return self.option is not None


@dataclass(frozen=True)
class TrainingPlan:
    """All rows, and what they are from."""

    job: Config
    model: Known
    tokens: float
    flops: float
    """Of the whole training, without what is computed again."""
    margin: float
    inputs: Inputs
    rows: tuple[Row, ...]
    recommended: Row | None = None
    peak: MemoryPeak | None = None
    """Of the recommended row, predicted as it is."""
    config: Config | None = None
    """Its configuration, which `fit` takes."""
    precisions: tuple[Row, ...] = ()
    """The recommended place in every precision that it supports."""
    offers: tuple[Row, ...] = ()
    """The recommended row at every offer of its platform, such as regions and contracts; the cheapest one first."""


class Planner:
    """Makes plans of one job; what is predicted once is kept."""

    def __init__(
        self, job: Config, inputs: Inputs, tokens: float, margin: float = MARGIN, tensor_parallel: int = 1
    ) -> None:
        """With `tensor_parallel` above 1, rows that fit no job are also tried with matrices split over that many."""
        if not 0 <= margin < 1:
            raise ConfigError(f"The margin is {margin}: give the share of the memory to leave free, from 0 to below 1.")
        if tensor_parallel < 1:
            raise ConfigError(f"--tensor-parallel is {tensor_parallel}: give devices that share a matrix, from 1 on.")
        self.job, self.inputs, self.tokens, self.margin = job, inputs, tokens, margin
        self.tensor_parallel = tensor_parallel
        self.model = known(job.model)
        if self.model.flops is None:
            raise ConfigError(
                f"The operations of {job.model.name!r} are not known, so that its training is not planned."
            )
        self.per_token = self.model.flops.per_token(job.model.sequence_length)
        self._needs: dict[tuple[str, str, str, str], Need] = {}

    def plan(self, platforms: Iterable[str], devices: Sequence[int]) -> TrainingPlan:
        """A row for each platform and number of devices, of which one that fits is recommended."""
        names = list(platforms)
        for name in names:
            accelerator(name)
        with _second_process() as start:
            return self._plan(names, sorted(set(devices)), start)

    def _plan(self, names: list[str], devices: list[int], start: Start) -> TrainingPlan:
        rows = tuple(self._rows(names, devices, start))
        plan = TrainingPlan(
            self.job, self.model, self.tokens, self.tokens * self.per_token, self.margin, self.inputs, rows
        )
        best = recommend(rows)
        if best is None or best.option is None:
            return plan
        chosen = accelerator(best.platform)
        others = start(
            self._in_precisions,
            chosen,
            best.devices,
            [each for each in chosen.precisions if each != best.precision],
        )
        best, peak, config = self._verified(best, chosen)
        return dataclasses.replace(
            plan,
            recommended=best,
            peak=peak,
            config=config,
            precisions=(best, *others()),
            offers=tuple(self._at_offers(best, chosen)),
        )

    def _rows(self, names: list[str], devices: list[int], start: Start) -> list[Row]:
        """Of all platforms; those of the second device type beside those of the first."""
        kinds = list(dict.fromkeys(accelerator(name).kind for name in names))
        first, *more = [[name for name in names if accelerator(name).kind == kind] for kind in kinds]
        others = [start(self._rows_of, group, devices) for group in more]
        found = [*self._rows_of(first, devices), *(row for rows in others for row in rows())]
        return sorted(found, key=lambda row: names.index(row.platform))

    def _rows_of(self, names: list[str], devices: list[int]) -> list[Row]:
        wanted, places = self.job.train.precision, [accelerator(name) for name in names]
        return [
            self.row(accelerator, count, precision_of(wanted, accelerator.kind))
            for accelerator in places
            for count in devices
        ]

    def _in_precisions(self, accelerator: Accelerator, devices: int, precisions: list[str]) -> list[Row]:
        return [self.row(accelerator, devices, precision) for precision in precisions]

    def row(self, accelerator: Accelerator, devices: int, precision: str) -> Row:
        """The preferred way on this many of these devices."""
        limit = int(accelerator.memory_bytes * (1 - self.margin))
        row = Row(accelerator.name, devices, precision, accelerator.memory_bytes, None)
        if devices > accelerator.per_node and devices % accelerator.per_node:
            return dataclasses.replace(row, why=f"{devices} devices are no whole nodes of {accelerator.per_node}")
        least = 0
        for option in options(precision, devices, accelerator.per_node, RECOMPUTATIONS):
            if (floor := self._static(option, devices, accelerator)) > limit:
                least = min(least or floor, floor)
                continue
            found, split = self._need(option, accelerator.kind), split_over(option, devices, accelerator.per_node)
            if split != FEW and devices <= MANY and found.least() > limit:
                least = min(least or found.least(), found.least())
                continue
            batch = found.largest_batch(limit, split)
            if batch:
                row = dataclasses.replace(row, option=option, micro_batch=batch, needed_bytes=found.bytes(batch, split))
                return self._with_cost(row, accelerator)
            least = min(least or found.bytes(1, split), found.bytes(1, split))
        whole = accelerator.memory_bytes / 1e9
        why = f"needs {least / 1e9:,.1f} GB at least, and {limit / 1e9:,.1f} of {whole:,.0f} GB may be used"
        if self.tensor_parallel > 1:
            why += self._split(devices, accelerator, precision, limit)
        return dataclasses.replace(row, needed_bytes=least, why=why)

    def _split(self, devices: int, accelerator: Accelerator, precision: str, limit: int) -> str:
        """What a script with split matrices would fit, all blocks recomputed: a job of `fit` splits none."""
        size, option = self.tensor_parallel, Option("FSDP", "full", precision)
        if devices % size or self._static(option, devices, accelerator) > limit:
            return ""
        config = option.config(self.job, devices, accelerator.per_node)
        where: dict[str, Any] = {"world_size": devices, "device": accelerator.kind, "tensor_parallel": size}
        if not (batch := max_batch(config, limit, **where)):
            return f"; nor does it fit with matrices split over {size}"
        needed = predict_peak(config, batch, **where).bytes
        return (
            f"; a script with HabanaFSDPStrategy(tensor_parallel_size={size}) and all blocks recomputed takes "
            f"{needed / 1e9:,.1f} GB for {batch} sample(s) per {size} devices"
        )

    def _static(self, option: Option, devices: int, accelerator: Accelerator) -> int:
        """Bytes of weights, gradients and moments, without which nothing is trained; no prediction is needed for it."""
        half = 2 if self.job.model.lora.rank and option.precision != "32-true" else 4
        frozen = self.model.parameters - self.model.trained_parameters
        whole = 16 * self.model.trained_parameters + half * frozen
        return whole // split_over(option, devices, accelerator.per_node)

    def _need(self, option: Option, kind: str) -> Need:
        strategy = "DDP" if option.strategy == "DDP" else "FSDP"
        key = (strategy, option.recompute, option.precision, kind)
        if key not in self._needs:
            self._needs[key] = Need(self.job, option, kind)
        return self._needs[key]

    def _verified(self, row: Row, accelerator: Accelerator) -> tuple[Row, MemoryPeak, Config]:
        """The row with its batch predicted as it is, and lowered until it fits."""
        assert row.option is not None
        config = row.option.config(self.job, row.devices, accelerator.per_node)
        limit, batch = int(accelerator.memory_bytes * (1 - self.margin)), row.micro_batch
        peak = predict_peak(config, batch, world_size=row.devices, device=accelerator.kind)
        if peak.bytes > limit and batch > 1:
            batch = max(1, max_batch(config, limit, world_size=row.devices, device=accelerator.kind, most=batch))
            peak = predict_peak(config, batch, world_size=row.devices, device=accelerator.kind)
        changed: dict[str, Any] = {"train": config.train.model_copy(update={"micro_batch_size": batch})}
        if not self.job.train.gives("max_steps") and not self.job.train.batch_warmup:
            step = batch * config.train.accumulation_steps * row.devices * self.job.tokens_per_sample
            rise = config.train.warmup_steps if self.job.train.gives("warmup_steps") else 1
            steps = max(math.ceil(self.tokens / step), rise)
            changed["train"] = changed["train"].model_copy(update={"max_steps": steps})
        if row.option.strategy != "DDP" and self.model.parameters > DEFERRED_ABOVE:
            changed["model"] = config.model.model_copy(update={"deferred": True})
        config = config.model_copy(update=changed)
        return dataclasses.replace(row, micro_batch=batch, needed_bytes=peak.bytes), peak, config

    def _with_cost(self, row: Row, accelerator: Accelerator) -> Row:
        """With hours and money at the cheapest offer, as far as throughput and prices are given."""
        found = self._at_offers(row, accelerator)
        if not found:
            return dataclasses.replace(row, why="no throughput is given")
        return found[0] if found[0].hours else dataclasses.replace(found[0], offer="")

    def _at_offers(self, row: Row, accelerator: Accelerator) -> list[Row]:
        """The row at every offer of its platform and precision, the cheapest first; at any, where none has both."""
        names = [each for each in self.inputs.offers if self.inputs.platform(each) == accelerator.name]
        same = [each for each in names if self.inputs.precision(each) == DTYPES[row.precision]]
        found = [self._at_offer(row, accelerator, name) for name in same or names]
        return sorted(found, key=lambda each: (*_price(each), each.why == "no throughput is given"))

    def _at_offer(self, row: Row, accelerator: Accelerator, name: str) -> Row:
        offer, row = self.inputs.offer(name), dataclasses.replace(row, offer=name, hours=None, money=None, why="")
        if offer.mfu is None and offer.tokens_per_second_per_device is None:
            return dataclasses.replace(row, why="no throughput is given")
        if row.devices % accelerator.per_node:
            return dataclasses.replace(row, why=f"hours and prices are of whole nodes of {accelerator.per_node}")
        if DTYPES[row.precision] != self.inputs.precision(name):
            return dataclasses.replace(row, why=f"the throughput given is not that of {row.precision}")
        if offer.mfu is not None and not accelerator.has_peak(row.precision):
            return dataclasses.replace(row, why=f"no peak is known in {row.precision}, of which the MFU is a share")
        work = {"model_size": self.per_token / 6, "dataset_tokens": self.tokens, "devices": row.devices}
        inputs = self.inputs.model_copy(update={"job": self.inputs.job.model_copy(update=work)})
        hours = Range(*(time(inputs, name, pick).wall_hours for pick in (CHEAP, EXPENSIVE)))
        row = dataclasses.replace(row, hours=hours)
        if offer.node_price_per_hour is None and offer.node_purchase_price is None:
            return dataclasses.replace(row, why="no price is given")
        return dataclasses.replace(row, money=estimate(inputs, name, include_energy=inputs.energy is not None).total)


@contextmanager
def _second_process() -> Iterator[Start]:
    """Starts functions in one other process where there is a second core, else runs them when they are asked for.

    It is one process for all, made before the first backward pass of the command. In a process that has made one
    before, torch built for CUDA refuses any in a fork: what it refuses is done here.
    """
    if len(os.sched_getaffinity(0)) < 2:
        yield partial
        return
    importlib.import_module("gaudi3_scale.planning.fake_step")  # once, not in both
    with multiprocessing.get_context("fork").Pool(1) as pool:

        def start(function: Callable[..., Any], *arguments: Any) -> Callable[[], Any]:
            pending = pool.apply_async(function, arguments)

            def result() -> Any:
                try:
                    return pending.get()
                except RuntimeError as error:
                    if AFTER_A_FORK not in str(error):
                        raise
                    return function(*arguments)

            return result

        yield start


def recommend(rows: Sequence[Row]) -> Row | None:
    """Of those that fit the cheapest; without prices the fastest, and without throughput that on the fewest devices."""
    fitting = [row for row in rows if row.fits]
    if not fitting:
        return None

    def key(row: Row) -> tuple[Any, ...]:
        return *_price(row), row.devices, RECOMPUTATIONS.index(row.option.recompute) if row.option else 0

    return min(fitting, key=key)


def _price(row: Row) -> tuple[float, float]:
    """The middle of the money and of the hours; endless where they are not known."""
    money, hours = ((each.low + each.high) / 2 if each else math.inf for each in (row.money, row.hours))
    return money, hours
