"""`train.strategy=optimized_ddp` in a job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gaudi3_scale.integration.ddp.balance import check

if TYPE_CHECKING:
    from gaudi3_scale.run import Run


def optimized_ddp(run: Run, **group: Any) -> Any:
    """As it is configured; `group` is what a job gives every strategy of copies."""
    from gaudi3_scale.integration.ddp.strategy import OptimizedDDP

    config = run.config
    return OptimizedDDP(
        **config.ddp.model_dump(),
        **group,
        folder=config.output_dir,
        say=run.console.say,
        rows=config.train.micro_batch_size * config.model.sequence_length,
    )


def share_out(run: Run) -> None:
    """Check the shares of a step, where they are configured. ConfigError if they do not fit.

    A job that goes on with another number of processes than there are shares shares evenly, and says so.
    """
    config = run.config
    counts = config.ddp.balance
    if isinstance(counts, str):
        return
    if len(counts) != run.world_size:
        run.console.say(
            f"ddp.balance has {len(counts)} shares and there are {run.world_size} process(es): each takes as many "
            "micro-batches as the others"
        )
        ddp = config.ddp.model_copy(update={"balance": "none"})
        run.config = config.model_copy(update={"ddp": ddp})
        return
    check(counts, run.world_size, config.train.accumulation_steps)
