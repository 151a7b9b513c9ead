"""The loss on held-out samples."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn

from gaudi3_scale.config import Config
from gaudi3_scale.data import Samples
from gaudi3_scale.data.masking import IGNORED
from gaudi3_scale.distributed.process_group import ProcessGroup
from gaudi3_scale.hpu.device import Device
from gaudi3_scale.models.objectives import sample_loss
from gaudi3_scale.models.preference import FIGURES, PreferenceLoss
from gaudi3_scale.precision import build_precision
from gaudi3_scale.run import Run
from gaudi3_scale.step.module import LanguageModule
from gaudi3_scale.throughput.ledger import EVALUATION, accounted


def evaluate(run: Run, module: LanguageModule, samples: Samples, between: Callable[[], None]) -> None:
    """Note the loss on held-out samples, and of pairs what is reported beside it; `between` as for `validate`."""
    config, measure = run.plan.config, None
    if module.preference is not None:
        measure = partial(_of_pairs, module.preference, table=module.reference)
    progress = run.progress
    progress.validation_loss, *figures = _means(
        module.model, samples, config, run.device, run.process_group, between, measure
    )
    progress.validation_figures = dict(zip(FIGURES, figures, strict=True)) if figures else {}


def validate(
    model: nn.Module,
    samples: Samples,
    config: Config,
    device: Device,
    process_group: ProcessGroup,
    between: Callable[[], None] | None = None,
) -> float:
    """Mean loss in nats per predicted token over `data.validation_samples`, shared among the ranks.

    `between` is called before each batch, as often on every rank; what it raises ends the validation.
    """
    return _means(model, samples, config, device, process_group, between, None)[0]


def _of_pairs(preference: PreferenceLoss, model: nn.Module, batch: Tensor, table: Tensor | None) -> Tensor:
    loss, figures = preference(model, batch, table)
    return torch.cat([loss.reshape(1), figures])


@accounted(EVALUATION)
@torch.no_grad()
def _means(
    model: nn.Module,
    samples: Samples,
    config: Config,
    device: Device,
    process_group: ProcessGroup,
    between: Callable[[], None] | None,
    measure: Callable[[nn.Module, Tensor], Tensor] | None,
) -> list[float]:
    """What `measure` gives of a batch as a mean over its samples, (k,), over all of them; None = the loss of tokens."""
    if measure is None:
        measure = partial(_of_tokens, chunks=config.memory.loss_chunks)
    target = device.torch_device()
    precision = build_precision(config.train.precision, device)
    blocks = samples.order.validation(config.data.validation_samples)
    mine = blocks[process_group.topology.rank :: process_group.topology.world_size]
    totals: Tensor | None = None
    counted = 0
    was_training = model.training
    model.to(target).eval()
    most = math.ceil(len(blocks) / process_group.topology.world_size)
    for start in range(0, most, config.train.micro_batch_size):
        if between is not None:
            between()
        chosen = mine[start : start + config.train.micro_batch_size]
        # A sharded model is whole only while all ranks compute: one that has nothing left repeats its first sample.
        batch = filled(samples.fetch(chosen if len(chosen) else blocks[:1]), config.train.micro_batch_size).to(target)
        with precision.forward_context():
            means = measure(model, batch)
        totals = torch.zeros_like(means) if totals is None else totals
        if not len(chosen):
            continue
        totals += means * len(chosen)
        counted += len(chosen)
        device.step_boundary()
    model.train(was_training)
    assert totals is not None, "something is held out"
    *sums, count = process_group.sum(torch.cat([totals, totals.new_full((1,), counted)])).tolist()
    return [each / count for each in sums]


def _of_tokens(model: nn.Module, batch: Tensor, chunks: int) -> Tensor:
    return sample_loss(model, batch, chunks).reshape(1)


def filled(batch: Tensor, size: int) -> Tensor:
    """The batch with `size` rows: each new one repeats the first, and nothing of it counts in the loss.

    Every batch of an evaluation then has one shape, on every rank, for which a device compiles one graph.
    """
    missing = size - len(batch)
    if missing <= 0:
        return batch
    if batch.ndim == 2:  # (B, T + 1) as (B, 2, T): inputs, and labels that can be left out; pairs have two of each
        batch = torch.stack([batch[:, :-1], batch[:, 1:]], 1)
    more = batch[:1].repeat(missing, 1, 1)
    more[:, 1::2] = IGNORED
    return torch.cat([batch, more])
