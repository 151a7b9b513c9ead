"""What a job would have taken, and cost, without one of the causes that held it up.

Read from the ledger that the job's processes have appended to (see `throughput/ledger.py`): its parts, and what the
ranks' clocks say of the steps between two lines (see `throughput/rank_times.py`). Every nanosecond has one cause, so
that the causes sum to the wall time. What a process did beyond the step from which its successor resumed, the time
in which no process ran, and the successor's start-up have one cause: the restart.

Each cause has the price of the hours in which it had its time, as in the bill.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gaudi3_scale.cost.bill import HOUR, terms_of
from gaudi3_scale.errors import ConfigError
from gaudi3_scale.throughput.goodput import FILE, finite, read, whole
from gaudi3_scale.throughput.ledger import CHECKPOINT, COMPUTE, DATA, EVALUATION, MEASURED, OTHER, STARTUP
from gaudi3_scale.throughput.rank_times import COMMUNICATION, KEY, UNEVEN
from gaudi3_scale.throughput.rank_times import FILE as RANKS_FILE
from gaudi3_scale.throughput.slow_ranks import Ranks, ranks_of, slow_groups
from gaudi3_scale.throughput.step_clock import RECOMPILATION

SLOW, RESTART = "slow_ranks", "restart"
CAUSES = {
    COMPUTE: "steps whose result was kept",
    SLOW: "the others waited for these",
    UNEVEN: "ranks that were slower than others in turn",
    COMMUNICATION: "exchange of gradients, when all had theirs",
    DATA: "waiting for the next batch",
    RECOMPILATION: "steps with a new shape of inputs, beyond a usual step",
    CHECKPOINT: "training stood still for a checkpoint",
    EVALUATION: "evaluation",
    STARTUP: "from the start of the first process to its first step",
    RESTART: "steps done again, no process, start-up",
    OTHER: "logging, agreement, the end of the job",
}
"""What each kind of cause is, in the order in which they are shown."""
LEAST = 0.01
"""Share of the steps' own time from which slow ranks are named; below it they are among the uneven ones."""
Key = str | Ranks
"""A kind of cause; `restart N`; or a set of ranks that were the slowest."""


@dataclass(frozen=True)
class Cause:
    """One of those that made up the job's time."""

    kind: str
    """One of `CAUSES`."""
    name: str
    """For readers."""
    nanoseconds: int
    money: float | None
    """None where no line of the ledger has a price."""
    ranks: Ranks = ()
    alone: bool = True
    """Of slow ranks: is this gained by these alone? Else those that are named before them held up the same steps."""

    def record(self, whole: WhatIf) -> dict[str, Any]:
        """For --json: what it took, and what the job would have taken without it."""
        without = {"hours": _hours(whole.nanoseconds - self.nanoseconds)}
        if self.money is not None and whole.money is not None:
            without["money"] = whole.money - self.money
        return {
            "kind": self.kind,
            "name": self.name,
            "seconds": round(self.nanoseconds / 1e9, 3),
            "hours": _hours(self.nanoseconds),
            "money": self.money,
            "without": without if self.kind != COMPUTE else None,
            **({"ranks": list(self.ranks), "alone": self.alone} if self.ranks else {}),
        }


@dataclass(frozen=True)
class WhatIf:
    """A job's time by its causes; both sum up exactly."""

    causes: tuple[Cause, ...]
    """Those that have any time, the slowest ranks and each restart by themselves."""
    nanoseconds: int
    money: float | None
    currency: str | None
    compared: float
    """Share of the time of steps and what is between them in which the ranks were compared."""
    ranks: tuple[dict[str, Any], ...] = ()
    """Of `ranks.json`: own and waiting time of each rank since the job was last started."""
    carried: float = 0.0
    """Money of before this node's ledger begins, which is in no cause."""

    def record(self) -> dict[str, Any]:
        """For --json."""
        return {
            "total": {"seconds": round(self.nanoseconds / 1e9, 3), "hours": _hours(self.nanoseconds)}
            | {"money": self.money},
            "currency": self.currency,
            "carried_money": self.carried,
            "compared": round(self.compared, 6),
            "causes": [cause.record(self) for cause in self.causes],
            "ranks": list(self.ranks),
        }


@dataclass
class _Piece:
    """Time that was spent on steps, all at one price."""

    first: int
    last: int
    spent: dict[Key, int]
    rate: float | None
    """Money per hour."""


@dataclass
class _Start:
    """Of the processes that worked on the job one after the other."""

    restart: str | None
    """The cause, if these processes had to start again what others had begun."""
    left_at: int = 0
    """The step at which those before had come, and the one that these went on from."""
    step: int = 0
    hosts: dict[str, Ranks] = field(default_factory=dict)
    hung: tuple[str, ...] = ()
    """Nodes that held up the processes before."""


