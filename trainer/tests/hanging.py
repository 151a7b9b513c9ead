"""One hang of the proof: of which kind, in which rank of which nodes; what the launchers said of it."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from conftest import free_port, kill, workers
from zygote import Client, Started

LIMIT, LATEST = 5, 15
"""Seconds of `train.collective_timeout`, and after that within which the sentence is there."""
KINDS = ("skipped", "order", "shape", "stopped", "loader", "checkpoint", "dead node", "wedge")
SAID = {"skipped": {"skipped", "sequence"}, "order": {"order", "sequence"}}
"""A rank that stands in another call may have skipped one, or swap two: the notes do not always tell which."""
SLOW = ("loader", "forward", "backward", "step", "checkpoint")
PLACES = ((1, 2), (2, 1), (1, 3), (3, 1), (2, 2), (1, 4), (2, 3), (3, 2), (1, 8), (2, 4), (4, 2))
"""Nodes, and processes of each."""
COLUMNS = ("cases", "named", "with certainty", "nobody named", "longest seconds")
TEXT = (
    "Real jobs of `gaudi3-train` on gloo, in which a rank hangs on purpose (`trainer/tests/hang_job.py`). In "
    "`named` the launchers named the right rank, node and kind. The seconds are those from the hang to the "
    f"sentence; {LIMIT} of them are the time limit of collectives, after which a process says that it waits. In "
    "the slow runs a rank takes 3 s longer in one step, and nobody may be named. A rank that makes another call "
    "than the others has skipped one or swaps two, which its notes do not always tell apart: such a finding is "
    "called `sequence`."
)
SETTINGS = (
    "device=cpu", "model.hidden_size=32", "model.intermediate_size=64", "model.layers=2", "model.sequence_length=32",
    "train.max_steps=16", "train.micro_batch_size=2", "train.warmup_steps=2", "train.log_every=1", "train.threads=1",
    f"train.collective_timeout={LIMIT}", "checkpoint.every=4", "data.validation_samples=16", "metrics.enabled=false",
    "monitoring.enabled=false",
)  # fmt: skip


@dataclass(frozen=True)
class Case:
    """A hang, or a rank that is slow for a while."""

    name: str
    kind: str
    nodes: int
    processes: int
    ranks: tuple[int, ...]
    step: int
    seconds: float = 100_000

    @property
    def is_slow(self) -> bool:
        """Does the job go on by itself?"""
        return self.seconds < LIMIT


@dataclass
class Outcome:
    """What was seen."""

    hangs: list[dict[str, Any]] = field(default_factory=list)
    """What the launchers said, each of a node that lives."""
    seconds: float = 0.0
    code: int | None = None
    log: str = ""


def cases() -> dict[str, list[Case]]:
    """Two hundred hangs and fifty slow runs, by kind."""
    draw = random.Random(20261128)
    found: dict[str, list[Case]] = {kind: [hang(kind, number, draw) for number in range(25)] for kind in KINDS}
    found["slow"] = []
    for number in range(50):
        kind = SLOW[number % len(SLOW)]
        made = hang(kind, number, draw)
        found["slow"].append(
            Case(f"slow {kind} {number}", kind, made.nodes, made.processes, made.ranks, made.step, seconds=3)
        )
    return found


def hang(kind: str, number: int, draw: random.Random) -> Case:
    """One of a kind, somewhere."""
    places = [place for place in PLACES if place[0] > 1] if kind == "dead node" else PLACES
    nodes, processes = draw.choice(places)
    rank, step = draw.randrange(nodes * processes), draw.randint(3, 9)
    ranks: tuple[int, ...] = (rank,)
    if kind == "checkpoint":
        ranks, step = (rank // processes * processes,), draw.choice((4, 8))  # the first process of a node commits
    if kind == "dead node":
        node = draw.randrange(1, nodes)  # the first one has the store
        ranks = tuple(range(node * processes, (node + 1) * processes))
    return Case(f"{kind} {number}", kind, nodes, processes, ranks, step)


def run(case: Case, client: Client, text: Path, folder: Path) -> Outcome:
    """Have it happen; the processes are gone afterwards."""
    folder.mkdir()
    endpoint = f"127.0.0.1:{free_port()}"
    started = [_start(case, client, text, folder, node, endpoint) for node in range(case.nodes)]
    began = time.monotonic()
    outcome = Outcome()
    try:
        while not any(folder.glob("hung-*")) and time.monotonic() - began < 200:
            if all(process.poll() is not None for process in started):
                break  # some that are slow have no moment at which they would hang
            time.sleep(0.02)
        hung = time.monotonic()
        living = [
            node for node in range(case.nodes) if case.kind != "dead node" or node != case.ranks[0] // case.processes
        ]
        patience = 60 if case.is_slow else LIMIT + LATEST + 5
        while time.monotonic() - hung < patience:
            outcome.hangs = [said for node in living if (said := _status(folder, node).get("hang"))]
            ended = all(process.poll() is not None for process in started)
            if ended or (len(outcome.hangs) > 0 and not outcome.seconds):
                outcome.seconds = outcome.seconds or time.monotonic() - hung
            if ended or len(outcome.hangs) == len(living) or (outcome.seconds and _since(hung) > outcome.seconds + 2):
                break
            time.sleep(0.05)
        until = time.monotonic() + 5
        while time.monotonic() < until and len([*folder.glob("node-*/hangs/*/verdict.json")]) < len(outcome.hangs):
            time.sleep(0.05)
        outcome.code = started[0].poll()
        outcome.log = "".join(process.output() for process in started)
        return outcome
    finally:
        for process in started:
            for each in [*_all_below(process.pid), process.pid]:
                kill(each, signal.SIGKILL)
            process.wait(30)


def _since(moment: float) -> float:
    return time.monotonic() - moment


def _all_below(process: int) -> list[int]:
    return [each for child in workers(process) for each in (child, *_all_below(child))]


def _status(folder: Path, node: int) -> dict[str, Any]:
    try:
        status: dict[str, Any] = json.loads((folder / f"node-{node}" / "status.json").read_text())
    except (OSError, ValueError):
        return {}
    return status


def _start(case: Case, client: Client, text: Path, folder: Path, node: int, endpoint: str) -> Started:
    out = folder / f"node-{node}"
    arguments = [
        f"--nnodes={case.nodes}", f"--nproc-per-node={case.processes}", "--rdzv-backend=c10d", "--rdzv-id=hang",
        f"--rdzv-endpoint={endpoint}", f"--rdzv-conf=is_host={int(node == 0)}", f"--status={out}/status.json",
        "--no-python", str(Path(__file__).with_name("hang_job.py")), "fit", *SETTINGS, f"data.source={text}",
        f"output_dir={out}",
    ]  # fmt: skip
    environment = {
        "HANG_KIND": case.kind,
        "HANG_RANKS": ",".join(map(str, case.ranks)),
        "HANG_STEP": str(case.step),
        "HANG_SECONDS": str(case.seconds),
        "HANG_LIMIT": str(LIMIT),
        "HANG_IN": str(folder),
        "TORCH_ELASTIC_SHUTDOWN_TIMEOUT": "2",
        "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
    }
    return client.start("launch", arguments, environment, folder / f"log-{node}")


def check(case: Case, outcome: Outcome) -> None:
    """Refuse anything but the right rank, node and kind in time, or nobody in a run that is slow."""
    if case.is_slow:
        assert outcome.hangs == [] and outcome.code == 0, outcome.log
        assert "did not enter" not in outcome.log
        return
    assert outcome.hangs, outcome.log
    for said in outcome.hangs:
        named = [] if case.kind == "wedge" else list(case.ranks)
        assert said["ranks"] == named, said
        assert said["kind"] in SAID.get(case.kind, {case.kind}), said
        assert bool(said["nodes"]) == bool(named)
        assert f"gaudi3-launch: {said['sentence']}\n" in outcome.log
    assert outcome.seconds <= LIMIT + LATEST


def row(case: Case, outcome: Outcome) -> dict[str, float]:
    """A case that held, for the table's sums."""
    said = outcome.hangs[0] if outcome.hangs else {}
    return {
        "cases": 1,
        "named": int(bool(said.get("ranks"))),
        "with certainty": int(said.get("certain") is True),
        "nobody named": int(not said.get("ranks")),
        "longest seconds": round(outcome.seconds, 1) if said else 0,
    }


def kind_of(name: str) -> str:
    """The kind of a case, from its name."""
    return name.rpartition(" ")[0]
