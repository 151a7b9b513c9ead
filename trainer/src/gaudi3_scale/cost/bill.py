"""The bill of a job: the parts of its goodput, each times the price of the nodes in that hour.

The price stands on every line of the ledger (`goodput.jsonl`), so that the bill survives whatever the ledger does: a
kill -9 costs it nothing, and each process counts with its own price and number of nodes. Where a job continues on a
node that has no ledger of it, the amounts of the checkpoint are carried on.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gaudi3_scale.throughput.goodput import PARTS, Account, finite
from gaudi3_scale.throughput.ledger import COMPUTE

if TYPE_CHECKING:
    from gaudi3_scale.config.cost import CostConfig

KEY = "cost"
"""In the lines of the ledger, in status.json and in checkpoints."""
HOUR = 3600e9
"""Nanoseconds."""


@dataclass(frozen=True)
class Spent:
    """Money of a job so far."""

    currency: str
    price_per_hour: float
    """Of all nodes that are paid for now."""
    parts: dict[str, float]
    """Money by part of the goodput; they sum to the total."""

    @property
    def total(self) -> float:
        """All of it."""
        return math.fsum(self.parts.values())

    def per_million_tokens(self, tokens: float) -> float | None:
        """Of those whose learning was kept; None before the first."""
        return 1e6 * self.total / tokens if tokens else None


class Bill(Account):
    """Adds up the lines of a ledger, in time and in money."""

    def __init__(self, lines: Iterable[dict[str, Any]] = ()) -> None:
        """All lines in the order of the file."""
        self._money = dict.fromkeys(PARTS, 0.0)
        self._terms: dict[str, Any] | None = None
        super().__init__(lines)

    def add(self, line: dict[str, Any]) -> None:
        """One more line.

        The amounts of a checkpoint are `carried` where nothing is known here. Where something is, the time since then
        is counted as a pause, unless pauses are not paid for.
        """
        terms = terms_of(line)
        if terms is not None:
            unknown = self._terms is None or not terms.get("bill_pauses", True)
            carried = terms.get("carried") or {}
            if line["event"] == "start" and unknown and sum(carried.values()) > sum(self._money.values()):
                self._money = {part: float(carried.get(part, 0.0)) for part in PARTS}
            self._terms = terms
        super().add(line)

    def spent(self, now: dict[str, int] | None = None) -> Spent | None:
        """Until now, or until the last line; None where no line has a price. `now` as in `goodput`."""
        if self._terms is None:
            return None
        money = dict(self._money)
        rate = float(self._terms["price_per_hour"])
        if now is not None and self._previous is not None:
            for part, nanoseconds in now.items():
                money[part] += (nanoseconds - self._previous["nanoseconds"][part]) * rate / HOUR
        return Spent(str(self._terms["currency"]), rate, money)

    def _count(self, part: str, nanoseconds: int, line: dict[str, Any]) -> None:
        super()._count(part, nanoseconds, line)
        terms = terms_of(line)
        if terms is not None:
            self._money[part] += nanoseconds * float(terms["price_per_hour"]) / HOUR

    def _pause(self, nanoseconds: int, line: dict[str, Any]) -> None:
        """Between two processes nodes are paid for, unless the job had finished or gives them back."""
        terms = terms_of(line)
        if terms is None or (line["event"] != "finished" and terms.get("bill_pauses", True)):
            super()._pause(nanoseconds, line)
        else:
            super()._pause(nanoseconds, {**line, KEY: None})


def terms_of(line: dict[str, Any]) -> dict[str, Any] | None:
    """What a line of the ledger says of money: price_per_hour, currency and who pays; None of one that says nothing."""
    terms = line.get(KEY)
    try:
        if isinstance(terms, dict) and isinstance(terms["price_per_hour"], int | float) and "currency" in terms:
            for amount in (terms["price_per_hour"], *(terms.get("carried") or {}).values()):
                finite(amount)
            return terms
    except (ValueError, KeyError, TypeError, AttributeError):
        pass
    return None


def terms(config: CostConfig, nodes: int, before: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """For `Ledger.about`: the terms under which a process runs; empty without a price.

    `nodes` train; `before` is what a checkpoint has of the bill; `more` is added, such as the job's id.
    """
    if config.node_price_per_hour is None:
        return {}
    paid = config.nodes or nodes
    found = {
        "price_per_hour": config.node_price_per_hour * paid,
        "nodes": paid,
        "currency": config.currency,
        "price_source": config.price_source,
        "price_date": str(config.price_date),
        "bill_pauses": config.bill_pauses,
        "team": config.team,
        "project": config.project,
        "budget": config.budget,
        "projected": config.projected,
        **more,
    }
    if before and before.get("currency") == config.currency:
        found["carried"] = before["parts"]
    return {KEY: found}


def status(spent: Spent, config: CostConfig, tokens: int) -> dict[str, Any]:
    """As in status.json and in checkpoints."""
    return {
        "spent": spent.total,
        "currency": spent.currency,
        "price_per_hour": spent.price_per_hour,
        "price_source": config.price_source,
        "price_date": str(config.price_date),
        "per_million_tokens": spent.per_million_tokens(tokens),
        "compute_share": spent.parts[COMPUTE] / spent.total if spent.total else 0.0,
        "parts": spent.parts,
        "budget": config.budget,
        "budget_left": None if config.budget is None else config.budget - spent.total,
        "team": config.team,
        "project": config.project,
    }


def status_of(spent: Spent | None, config: CostConfig, tokens: int) -> dict[str, Any] | None:
    """The same of a job that may have no price."""
    return None if spent is None else status(spent, config, tokens)