class Causes:
    """Adds up the lines of a ledger by cause."""

    def __init__(self, lines: Iterable[dict[str, Any]] = ()) -> None:
        """All lines in the order of the file."""
        self._pieces: list[_Piece] = []
        self._kept: list[_Piece] = []
        """What no later start makes be in vain."""
        self._starts: list[_Start] = []
        self._previous: dict[str, Any] | None = None
        self._currency: str | None = None
        self._rate: float | None = None
        self._carried = 0.0
        self._stepping = self._compared = 0
        for line in lines:
            self.add(line)

    def add(self, line: dict[str, Any]) -> None:
        """One more line."""
        previous, self._previous = self._previous, line
        terms = terms_of(line)
        if terms is not None:
            if self._currency is None:
                self._carried = sum((terms.get("carried") or {}).values())
            self._currency, self._rate = str(terms["currency"]), float(terms["price_per_hour"])
        rate = float(terms["price_per_hour"]) if terms is not None else None
        if previous is not None and previous["run"] == line["run"]:
            first, before = previous["step"], previous["nanoseconds"]
        else:
            first, before = line["step"], dict.fromkeys(MEASURED, 0)
            self._begin(previous, line)
        spent: dict[Key, int] = {part: line["nanoseconds"][part] - before[part] for part in MEASURED}
        startup: Key = self._starts[-1].restart or STARTUP
        self._kept.append(_Piece(0, 0, {startup: spent.pop(STARTUP)}, rate))
        self._stepping += sum(spent.values())
        self._pieces.append(_Piece(first, line["step"], spent, rate))
        self._compare(line, rate)

    def what_if(self, ranks: Sequence[dict[str, Any]] = ()) -> WhatIf:
        """The sums."""
        nanoseconds: dict[Key, int] = {}
        money: dict[Key, float] = {}
        for piece in (*self._pieces, *self._kept):
            for key, spent in piece.spent.items():
                nanoseconds[key] = nanoseconds.get(key, 0) + spent
                money[key] = money.get(key, 0.0) + spent * (piece.rate or 0.0) / HOUR
        total, paid = sum(nanoseconds.values()), sum(money.values())
        causes = [*self._slow(nanoseconds, money), *self._plain(nanoseconds, money)]
        order = list(CAUSES)
        causes.sort(key=lambda cause: order.index(cause.kind))
        return WhatIf(
            tuple(cause for cause in causes if cause.nanoseconds),
            total,
            paid if self._currency is not None else None,
            self._currency,
            min(1.0, self._compared / self._stepping) if self._stepping else 0.0,
            tuple(ranks),
            self._carried,
        )

    def _begin(self, previous: dict[str, Any] | None, line: dict[str, Any]) -> None:
        """Processes start, after others if there is a line of theirs."""
        start = _Start(None, hung=_hung(line))
        self._starts.append(start)
        if previous is None:
            return
        start.left_at, start.step = previous["step"], line["step"]
        finished = previous["event"] == "finished"
        if not finished or line["step"] < previous["step"]:
            start.restart = f"{RESTART} {len(self._starts) - 1}"
            self._forget(line["step"], start.restart)
        pause = max(0, round((line["began"] - previous["time"]) * 1e9))
        terms = terms_of(previous)
        paid = terms is not None and not finished and terms.get("bill_pauses", True)
        key = OTHER if finished else start.restart or OTHER
        self._kept.append(_Piece(0, 0, {key: pause}, float(terms["price_per_hour"]) if terms and paid else None))

    def _compare(self, line: dict[str, Any], rate: float | None) -> None:
        """Move time between the causes of the steps, as the ranks' clocks have it."""
        try:
            said = line[KEY]
            first, last = (whole(step) for step in said["steps"])
            moved: dict[Key, int] = {str(name): whole(value) for name, value in said["moved"].items()}
            for spans, value in said.get("slow", ()):
                moved[ranks_of(spans)] = whole(value)
            hosts = {_text(host): ranks_of(spans) for host, spans in said.get("hosts", {}).items()}
            compared = whole(said["spent"])
        except (KeyError, TypeError, ValueError, AttributeError):
            return
        moved[COMPUTE] = -sum(value for key, value in moved.items() if key != COMPUTE)
        self._pieces.append(_Piece(first, last, moved, rate))
        self._compared += compared
        self._starts[-1].hosts = hosts or self._starts[-1].hosts

    def _forget(self, step: int, cause: str) -> None:
        """What was done after this step was in vain, for this cause; of a piece around it, in proportion."""
        for piece in self._pieces:
            if piece.last <= step:
                continue
            steps = max(1, piece.last - piece.first)
            beyond = min(steps, piece.last - step)
            lost = {key: spent * beyond // steps for key, spent in piece.spent.items()}
            for key, spent in lost.items():
                piece.spent[key] -= spent
            self._kept.append(_Piece(0, 0, {cause: sum(lost.values())}, piece.rate))
            piece.first, piece.last = min(piece.first, step), step

    def _slow(self, nanoseconds: dict[Key, int], money: dict[Key, float]) -> list[Cause]:
        """The ranks that held up the others; what is left of them is uneven."""
        stepping = sum(nanoseconds.get(kind, 0) for kind in (COMPUTE, COMMUNICATION, UNEVEN))
        held = {key: nanoseconds.pop(key) for key in list(nanoseconds) if isinstance(key, tuple)}
        paid = {key: money.pop(key) for key in held}
        nodes = next((start.hosts for start in reversed(self._starts) if start.hosts), {})
        least = LEAST * (stepping + sum(held.values()))
        found = []
        every = [rank for ranks in (*nodes.values(), *held) for rank in ranks]
        for ranks, sets in slow_groups(held, max(every, default=-1) + 1, tuple(nodes.values()), least):
            found.append(
                Cause(
                    SLOW,
                    _named(ranks, nodes),
                    sum(held.pop(each) for each in sets),
                    sum(paid.pop(each) for each in sets) if self._currency is not None else None,
                    ranks,
                    all(set(each) <= set(ranks) for each in sets),
                )
            )
        nanoseconds[UNEVEN] = nanoseconds.get(UNEVEN, 0) + sum(held.values())
        money[UNEVEN] = money.get(UNEVEN, 0.0) + sum(paid.values())
        return found

    def _plain(self, nanoseconds: dict[Key, int], money: dict[Key, float]) -> list[Cause]:
        found = []
        for key, spent in nanoseconds.items():
            assert isinstance(key, str)
            kind, _, number = key.partition(" ")
            name = self._restart_name(int(number)) if number else kind.replace("_", " ")
            found.append(Cause(kind, name, spent, money[key] if self._currency is not None else None))
        return found

    def _restart_name(self, number: int) -> str:
        """What is known of why processes were started again."""
        before, start = self._starts[number - 1], self._starts[number]
        name = f"restart after step {start.left_at:,}"
        if start.step < start.left_at:
            name += f", from step {start.step:,}"
        lost = sorted(set(before.hosts) - set(start.hosts)) if start.hosts else []
        if lost:
            return f"{name}, without {', '.join(lost)}"
        return f"{name}, hung on {', '.join(start.hung)}" if start.hung else name


def of_directory(directory: Path) -> WhatIf:
    """The causes of the job with this output directory; a ConfigError where there is no ledger."""
    lines = list(read(directory / FILE))
    if not lines:
        raise ConfigError(
            f"{directory} has no {FILE} with a readable line: give the output_dir of a job that has started training."
        )
    return Causes(lines).what_if(_read_ranks(directory / RANKS_FILE))


def _read_ranks(path: Path) -> list[dict[str, Any]]:
    """What the file says of each rank; nothing where it is missing or says something else."""
    try:
        found = json.loads(path.read_text(encoding="utf-8", errors="replace"))["ranks"]
        return [
            {
                "rank": whole(each["rank"]),
                "host": _text(each["host"]),
                "own_seconds": finite(each["own_seconds"]),
                "waited_seconds": finite(each["waited_seconds"]),
            }
            for each in found
        ]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return []


def _hung(line: dict[str, Any]) -> tuple[str, ...]:
    """The nodes that a hang was put down to, after which these processes were started."""
    try:
        return tuple(_text(node) for node in line["hang"]["nodes"])
    except (KeyError, TypeError, ValueError):
        return ()


def _text(said: Any) -> str:
    """The name of a node; ValueError where it is none that a terminal can show."""
    if not isinstance(said, str) or not said.isprintable():
        raise ValueError("a name is none")
    return said


def _named(ranks: Ranks, nodes: dict[str, Ranks]) -> str:
    """Ranks with their nodes, or a node whose ranks they all are."""
    for host, all_of_it in nodes.items():
        if ranks == all_of_it and len(ranks) > 1:
            return f"slow node {host} (ranks {ranks[0]} to {ranks[-1]})"
    where = sorted({host for host, all_of_it in nodes.items() if set(ranks) & set(all_of_it)})
    named = f"slow rank {ranks[0]}" if len(ranks) == 1 else f"slow ranks {', '.join(map(str, ranks))}"
    return f"{named} (on {', '.join(where)})" if where else named


def _hours(nanoseconds: int) -> float:
    return round(nanoseconds / HOUR, 6)
