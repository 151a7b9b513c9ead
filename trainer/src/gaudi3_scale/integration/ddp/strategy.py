"""`OptimizedDDP`: data parallelism that knows its link, and measures what is fastest on it."""

from __future__ import annotations

import contextlib
import inspect
import logging
import os
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from lightning.pytorch.strategies import DDPStrategy
from torch import Tensor
from torch.nn.parallel import DistributedDataParallel

from gaudi3_scale.config.ddp import DdpConfig
from gaudi3_scale.errors import ConfigError
from gaudi3_scale.hangs.counter import watch_gradients
from gaudi3_scale.integration.ddp import bucket_size
from gaudi3_scale.integration.ddp.balance import advice, weight
from gaudi3_scale.integration.ddp.compression import PASSES, CompressionTrial, Reduction, gathered
from gaudi3_scale.integration.ddp.interconnect import SLOWEST_FIRST, Interconnect, detect
from gaudi3_scale.integration.lightning_variants import register_strategy
from gaudi3_scale.integration.strategies import HabanaDDP
from gaudi3_scale.throughput import step_clock

log = logging.getLogger(__name__)
OWN = ("ddp_comm_state", "ddp_comm_hook", "ddp_comm_wrapper", "model_averaging_period")
"""Arguments of Lightning's DDPStrategy that decide what this strategy decides."""


class OptimizedDDPParts(HabanaDDP):
    """What `OptimizedDDP` is beside a DDPStrategy, of either Lightning; for the arguments see there."""

    strategy_name: str = "optimized_ddp"

    def __init__(
        self,
        bucket_cap_mb: float | str = "auto",
        compression: str = "none",
        *,
        folder: Path | str | None = None,
        log: Callable[[str], None] | None = None,
        **named: Any,
    ) -> None:
        given: dict[str, Any] = {
            name: named.pop(name) for name in ("compress", "powersgd_rank", "balance") if name in named
        }
        self.settings = _settings({"bucket_cap_mb": bucket_cap_mb, "compression": compression, **given})
        self._rows = int(named.pop("rows", bucket_size.ROWS))
        if theirs := [name for name in OWN if named.get(name) is not None]:
            raise ConfigError(
                f"OptimizedDDP was given {theirs[0]}, and has a hook of its own: use compression, or habana_ddp."
            )
        lightnings = set(inspect.signature(DDPStrategy.__init__).parameters)
        self._ddp = {name: named.pop(name) for name in list(named) if name not in lightnings}
        super().__init__(**named)
        self._memory = bucket_size.Memory(Path(folder) if folder is not None else None)
        self._log = log or _log_on_first
        self.link: Interconnect | None = None
        self.choice: bucket_size.BucketSize | None = None
        self.verdict: str | None = None
        self._reduction: Reduction | None = None
        self._trial: CompressionTrial | None = None
        self._began, self._reduced = 0.0, 0
        self._accumulation = 1
        self._weight = 1.0

    def setup(self, trainer: Any) -> None:
        """Check the shares of micro-batches first: nothing has been changed yet."""
        self._accumulation = trainer.accumulate_grad_batches
        self._share_out()
        super().setup(trainer)

    def configure_ddp(self) -> None:
        """Wrap the model, once buckets are decided on; Lightning calls this when training is set up."""
        root: torch.device = self.root_device  # type: ignore[attr-defined]
        model: Any = self.model  # type: ignore[has-type]
        size = self.settings.bucket_cap_mb
        self.link = self._agree_on_link(root)
        self._log(f"gradients go over {self.link}")
        if size == "auto":
            size = self._choose(root, [p for p in model.parameters() if p.requires_grad])
        ids = self.determine_ddp_device_ids()
        # As torch's notes on CUDA ask for, and as Lightning does it.
        side: Any = contextlib.nullcontext()
        if ids is not None:
            side = torch.cuda.stream(torch.cuda.Stream())  # type: ignore[no-untyped-call]
        with side, warnings.catch_warnings():
            # torch 2.13 renames broadcast_buffers, and torch 2.9 does not know its new name.
            warnings.filterwarnings("ignore", "`broadcast_buffers`", FutureWarning)
            self.model = DistributedDataParallel(model, device_ids=ids, bucket_cap_mb=float(size), **self._ddp)
        watch_gradients(self.model)
        step_clock.watch(self.model)
        if self.settings.compression != "none":
            self._reduction = Reduction(self.settings.compression, self.settings.powersgd_rank)
            self._reduction.register(self.model)
            passes = 0 if self.settings.compress == "always" else PASSES
            self._trial = CompressionTrial(self.settings.compression, passes=passes)

    def pre_backward(self, closure_loss: Tensor) -> None:
        """Say whether this pass is compressed, and begin to measure it while that is not decided."""
        super().pre_backward(closure_loss)
        if self._reduction is None or self._trial is None:
            return
        self._reduced = self._reduction.reduced
        self._reduction.compressing = self._trial.compresses
        if not self._trial.is_decided:
            self._settle()
            self._began = time.perf_counter()

    def backward(self, closure_loss: Tensor, *arguments: Any, **named: Any) -> Tensor:
        """Weigh this process's loss by its share of the micro-batches."""
        if self._weight != 1.0:
            closure_loss = closure_loss * self._weight
        result: Tensor = super().backward(closure_loss, *arguments, **named)  # type: ignore[misc]
        return result

    def post_backward(self, *arguments: Any, **named: Any) -> Any:
        """Take the time; decide once there are enough."""
        result = super().post_backward(*arguments, **named)
        reduction, trial = self._reduction, self._trial
        if reduction is not None and trial is not None:
            reduction.compressing = False  # a pass that nobody announces is plain
            if not trial.is_decided and reduction.reduced > self._reduced:
                self._note(trial)
        return result

    def _note(self, trial: CompressionTrial) -> None:
        self._settle()
        trial.note(time.perf_counter() - self._began)
        if trial.is_over and not trial.is_decided:
            medians = gathered(trial.medians(), self.root_device)  # type: ignore[attr-defined]
            self.verdict = trial.decide(medians)
            self._log(self.verdict)

    def _settle(self) -> None:
        root: torch.device = self.root_device  # type: ignore[attr-defined]
        self._step_boundary()
        if root.type != "cpu":
            torch.get_device_module(root).synchronize()

    def _agree_on_link(self, root: torch.device) -> Interconnect:
        """This node's, or the slowest kind of all nodes'. Collective."""
        backend, nodes = dist.get_backend(), int(self.num_nodes)  # type: ignore[attr-defined]
        mine = detect(backend, nodes, os.environ)
        kinds = [SLOWEST_FIRST[int(each[0])] for each in gathered([SLOWEST_FIRST.index(mine.kind)], root)]
        worst = min(kinds, key=SLOWEST_FIRST.index)
        if worst == mine.kind:
            return mine
        return Interconnect(worst, f"the slowest of the nodes, of which rank {kinds.index(worst)} has it")

    def _choose(self, root: torch.device, parameters: list[Tensor]) -> float:
        """The size of buckets of an earlier start, or the one that is measured now; the same everywhere. Collective."""
        assert self.link is not None
        about = (dist.get_world_size(), dist.get_backend(), root.type, self.link.kind, self._rows, torch.__version__)
        name = bucket_size.key(parameters, about)
        kept = [each[0] for each in gathered([self._memory.read(name) or 0.0], root)]
        found = next((size for size in kept if size), None)
        if found is not None:
            self.choice = bucket_size.BucketSize(found, f"buckets of {found:g} MiB, as at an earlier start")
        else:
            self.choice = bucket_size.choose(parameters, root, self._rows, self._settle)
        self._log(self.choice.sentence)
        if self.choice.speeds and (advised := advice(self.choice.speeds, self._accumulation)):
            self._log(advised)
        # Every process of a node writes the same.
        self._memory.write(name, self.choice.bucket_cap_mb)
        return self.choice.bucket_cap_mb

    def _share_out(self) -> None:
        counts = self.settings.balance
        if isinstance(counts, str):
            return
        rank, size = int(self.global_rank), int(self.world_size)  # type: ignore[attr-defined]
        if len(counts) != size or counts[rank] != self._accumulation:
            mine = counts[rank] if rank < len(counts) else None
            raise ConfigError(
                f"balance is {counts}, there are {size} processes, and accumulate_grad_batches of rank {rank} is "
                f"{self._accumulation}: give {size} numbers, and accumulate_grad_batches={mine} on this rank."
            )
        self._weight = weight(counts, rank)


