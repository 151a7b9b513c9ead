"""Money while training: so far, per useful token, by goodput phase, and what is left of a budget.

    Trainer(callbacks=[ThroughputCallback(directory="runs/one"), CostCallback(
        node_price_per_hour=12.5, price_source="offer 17", price_date="2026-11-23", budget=500, on_budget="stop")], ...)

The bill follows the ledger that ThroughputCallback keeps in its directory, so it goes on over restarts and kills.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import lightning.pytorch as pl
from torch import Tensor

from gaudi3_scale.callbacks.interruption_callback import InterruptionCallback
from gaudi3_scale.callbacks.status_callback import Contributor, join
from gaudi3_scale.callbacks.throughput_callback import ThroughputCallback, input_tokens
from gaudi3_scale.config.cost import CostConfig
from gaudi3_scale.cost import bill
from gaudi3_scale.cost.budget import Budget
from gaudi3_scale.errors import ConfigError
from gaudi3_scale.interruption.notice import BUDGET, Notice
from gaudi3_scale.run import Run
from gaudi3_scale.throughput.ledger import current

if TYPE_CHECKING:
    from gaudi3_scale.metrics import CostMetrics

METRICS_SECONDS = 0.5
"""Between two times that the metrics are set."""
FILE = "budget.ckpt"


class CostCallback(Contributor, pl.Callback):
    """Counts the money of the Trainer it is given to; needs a ThroughputCallback beside it, which measures the time.

    >>> CostCallback(node_price_per_hour=12.5, price_source="offer 17", price_date="2026-11-23").spent is None
    True
    """

    def __init__(self, every: int = 10, tokens: Callable[[Any], Tensor] = input_tokens, **settings: Any) -> None:
        """Look every `every` optimizer steps; `settings` are those of the section `cost` of `gaudi3-train config`.

        `tokens` gives the token ids of a batch, as in ThroughputCallback.

        With `on_budget="stop"` a fit over the budget saves and ends: by InterruptionCallback where there is one, else
        `budget.ckpt` is written into the trainer's `default_root_dir` and the Trainer stops.
        """
        self._every = every
        self._config = CostConfig(**settings)
        if self._config.node_price_per_hour is None:
            raise ConfigError(
                "CostCallback has no node_price_per_hour: give it with price_source and price_date; none is built in."
            )
        self._before: dict[str, Any] | None = None
        self._carried: dict[str, Any] | None = None
        self._budget: Budget | None = None
        self._over: str | None = None
        self._count = tokens
        self._looked = self._tokens = 0
        self.spent: bill.Spent | None = None
        """The bill at the last look."""
        self._run: Run | None = None
        self._metrics: CostMetrics | None = None
        self._served = 0.0

    @classmethod
    def of_job(cls, run: Run) -> CostCallback:
        """For a run, whose first process of all serves the metrics and keeps to the budget."""
        from gaudi3_scale.metrics import CostMetrics

        config = run.config.cost
        made = cls(**config.model_dump())
        made._run = run
        if run.rank == 0:
            made._budget = Budget(config, run.console.log, lambda why: run.interruption.tell(Notice(BUDGET, why)))
            if run.metrics is not None:
                made._metrics = CostMetrics(config, run.metrics.registry)
        return made

    def setup(self, trainer: pl.Trainer, pl_module: pl.LightningModule, stage: str) -> None:
        """Report the job's cost."""
        if stage == "fit" and self._run is None:
            join(trainer)
            _throughput(trainer)

    def on_fit_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """State the price, which the ledger of this fit writes on each of its lines."""
        if self._run is not None:  # it has stated the price itself
            return
        self._before = current().about
        current().about = bill.terms(self._config, trainer.num_nodes, self._carried)
        self._budget = Budget(self._config, lambda text: print(text, flush=True), self._stop)
        self._looked, self._over = trainer.global_step, None

    def on_train_batch_end(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Count the tokens; look at the bill, if it is time."""
        if self._run is not None:
            self._job_batch(self._run, batch_idx)
            return
        self._tokens += self._count(batch).numel() * trainer.world_size
        if trainer.global_step - self._looked < self._every:
            return
        self._looked = trainer.global_step
        watch = _throughput(trainer).watch
        self.spent = watch.spent() if watch is not None else None
        if self.spent is not None and self._budget is not None:
            self.log("cost_spent", self.spent.total)
            if trainer.is_global_zero:
                self._budget.look(self.spent)
        if trainer.strategy.reduce_boolean_decision(self._over is not None, all=False):
            self._leave(trainer)

    def teardown(self, trainer: pl.Trainer, pl_module: pl.LightningModule, stage: str) -> None:
        """What comes next in this process has no price."""
        if self._before is not None:
            current().about = self._before
            self._before = None

    def contribute(self) -> dict[str, Any]:
        """For status.json."""
        return {bill.KEY: self._status()}

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint keeps of the bill."""
        return {bill.KEY: self._status(), "tokens": self._tokens}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """The job has cost something before."""
        self._carried, self._tokens = state.get(bill.KEY), int(state.get("tokens", 0))

    def _job_batch(self, run: Run, batch_idx: int) -> None:
        self.spent = spent = run.watch.spent()
        if (batch_idx + 1) % run.plan.accumulation or spent is None:
            return
        run.progress.cost = bill.status(spent, self._config, run.progress.tokens)
        if self._budget is not None:
            self._budget.look(spent)
        now = time.monotonic()
        if self._metrics is not None and now - self._served >= METRICS_SECONDS:
            self._served = now
            self._metrics.billed(run.progress.cost)

    def _status(self) -> dict[str, Any] | None:
        return bill.status_of(self.spent, self._config, self._tokens)

    def _stop(self, reason: str) -> None:
        self._over = reason

    def _leave(self, trainer: pl.Trainer) -> None:
        reason, self._over = self._over or "the budget is spent", None
        for callback in trainer.callbacks:
            if isinstance(callback, InterruptionCallback) and callback.tell(Notice(BUDGET, reason)):
                return
        trainer.save_checkpoint(Path(trainer.default_root_dir) / FILE)
        trainer.should_stop = True
        if trainer.is_global_zero:
            print(f"Stopped at step {trainer.global_step}, as {reason}.", flush=True)


def _throughput(trainer: pl.Trainer) -> ThroughputCallback:
    """The trainer's ThroughputCallback; a ConfigError where there is none."""
    for callback in trainer.callbacks:
        if isinstance(callback, ThroughputCallback):
            return callback
    raise ConfigError(
        "CostCallback needs the time that ThroughputCallback measures: add ThroughputCallback(directory=...) to the "
        "Trainer's callbacks."
    )
