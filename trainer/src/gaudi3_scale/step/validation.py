"""The loss on held-out samples."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from gaudi3_scale.config import Config
from gaudi3_scale.data import Samples
from gaudi3_scale.data.masking import IGNORED
from gaudi3_scale.distributed.process_group import ProcessGroup
from gaudi3_scale.hpu.device import Device
from gaudi3_scale.models.objectives import sample_loss
from gaudi3_scale.precision import build_precision
from gaudi3_scale.throughput.ledger import EVALUATION, accounted


@accounted(EVALUATION)
@torch.no_grad()
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
    target = device.torch_device()
    precision = build_precision(config.train.precision, device)
    blocks = samples.order.validation(config.data.validation_samples)
    mine = blocks[process_group.topology.rank :: process_group.topology.world_size]
    totals = torch.zeros(2, device=target)
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
            loss = sample_loss(model, batch, config.memory.loss_chunks)
        if not len(chosen):
            continue
        totals += torch.stack([loss * len(chosen), torch.full_like(loss, len(chosen))])
        device.step_boundary()
    model.train(was_training)
    total, count = process_group.sum(totals).tolist()
    return float(total / count)


def filled(batch: Tensor, size: int) -> Tensor:
    """The batch with `size` rows: each new one repeats the first, and nothing of it counts in the loss.

    Every batch of an evaluation then has one shape, on every rank, for which a device compiles one graph.
    """
    missing = size - len(batch)
    if missing <= 0:
        return batch
    if batch.ndim == 2:  # (B, T + 1) as (B, 2, T): inputs, and labels that can be left out
        batch = torch.stack([batch[:, :-1], batch[:, 1:]], 1)
    more = batch[:1].repeat(missing, 1, 1)
    more[:, 1] = IGNORED
    return torch.cat([batch, more])
