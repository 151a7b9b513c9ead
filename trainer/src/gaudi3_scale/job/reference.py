"""The reference of preference tuning over restarts: the model that training began from, which a checkpoint knows of."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from gaudi3_scale.checkpoint.store import Checkpoint
from gaudi3_scale.config import Config
from gaudi3_scale.data.pair_samples import PairSamples
from gaudi3_scale.data.samples import Samples
from gaudi3_scale.errors import ConfigError
from gaudi3_scale.run import Run
from gaudi3_scale.step.module import LanguageModule
from gaudi3_scale.step.reference import needed

PREFERENCE = "preference"
"""Key of the manifest; left out where there are no preferences."""
REFERENCE = "reference"
"""Key of a checkpoint's state; left out where the model has adapters, and is its own reference without them."""


def check_reference(config: Config, checkpoint: Checkpoint, same_data: bool) -> None:
    """ConfigError if preferences cannot be learnt on from a checkpoint, as it does not know their reference."""
    if not config.data.prefers:
        return
    if PREFERENCE not in checkpoint.manifest.about:
        raise ConfigError(
            f"The checkpoint {checkpoint.path} is of a job without preferences, and the reference is the model that a "
            "job began from: export it, and give the folder as model.name to a job with another output_dir."
        )
    if not config.model.lora.rank and not same_data:
        raise ConfigError(
            f"The checkpoint {checkpoint.path} has what the reference says of the pairs that it was trained on, and "
            "these are others: use the data of then, or export the model and give the folder as model.name to a job "
            "with another output_dir."
        )


def set_reference(run: Run, module: LanguageModule, samples: Samples, state: dict[str, Any] | None) -> None:
    """Give the module the reference of its checkpoint, where it needs one; ConfigError if that lacks a pair."""
    if module.preference is None or module.preference.has_adapters or state is None:
        return
    table = state.get(REFERENCE)
    blocks = needed(run, samples)
    if table is None or len(table) != samples.order.blocks or not bool(torch.isfinite(table[blocks]).all()):
        known = 0 if table is None else int(torch.isfinite(table[:, 0]).sum())
        raise ConfigError(
            f"The checkpoint has what the reference says of {known:,} pairs, which are those that the job was to read "
            f"when it began, and now it reads {len(np.unique(blocks)):,}: set train.max_steps and "
            "data.validation_samples to those of then, or export the model and give the folder as model.name to a job "
            "with another output_dir."
        )
    module.reference = table.to(run.device.torch_device())


def say_pairs(run: Run, samples: Samples) -> None:
    """Say how many answers do not fit into the context."""
    if not isinstance(samples, PairSamples) or run.rank:
        return
    cut = samples.cut()
    if cut:
        run.console.log(
            f"{cut:,} of {2 * samples.order.blocks:,} answers are cut off at their end, as with the prompt they are "
            f"longer than {samples.sequence_length + 1:,} tokens"
        )
