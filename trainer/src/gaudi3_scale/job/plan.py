"""What a job trains with, from what was asked for and what was found: made once, before the data is prepared."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gaudi3_scale.job.auto_batch import resolve
from gaudi3_scale.job.elastic import batch, keep_batch
from gaudi3_scale.job.optimized_ddp import share_out
from gaudi3_scale.run import JobPlan, Run

if TYPE_CHECKING:
    from gaudi3_scale.checkpoint.store import Checkpoint


def plan_job(run: Run, checkpoint: Checkpoint | None) -> JobPlan:
    """Find the batch where it is `auto`, keep that of the checkpoint, and share a step out. Collective.

    ConfigError where the processes cannot take the batch.
    """
    plan = resolve(run, JobPlan.of(run.config, checkpoint))
    plan = replace(plan, configured=batch(plan.config))
    return share_out(run, keep_batch(run, plan))
