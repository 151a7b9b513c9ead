"""Jobs that are made from a seed with planted causes, as their processes' own clocks would write them down.

Each process has a ledger and a step clock whose time is moved by hand, as have the processes of a job; a job's time
with and without a cause is computed apart from them, step by step, by what each rank does before all of them meet.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from gaudi3_scale.throughput.goodput import FILE
from gaudi3_scale.throughput.ledger import APPEND_SECONDS, CHECKPOINT, COMPUTE, DATA, EVALUATION, OTHER, Ledger
from gaudi3_scale.throughput.rank_times import RankTimes
from gaudi3_scale.throughput.step_clock import COLUMNS, StepClock

SECOND = 10**9
PRICE = 96.0
"""Of an hour of all nodes."""
KINDS = (
    "slow rank", "slow for a while", "slow in bursts", "slow node", "two slow ranks", "late data", "checkpoints",
    "recompilation", "lost node", "everything",
)  # fmt: skip
STARTUP = 40.0


@dataclass(frozen=True)
class Delay:
    """What some ranks do in some steps, in seconds."""

    ranks: tuple[int, ...]
    seconds: float
    first: int = 1
    last: int = 10**9
    every: int = 1


@dataclass(frozen=True)
class Loss:
    """The processes end in a step, and others start."""

    at: int
    resumed: int
    pause: float
    startup: float


@dataclass(frozen=True)
class Job:
    """What is planted."""

    seed: int
    ranks: int
    per_node: int
    steps: int
    base: float
    jitter: float
    communication: float
    log_every: int
    writer: int = 0
    slow: tuple[Delay, ...] = ()
    data: tuple[Delay, ...] = ()
    logging: tuple[Delay, ...] = ()
    compiled: tuple[Delay, ...] = ()
    checkpoint_every: int = 0
    checkpoint_seconds: float = 0.0
    evaluate_every: int = 0
    evaluation_seconds: float = 0.0
    loss: Loss | None = None

    def work(self, run: int) -> np.ndarray:
        """Seconds of (steps, ranks) without any cause; ranks are never quite alike."""
        draw = np.random.default_rng((self.seed, run))
        usual = self.base * (1 + 0.002 * draw.standard_normal(self.ranks))
        found: np.ndarray = usual * np.exp(self.jitter * draw.standard_normal((self.steps + 1, self.ranks)))
        return found

    def runs(self) -> list[tuple[int, int]]:
        """Before and after which steps processes start and end."""
        if self.loss is None:
            return [(0, self.steps)]
        return [(0, self.loss.at), (self.loss.resumed, self.steps)]

    def saves(self, step: int) -> bool:
        """Is a checkpoint due?"""
        return self.checkpoint_every > 0 < step and step % self.checkpoint_every == 0

    def evaluates(self, step: int) -> bool:
        """Is an evaluation due?"""
        return self.evaluate_every > 0 < step and step % self.evaluate_every == 0

    def hosts(self, run: int) -> list[str]:
        """The last node is another one after a loss."""
        nodes = self.ranks // self.per_node
        names = [f"gaudi-{node + 1 + (run > 0 and node == nodes - 1)}" for node in range(nodes)]
        return [names[rank // self.per_node] for rank in range(self.ranks)]


def table(job: Job, delays: Iterable[Delay]) -> np.ndarray:
    """Seconds of all of them, as (steps, ranks)."""
    found = np.zeros((job.steps + 1, job.ranks))
    for delay in delays:
        steps = range(delay.first, min(delay.last, job.steps) + 1, delay.every)
        found[np.ix_(steps, delay.ranks)] += delay.seconds
    return found


def wall(job: Job) -> float:
    """Seconds that the job takes: in each step, those of the rank which is ready last, and the exchange."""
    found = STARTUP if job.loss is None else STARTUP + job.loss.pause + job.loss.startup
    steps = range(job.steps + 1)
    after = table(job, job.logging)
    after += job.checkpoint_seconds * np.array([[job.saves(step)] for step in steps])
    after += job.evaluation_seconds * np.array([[job.evaluates(step)] for step in steps])
    before = table(job, (*job.slow, *job.data, *job.compiled))
    for run, (first, last) in enumerate(job.runs()):
        ready = job.work(run)[first + 1 : last + 1] + before[first + 1 : last + 1]
        ready[1:] += after[first + 1 : last]
        found += float((ready.max(axis=1) + job.communication).sum() + after[last, job.writer])
    return found


def kept(job: Job) -> Job:
    """The same job without its loss: steps that were done again are as they were in the end."""
    loss = job.loss
    if loss is None:
        return job

    class Kept(Job):
        def work(self, run: int) -> np.ndarray:
            found, later = super().work(0), super().work(1)
            found[loss.resumed + 1 :] = later[loss.resumed + 1 :]
            return found

    return Kept(**{**job.__dict__, "loss": None})


def planted(job: Job) -> dict[str, float]:
    """Seconds of each cause, taken out one after the other."""
    steps: list[tuple[str, Callable[[Job], Job]]] = [
        ("restart", kept),
        (EVALUATION, lambda job: replace(job, evaluate_every=0)),
        (CHECKPOINT, lambda job: replace(job, checkpoint_every=0)),
        (OTHER, lambda job: replace(job, logging=())),
        (DATA, lambda job: replace(job, data=())),
        ("recompilation", lambda job: replace(job, compiled=())),
        ("slow_ranks", lambda job: replace(job, slow=())),
    ]
    found, before = {}, wall(job)
    for name, without in steps:
        job = without(job)
        found[name], before = before - (after := wall(job)), after
    return {name: seconds for name, seconds in found.items() if seconds > 1e-9}


class Clocks:
    """Of all ranks, in nanoseconds; and the wall clock."""

    def __init__(self, ranks: int) -> None:
        self.now = [7 * SECOND] * ranks

    def pass_(self, rank: int, seconds: float) -> None:
        self.now[rank] += round(seconds * SECOND)

    def of(self, rank: int) -> Callable[[], int]:
        return lambda: self.now[rank]


def write(job: Job, folder: Path) -> None:
    """The ledger that the job's processes leave."""
    began = 1_700_000_000.0
    for run, (before, last) in enumerate(job.runs()):
        if run and job.loss is not None:
            began += job.loss.pause
        began = _run(job, folder / FILE, run, before, last, began)