class OptimizedDDP(OptimizedDDPParts, DDPStrategy):
    """`strategy="optimized_ddp"`: a whole model in every process, gradients reduced as is fastest on this link.

    Args:
        bucket_cap_mb: MiB of gradients that are reduced together, or auto = measured on gradients of the same shapes
            before training, which changes nothing of its state.
        compression: none, int8 or powersgd, each with error feedback. What was lost by rounding is not in checkpoints:
            a resumed training begins with none, and so is not the same to the bit.
        folder: where the size of buckets is kept (ddp.json), so that a training that goes on has the same one.
        log: gets each sentence on what was found and chosen; the log by default.
        **named: compress, powersgd_rank and balance, as in the section `ddp` of a job's configuration; rows, of the
            products that buckets are measured with (tokens of a micro-batch); whatever else DistributedDataParallel and
            Lightning's DDPStrategy take.

    `link` says what carries gradients, `choice` which buckets, `verdict` whether compression stayed on; each is None
    until it is known. Raises ConfigError.

    >>> OptimizedDDP(compression="int8", bucket_cap_mb=25).settings.compression
    'int8'
    >>> OptimizedDDP(compression="fp4")
    Traceback (most recent call last):
    gaudi3_scale.errors.ConfigError: compression is 'fp4': give 'none', 'int8' or 'powersgd'.
    """


register_strategy(OptimizedDDP, OptimizedDDPParts)


def _settings(values: dict[str, Any]) -> DdpConfig:
    from pydantic import ValidationError

    try:
        return DdpConfig.model_validate(values)
    except ValidationError as error:
        problem = error.errors()[0]
        name = str(problem["loc"][0])
        if problem["type"] == "value_error":
            raise ConfigError(f"{name}: {problem['ctx']['error']}.") from None
        allowed = str(problem.get("ctx", {}).get("expected", problem["msg"]))
        raise ConfigError(f"{name} is {problem['input']!r}: give {allowed}.") from None


def _log_on_first(text: str) -> None:
    if dist.get_rank() == 0:
        log.info("OptimizedDDP: %s", text)
