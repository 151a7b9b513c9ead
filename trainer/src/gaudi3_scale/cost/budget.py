"""The budget of a job: a warning before it is spent, and the end of the job when it is."""

from __future__ import annotations

from collections.abc import Callable

from gaudi3_scale.config.cost import CostConfig
from gaudi3_scale.cost.bill import Spent
from gaudi3_scale.errors import ConfigError


class Budget:
    """Watches the bill of one job; says each thing once."""

    def __init__(self, config: CostConfig, log: Callable[[str], None], stop: Callable[[str], None]) -> None:
        """`log` prints a line; `stop` is called with the reason, where the budget is to end the job."""
        self._config = config
        self._log, self._stop = log, stop
        self._warned = self._spent = False

    def look(self, spent: Spent) -> None:
        """The bill has grown."""
        budget = self._config.budget
        if budget is None or self._spent:
            return
        if spent.total >= budget:
            self._spent = True
            if self._config.on_budget == "stop":
                self._stop(f"the budget of {_money(budget, spent)} is spent")
            else:
                self._log(
                    f"warning: the budget of {_money(budget, spent)} is spent, and the job goes on, as "
                    "cost.on_budget is alert"
                )
        elif spent.total >= self._config.alert_at * budget and not self._warned:
            self._warned = True
            share = 100 * spent.total / budget
            self._log(f"warning: {share:.0f} % of the budget of {_money(budget, spent)} is spent")


def require(config: CostConfig, spent: Spent | None) -> None:
    """A job is not begun again whose processes have `spent` its budget; a ConfigError says how it goes on."""
    if spent is None or config.budget is None or config.on_budget != "stop" or spent.total < config.budget:
        return
    raise ConfigError(
        f"The job has cost {_money(spent.total, spent)} and cost.budget is {config.budget:,.2f}: raise cost.budget, or "
        "set cost.on_budget to alert, to go on from its newest checkpoint."
    )


def _money(amount: float, spent: Spent) -> str:
    return f"{amount:,.2f} {spent.currency}"
