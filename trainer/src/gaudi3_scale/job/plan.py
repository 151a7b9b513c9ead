"""What a job trains with, from what was asked for and what was found: made once, before the data is prepared."""

from __future__ import annotations

from dataclasses import replace

from gaudi3_scale.job.auto_batch import resolve
from gaudi3_scale.job.elastic import batch, keep_batch
from gaudi3_scale.job.optimized_ddp import share_out
from gaudi3_scale.run import JobPlan, Run


def plan_job(run: Run) -> JobPlan:
    """Find the batch where it is `auto`, keep that of the checkpoint, and share a step out. Collective.

    What is asked for, and the checkpoint, are those of the run's plan so far.

    Raises:
        ConfigError: The processes cannot take the batch.
    """
    plan = resolve(run, run.plan)
    plan = replace(plan, configured=batch(plan.config))
    return share_out(run, keep_batch(run, plan))