def _run(job: Job, path: Path, run: int, before: int, last: int, began: float) -> float:
    clocks = Clocks(job.ranks)
    startup = STARTUP if not run or job.loss is None else job.loss.startup
    origin = clocks.now[0]

    def wall_clock() -> float:
        return began + startup + (clocks.now[job.writer] - origin) / SECOND

    ledgers = [Ledger(None, startup, clocks.of(rank), wall_clock) for rank in range(job.ranks)]
    writer = ledgers[job.writer]
    writer.path = path
    writer.about = {"cost": {"price_per_hour": PRICE, "currency": "USD"}}
    writer._run = f"{job.seed}-{run}"
    writer.resumed(before)
    times = RankTimes(job.writer, job.hosts(run))
    writer.more = times.take
    for ledger in ledgers:
        ledger.switch(COMPUTE)
    steppers = [StepClock(ledger, job.log_every, job.ranks == 1) for ledger in ledgers]
    work, late, compiled = job.work(run) + table(job, job.slow), table(job, job.data), table(job, job.compiled)
    logging, read, written = table(job, job.logging), before, wall_clock()
    for step in range(before + 1, last + 1):
        for rank in range(job.ranks):
            with ledgers[rank].during(DATA):
                clocks.pass_(rank, late[step, rank])
            steppers[rank].begun(new_shape=compiled[step, rank] > 0)
            clocks.pass_(rank, work[step, rank] + compiled[step, rank])
            if job.ranks > 1:
                steppers[rank].computed()
        there = max(clocks.now) + round(job.communication * SECOND)
        for rank in range(job.ranks):
            clocks.now[rank] = there
            steppers[rank].met()
            steppers[rank].ended()
        # A job reads its clocks where it logs, which it does after the first step, too, and not the first time.
        if step > before + 1 and (step % job.log_every == 0 or step == job.steps):
            found = [stepper.read() for stepper in steppers]
            numbers = np.array([each for each, _ in found]).reshape(job.ranks, -1, len(COLUMNS))
            times.add(read, step, numbers, found[job.writer][1])
            read = step
        for rank in range(job.ranks):
            with ledgers[rank].during(OTHER):
                clocks.pass_(rank, logging[step, rank])
        _together(job, clocks, ledgers, step)
        if wall_clock() - written > APPEND_SECONDS or job.saves(step):
            writer.append(step, force=True)
            written = wall_clock()
    if last == job.steps:
        writer.finished(last)
    return wall_clock()


