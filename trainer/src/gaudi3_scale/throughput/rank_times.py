"""What the ranks' clocks say of the steps of a job, in a few numbers for its ledger.

A step takes as long as the slowest rank needs for its own work, and the exchange of gradients after it. So a cause is
taken out of every rank's own time, and the maximum over the ranks is taken again: what the step is shorter by is the
share of that cause. This is done with one cause after the other, in the order of `REMOVED`; what two of them share is
counted once, with the later one. The shares say how the parts of this node's ledger have to be moved: they sum to zero.

Which ranks are slow is only known in the end. So the time by which a step's slowest ranks were slower than the next one
is kept for each set of such ranks: what a job gains without the ranks of a set is the sum over all sets inside of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gaudi3_scale.hangs.ring import spans
from gaudi3_scale.throughput.ledger import CHECKPOINT, COMPUTE, DATA, EVALUATION, OTHER
from gaudi3_scale.throughput.slow_ranks import Ranks
from gaudi3_scale.throughput.step_clock import COLUMNS, RECOMPILATION, WAIT

if TYPE_CHECKING:
    import numpy as np

FILE = "ranks.json"
KEY = "ranks"
"""In the lines of the ledger."""
UNEVEN = "uneven"
COMMUNICATION = "communication"
REMOVED = (EVALUATION, CHECKPOINT, OTHER, DATA, RECOMPILATION)
"""Causes, in the order in which they are taken out; slow ranks come last."""
SPENT = (COMPUTE, EVALUATION, CHECKPOINT, OTHER, DATA)
SHARES = (*REMOVED, COMMUNICATION, UNEVEN)
MOST_RANKS = 16
"""Ranks that are slow together, at most: the cards of a node and more."""
LEAST = 0.01
"""Share of a step by which ranks have to be slower than the next one to be kept by name."""
MOST_KEPT = 2000
"""Steps that are kept to be compared at once, which is quicker."""
MOST_SETS = 24
"""Sets of ranks in a line, those that held up the job most."""


class RankTimes:
    """Collects the readings of all ranks between two lines of the ledger."""

    def __init__(self, rank: int, hosts: Sequence[str] = ()) -> None:
        """`rank` is the one that writes the ledger; `hosts` are the nodes of all ranks."""
        self._rank = rank
        self._hosts = list(hosts)
        self._told = len(hosts) < 2
        self._own: np.ndarray | None = None
        self._begin()

    def _begin(self) -> None:
        self._steps: tuple[int, int] | None = None
        self._times: list[np.ndarray] = []
        self._kept = 0
        self._spent = dict.fromkeys(SPENT, 0)
        self._shares = dict.fromkeys(SHARES, 0)
        self._slow: dict[Ranks, int] = {}

    def add(self, first: int, last: int, times: np.ndarray, spent: dict[str, int]) -> None:
        """The steps after `first` up to `last`, as (ranks, slots, COLUMNS); the writer has `spent` this on them."""
        if (times[:, 0, 0] < 0).any():  # a rank cannot tell
            return
        self._steps = (self._steps[0] if self._steps else first, last)
        self._times.append(times)
        self._kept += times.shape[1]
        for part, nanoseconds in spent.items():
            self._spent[part] += nanoseconds
        if self._kept >= MOST_KEPT:
            self._compare()

    def take(self) -> dict[str, Any]:
        """For a line of the ledger: what came together since the last call; empty if nothing did."""
        if self._steps is None:
            return {}
        self._compare()
        most = sorted(self._slow, key=self._slow.__getitem__, reverse=True)
        slow = {ranks: self._slow[ranks] for ranks in most[:MOST_SETS]}
        self._shares[UNEVEN] += sum(self._slow[ranks] for ranks in most[MOST_SETS:])
        moved = {name: self._shares[name] - self._spent.get(name, 0) for name in SHARES}
        moved[COMPUTE] = -sum(moved.values()) - sum(slow.values())
        found: dict[str, Any] = {"steps": list(self._steps), "spent": sum(self._spent.values())}
        found["moved"] = {name: value for name, value in moved.items() if value}
        if slow:
            found["slow"] = [[spans(ranks), value] for ranks, value in slow.items()]
        if not self._told:
            found["hosts"] = {host: spans(_ranks_of(host, self._hosts)) for host in dict.fromkeys(self._hosts)}
            self._told = True
        self._begin()
        return {KEY: found}

    def _compare(self) -> None:
        import numpy as np

        if not self._times:
            return
        times = np.concatenate(self._times, axis=1)
        self._times, self._kept = [], 0
        waits = times[:, :, COLUMNS.index(WAIT)].sum(axis=1)
        sums = np.stack([times.sum(axis=(1, 2)) - waits, waits], axis=1)
        self._own = sums if self._own is None else self._own + sums
        shares, slow = compare(times)
        for name, value in shares.items():
            self._shares[name] += value
        for ranks, value in slow.items():
            self._slow[ranks] = self._slow.get(ranks, 0) + value

    def ranks(self) -> list[dict[str, Any]]:
        """Each rank's own time and that in which it waited for others, since the first step of this process."""
        if self._own is None:
            return []
        hosts = self._hosts or [""] * len(self._own)
        return [
            {"rank": rank, "host": host, "own_seconds": round(own / 1e9, 3), "waited_seconds": round(wait / 1e9, 3)}
            for rank, (host, (own, wait)) in enumerate(zip(hosts, self._own.tolist(), strict=True))
        ]


def compare(times: np.ndarray) -> tuple[dict[str, int], dict[Ranks, int]]:
    """The shares of causes in the steps of (ranks, steps, COLUMNS), and that of each set of slow ranks."""
    import numpy as np

    columns = dict(zip(COLUMNS, np.ascontiguousarray(np.moveaxis(times, 2, 0)), strict=True))
    own = times.sum(axis=2) - columns[WAIT]
    level = own.max(axis=0)
    shares = {}
    for name in REMOVED:
        own = own - columns[name]
        without = own.max(axis=0)
        shares[name] = round(float((level - without).sum()))
        level = without
    ranks = len(own)
    shares[COMMUNICATION] = round(float(columns[WAIT].min(axis=0).sum())) if ranks > 1 else 0
    deepest = min(ranks // 2, MOST_RANKS)
    order = np.argpartition(-own, deepest, axis=0)[: deepest + 1]
    levels = np.take_along_axis(own, order, axis=0)
    by_level = np.argsort(-levels, axis=0)
    order, levels = np.take_along_axis(order, by_level, axis=0), np.take_along_axis(levels, by_level, axis=0)
    gaps = levels[:-1] - levels[1:]
    held: dict[Ranks, float] = {}
    top: dict[int, float] = {}
    for step, depth in zip(*np.nonzero((gaps > LEAST * levels[-1]).T), strict=True):
        # The ranks of a set differ a little, which is gained with all of them.
        slowest = tuple(sorted(order[: depth + 1, step].tolist()))
        next_one = float(levels[depth + 1, step])
        held[slowest] = held.get(slowest, 0.0) + top.get(step, float(levels[0, step])) - next_one
        top[step] = next_one
    slow = {ranks_: round(time) for ranks_, time in held.items()}
    shares[UNEVEN] = round(float(gaps.sum())) - sum(slow.values())
    return shares, slow


def _ranks_of(host: str, hosts: Sequence[str]) -> list[int]:
    return [rank for rank, each in enumerate(hosts) if each == host]
