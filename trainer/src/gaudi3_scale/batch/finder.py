"""The largest batch for a model of one's own."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import astuple
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gaudi3_scale.errors import ConfigError

if TYPE_CHECKING:
    import lightning.pytorch as pl
    from torch import Tensor, nn

    from gaudi3_scale.batch.search import BatchTrial, FoundBatch
    from gaudi3_scale.hpu.device import Device

MOST = 2**16
SECONDS = 600
"""For which processes wait for each other."""


class AdaptiveBatchFinder:
    """Finds the largest batch of a model whose training step fits the device.

    Args:
        model: on the CPU; it is copied for every trial and is itself never run, so that it is the same afterwards.
        target_hpu_utilization: share of the device's free memory that a step may take; of a simulated card, whose
            bytes are the host's, no more than the host's memory has left.
        precision: 32-true, bf16-mixed or bf16-true.
        loss: `loss(model, batch)` gives a scalar; None = that of the tokens, for a transformers model.
        batch_of: `batch_of(size)` gives a tensor of `size` samples; None = tokens of `sequence_length`.
        sequence_length: tokens of a sample; None = as the model's configuration says.
        accelerator: hpu, cuda, cpu or auto.
        strategy: as of GaudiTrainer: auto, gaudi_single, habana_ddp, habana_fsdp.
        max_batch_size: no larger one; needed on cpu, whose memory is not only this job's.
        cache_dir: remembers results in `batch.json`; None = nowhere.

    The step's memory is predicted, and at most two real steps, AdamW's included, make it certain. A sharded model, and
    one whose operations fake tensors do not know, is found with at most eight real steps. To be called by all processes
    that torchrun started; all of them get the same answer.

    >>> from torch import nn
    >>> finder = AdaptiveBatchFinder(model=nn.Linear(8, 8), accelerator="cpu", max_batch_size=32)
    >>> finder.find_optimal_batch_size()
    32
    >>> finder.found.how
    "the bound, as the memory of a cpu is not only this job's"
    """

    def __init__(
        self,
        model: nn.Module,
        target_hpu_utilization: float = 0.95,
        precision: str = "32-true",
        *,
        loss: Callable[..., Tensor] | None = None,
        batch_of: Callable[[int], Tensor] | None = None,
        sequence_length: int | None = None,
        accelerator: str = "auto",
        strategy: str = "auto",
        max_batch_size: int | None = None,
        cache_dir: Path | str | None = None,
    ) -> None:
        if not 0 < target_hpu_utilization <= 1:
            raise ConfigError(
                f"target_hpu_utilization is {target_hpu_utilization}: give a share above 0 and at most 1, such as 0.95."
            )
        if precision not in ("32-true", "bf16-mixed", "bf16-true"):
            raise ConfigError(f"precision is {precision!r}: give 32-true, bf16-mixed or bf16-true.")
        if max_batch_size is not None and max_batch_size < 1:
            raise ConfigError(f"max_batch_size is {max_batch_size}: give 1 or more.")
        if elsewhere := {str(p.device) for p in model.parameters() if p.device.type != "cpu"}:
            raise ConfigError(
                f"The model is on {', '.join(sorted(elsewhere))}, where trials have less memory than the training: "
                "find the batch before the model is moved."
            )
        self.model = model
        self.share = target_hpu_utilization
        self.precision = precision
        self.accelerator = accelerator
        self.strategy = strategy
        self.max_batch_size = max_batch_size
        self.cache_dir = Path(cache_dir) if cache_dir is not None else None
        self._loss = loss or _token_loss(model, batch_of)
        self._batch_of = batch_of or partial(_tokens, model, sequence_length)
        self.found: FoundBatch | None = None
        """How it was found, once it was."""

    def find_optimal_batch_size(self) -> int:
        """Samples per process and forward pass. Collective; raises ConfigError where not one fits."""
        self.found = self._find()
        return self.found.batch

    def _find(self) -> FoundBatch:
        from gaudi3_scale.batch import cache, room
        from gaudi3_scale.batch.search import FoundBatch
        from gaudi3_scale.distributed.process_group import Topology
        from gaudi3_scale.hpu import device as devices

        topology = Topology.from_environment()
        device = devices.resolve(self.accelerator, topology.local_rank, topology.local_world_size)
        if device.type == "cpu":
            if self.max_batch_size is None:
                raise ConfigError("A cpu has no memory of its own to fill: give max_batch_size.")
            return FoundBatch(self.max_batch_size, "the bound, as the memory of a cpu is not only this job's")
        gather = _gather(topology, device)
        has = room.least(gather(astuple(room.of(device, topology.local_world_size))))
        folder = None if has.by_host else self.cache_dir  # what a host has left is another amount each time
        facts = self._facts(device, topology.world_size, has.free)
        digest = cache.key(facts) if folder is not None else ""
        known = cache.read(folder, digest) if folder is not None and topology.rank == 0 else None
        if (shared := gather(known)[0]) is not None:
            return shared  # type: ignore[no-any-return]
        found = has.explain(lambda: self._search(device, gather, topology.world_size, has.free))
        if folder is not None and topology.rank == 0:
            folder.mkdir(parents=True, exist_ok=True)
            cache.write(folder, digest, found)
        return found

    def _search(self, device: Device, gather: Callable[[Any], Sequence[Any]], world_size: int, free: int) -> FoundBatch:
        from gaudi3_scale.batch.rehearsal import rehearse
        from gaudi3_scale.batch.search import probe, search
        from gaudi3_scale.errors import TrainerError

        limit, most = int(free * self.share), self.max_batch_size or MOST

        def trial(size: int) -> BatchTrial:
            return rehearse(self._build, self._batch_of, size, device, gather)

        if self.strategy == "habana_fsdp" and world_size > 1:
            return probe(trial, limit, most)
        try:
            self._peak(world_size, 1)
            good = True
        except TrainerError:
            raise
        except Exception:  # whatever an operation without a rule for fake tensors raises
            good = False
        if not all(gather(good)):
            return probe(trial, limit, most)
        return search(partial(self._peak, world_size), trial, limit, most, self.share)

    def _peak(self, world_size: int, size: int) -> int:
        from contextlib import nullcontext

        import torch

        from gaudi3_scale.memory import predict_step

        model = self.model
        if self.precision == "bf16-true":
            model = copy.deepcopy(model).to(torch.bfloat16)
        mixed = partial(torch.autocast, "cpu", dtype=torch.bfloat16)
        precision: Any = mixed if self.precision == "bf16-mixed" else nullcontext
        batch = self._batch_of(size).to("meta")
        return predict_step(model, self._loss, [batch], precision=precision, gradient_buckets=world_size > 1).peak

    def _build(self, callbacks: list[pl.Callback]) -> tuple[pl.Trainer, pl.LightningModule]:
        from gaudi3_scale.batch.rehearsal import STEPS
        from gaudi3_scale.batch.scout import Scout
        from gaudi3_scale.distributed.process_group import Topology
        from gaudi3_scale.integration.quiet import quiet
        from gaudi3_scale.integration.trainer import GaudiTrainer

        quiet()
        topology = Topology.from_environment()
        trainer = GaudiTrainer(
            accelerator=self.accelerator,
            devices=topology.local_world_size,  # of those that run, instead of one for each card of the node
            num_nodes=topology.world_size // topology.local_world_size,
            strategy=self.strategy,
            precision=self.precision,
            callbacks=callbacks,
            max_steps=STEPS,
            max_epochs=-1,
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            use_distributed_sampler=False,
            limit_val_batches=0,
            num_sanity_val_steps=0,
        )
        return trainer, Scout(copy.deepcopy(self.model), self._loss)

    def _facts(self, device: Device, world_size: int, free: int) -> dict[str, Any]:
        import torch

        tensors = {
            name: (list(each.shape), str(each.dtype), each.requires_grad)
            for name, each in self.model.state_dict(keep_vars=True).items()
        }
        sample = self._batch_of(1)
        whole = device.memory_limit() or 1
        return {
            "model": [str(self.model), tensors],
            "sample": [list(sample.shape), str(sample.dtype)],
            "loss": getattr(self._loss, "__qualname__", ""),
            "precision": self.precision,
            "strategy": self.strategy,
            "world_size": world_size,
            "device": device.type,
            "hardware_name": str(torch.get_device_module(device.type).get_device_name(device.index)),
            "device_memory": whole,
            "free": free * 64 // whole,
            "share": self.share,
            "most": self.max_batch_size,
        }


def _gather(topology: Any, device: Device) -> Callable[[Any], Sequence[Any]]:
    """Everyone's value, over a gloo group."""
    if topology.world_size == 1:
        return lambda value: [value]
    import torch.distributed as dist

    from gaudi3_scale.distributed.exchange import all_gather
    from gaudi3_scale.distributed.process_group import ProcessGroup
    from gaudi3_scale.secret import proven_group

    if not dist.is_initialized():
        return ProcessGroup(topology, device, SECONDS).gather
    return partial(_gathered, all_gather, proven_group())


def _gathered(all_gather: Callable[[Any, Any], Sequence[Any]], group: Any, value: Any) -> Sequence[Any]:
    return all_gather(value, group)


def _token_loss(model: Any, batch_of: object) -> Callable[..., Tensor]:
    if batch_of is None and not hasattr(getattr(model, "config", None), "vocab_size") and list(model.parameters()):

        def missing(*arguments: Any) -> Tensor:
            raise ConfigError(
                f"{type(model).__name__} is no model of transformers, whose batches are known: give loss and batch_of."
            )

        return missing

    def loss(model: nn.Module, batch: Tensor) -> Tensor:
        from gaudi3_scale.models.objectives import training_loss

        return training_loss(model, batch)

    return loss


def _tokens(model: Any, length: int | None, size: int) -> Tensor:
    """(B, T + 1) int64."""
    import torch

    config = getattr(model, "config", None)
    if config is None:
        raise ConfigError(
            f"{type(model).__name__} is no model of transformers, whose batches are known: give loss and batch_of."
        )
    length = length or int(config.max_position_embeddings)
    return torch.randint(int(config.vocab_size), (size, length + 1), generator=torch.Generator().manual_seed(0))
