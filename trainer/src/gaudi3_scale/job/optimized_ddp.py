"""`train.strategy=optimized_ddp` in a job."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gaudi3_scale.integration.ddp.balance import check

if TYPE_CHECKING:
    from gaudi3_scale.run import JobPlan, Run


def optimized_ddp(run: Run, plan: JobPlan, **group: Any) -> Any:
    """As it is configured; `group` is what a job gives every strategy of copies."""
    from gaudi3_scale.integration.ddp.strategy import OptimizedDDP

    config = plan.config
    return OptimizedDDP(
        **config.ddp.model_dump(),
        **group,
        folder=config.output_dir,
        log=run.console.log,
        rows=plan.micro_batch * config.tokens_per_sample,
    )


def share_out(run: Run, plan: JobPlan) -> JobPlan:
    """Check the shares of a step, where there are any. ConfigError if they do not fit.

    A job that goes on with another number of processes than there are shares shares evenly, and says so.
    """
    shares = plan.shares
    if shares is None:
        return plan
    if len(shares) != run.world_size:
        run.console.log(
            f"ddp.balance has {len(shares)} shares and there are {run.world_size} process(es): each takes as many "
            "micro-batches as the others"
        )
        return replace(plan, shares=None)
    check(shares, run.world_size, plan.accumulation)
    return plan
