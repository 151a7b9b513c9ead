"""Another number of processes, the same training: as many samples per step, in the same order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gaudi3_scale.config import Config
from gaudi3_scale.errors import ConfigError

if TYPE_CHECKING:
    from gaudi3_scale.run import JobPlan, Run


def batch(config: Config) -> dict[str, int]:
    """What of the samples per step is configured, for a checkpoint's manifest."""
    train = config.train
    found = {"micro_batch_size": train.micro_batch_size, "accumulation_steps": train.accumulation_steps}
    return found | ({"stages": len(train.batch_warmup)} if train.batch_warmup else {})


def same_batch(config: Config, about: Mapping[str, Any], world_size: int) -> int:
    """The forward passes with which this many processes take the samples per step that the checkpoint's did.

    Accumulation makes up for processes that are gone or new; the samples of a step and their order do not depend on
    how they are shared out. A configuration that asks for another batch than the checkpoint's did is left alone.
    """
    wanted, before = int(about["samples_per_step"]), int(about["world_size"])
    each = config.train.micro_batch_size * world_size
    unchanged = about["batch"] == batch(config) if "batch" in about else before != world_size
    if wanted == each * config.train.accumulation_steps or not unchanged:
        return config.train.accumulation_steps
    if wanted % each:
        raise ConfigError(
            f"The job took {wanted} samples per step with {before} process(es), which {world_size} with "
            f"train.micro_batch_size={config.train.micro_batch_size} cannot, as {each} at a time do not divide it: use "
            f"another number of processes, or set train.micro_batch_size to a divisor of {wanted / world_size:g}."
            if wanted % world_size == 0
            else f"The job took {wanted} samples per step with {before} process(es), which {world_size} cannot share "
            "evenly: use a number of processes that divides it."
        )
    return wanted // each


def keep_batch(run: Run, plan: JobPlan) -> JobPlan:
    """Take as many samples per step as the checkpoint's job did, however many processes there are now."""
    if plan.checkpoint is None or plan.asked.train.batch_warmup:  # which says it for every step
        return plan
    progress, before, about = run.progress, plan.accumulation, plan.checkpoint.manifest.about
    now = same_batch(plan.config, about, run.world_size)
    if now != before:
        progress.samples_per_step = progress.samples_per_step // before * now
        run.console.log(
            f"{run.world_size} process(es) instead of {about['world_size']}: accumulating {now} micro-batches instead "
            f"of {before}, so that a step takes {progress.samples_per_step} samples as before"
        )
    return replace(plan, accumulation=now)