def _together(job: Job, clocks: Clocks, ledgers: list[Ledger], step: int) -> None:
    for rank, ledger in enumerate(ledgers):
        if job.saves(step):
            with ledger.during(CHECKPOINT):
                clocks.pass_(rank, job.checkpoint_seconds)
        if job.evaluates(step):
            with ledger.during(EVALUATION):
                clocks.pass_(rank, job.evaluation_seconds)


def made(kind: str | None, seed: int) -> Job:
    """One of a kind; None is a job in which nothing is planted but what every job does."""
    draw = random.Random(f"{kind}-{seed}")
    per_node = draw.choice((1, 2, 4, 8))
    nodes = draw.choice((2, 3, 4)) if per_node < 8 else 2
    if kind == "two slow ranks":
        nodes = max(nodes, 4 // per_node)  # of three ranks, it is the third one that differs
    ranks, steps = per_node * nodes, draw.randrange(240, 400)
    base = draw.uniform(0.3, 3.0)
    job = Job(
        seed, ranks, per_node, steps, base, draw.uniform(0.002, 0.006), base * draw.uniform(0.02, 0.1),
        draw.choice((1, 5, 10, 20)), per_node * draw.randrange(nodes),
    )  # fmt: skip
    rank, other = draw.sample(range(ranks), 2)
    delay = base * draw.uniform(0.25, 1.5)
    slow = Delay((rank,), delay)
    if kind == "slow for a while":
        slow = replace(slow, first=draw.randrange(20, 60), last=draw.randrange(90, 150))
    if kind == "slow in bursts":
        slow = replace(slow, first=draw.randrange(5, 40), every=draw.randrange(3, 12))
    if kind == "slow node":
        node = draw.randrange(nodes)
        slow = replace(slow, ranks=tuple(range(node * per_node, (node + 1) * per_node)))
    if kind in ("slow rank", "slow for a while", "slow in bursts", "slow node", "two slow ranks", "everything"):
        job = replace(job, slow=(slow,))
    if kind == "two slow ranks":
        job = replace(job, slow=(slow, Delay((other,), delay * draw.uniform(0.3, 0.8))))
    if kind in ("late data", "everything"):
        late = Delay((draw.randrange(ranks),), base * draw.uniform(0.3, 2.0), every=draw.randrange(1, 6))
        job = replace(job, data=(late,), logging=(Delay((0,), base * draw.uniform(3, 6), 5, every=5),))
    if kind in ("checkpoints", "lost node", "everything"):
        # Where a step is saved that is also logged, the comparison of the steps before it outlives a kill.
        every = job.log_every * draw.randrange(15 // job.log_every + 1, 40 // job.log_every + 1)
        job = replace(job, checkpoint_every=every, checkpoint_seconds=base * draw.uniform(2, 20))
    if kind in ("checkpoints", "everything"):
        job = replace(job, evaluate_every=draw.randrange(20, 70), evaluation_seconds=base * draw.uniform(2, 20))
    if kind in ("recompilation", "everything"):
        seconds, every = base * draw.uniform(2, 20), draw.randrange(15, 40)
        job = replace(job, compiled=(Delay(tuple(range(ranks)), seconds, draw.randrange(1, 5), every=every),))
    if kind in ("lost node", "everything"):
        at = draw.randrange(90, steps - 5)
        resumed = at // job.checkpoint_every * job.checkpoint_every
        job = replace(job, loss=Loss(at, resumed, draw.uniform(30, 900), draw.uniform(20, 120)))
    return job
