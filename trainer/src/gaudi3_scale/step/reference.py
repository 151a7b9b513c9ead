"""What the reference says of the pairs, where it is the model with the weights that training begins from."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from gaudi3_scale.data.samples import Samples
from gaudi3_scale.data.stream import Positions
from gaudi3_scale.precision import build_precision
from gaudi3_scale.run import Run
from gaudi3_scale.step.module import LanguageModule
from gaudi3_scale.step.validation import filled
from gaudi3_scale.throughput.ledger import EVALUATION, accounted


def needed(run: Run, samples: Samples) -> Positions:
    """The pairs that the job reads up to its last step, and those of its evaluations."""
    config = run.plan.config
    count = min(samples.order.train_size, run.batches.consumed(config.train.max_steps))
    held_out = samples.order.validation(config.data.validation_samples)
    return np.unique(np.concatenate([samples.order.train(0, count), held_out]))


@accounted(EVALUATION)
@torch.no_grad()
def reference_table(run: Run, module: LanguageModule, samples: Samples, between: Callable[[], None]) -> Tensor:
    """Log-probabilities of both answers by number of the pair, (N, 2); inf for pairs that the job does not read.

    Collective: each rank computes its share, in batches of the step's shape. `between` is called before each.
    """
    preference, model = module.preference, module.model
    assert preference is not None
    config, target = run.plan.config, run.device.torch_device()
    precision = build_precision(config.train.precision, run.device)
    blocks, size = needed(run, samples), config.train.micro_batch_size
    mine = blocks[run.rank :: run.world_size]
    table = torch.zeros((samples.order.blocks, 2), device=target)
    was_training = model.training
    model.eval()
    for start in range(0, math.ceil(len(blocks) / run.world_size), size):
        between()
        chosen = mine[start : start + size]
        # A sharded model is whole only while all ranks compute: one that has nothing left repeats the first pair.
        batch = filled(samples.fetch(chosen if len(chosen) else blocks[:1]), size).to(target)
        with precision.forward_context():
            found = preference.log_probabilities(model, batch)
        if len(chosen):
            table[torch.from_numpy(chosen).to(target)] = found[: len(chosen)]
        run.device.step_boundary()
    model.train(was_training)
    run.process_group.sum(table)
    unread = torch.ones(len(table), dtype=torch.bool)
    unread[torch.from_numpy(blocks)] = False
    table[unread.to(target)] = math.inf
    return table
