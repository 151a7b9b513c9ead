"""Real jobs of four processes with planted delays, for the proof: what was planted, and what the ledger says of it."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conftest import free_port, kill, wait_for, workers
from zygote import Client, Started

from gaudi3_scale.cost.what_if import WhatIf, of_directory
from gaudi3_scale.throughput.ledger import CHECKPOINT, DATA

PROCESSES, STEPS = 4, 40
TOLERANCE = 0.1
CAUSE = {"forward": "slow_ranks", "backward": "slow_ranks", "data": DATA, "save": CHECKPOINT, "kill": "restart"}
"""The kind of cause that a delay in each phase is."""
SETTINGS = (
    "device=cpu", "model.hidden_size=32", "model.intermediate_size=64", "model.layers=2", "model.sequence_length=32",
    f"train.max_steps={STEPS}", "train.micro_batch_size=2", "train.warmup_steps=2", "train.log_every=5",
    "train.threads=1", "checkpoint.every=10", "data.validation_samples=16", "metrics.enabled=false",
    "cost.node_price_per_hour=30", "cost.price_source=test", "cost.price_date=2026-11-28",
)  # fmt: skip


@dataclass(frozen=True)
class Plan:
    """One job."""

    name: str
    delays: tuple[dict[str, Any], ...]
    nodes: int = 1
    killed_at: int | None = None
    """The step in which all processes are killed; they are started again after `pause` seconds."""
    pause: float = 10.0


def delay(phase: str, ranks: Sequence[int], seconds: float, first: int = 6, last: int = 35, every: int = 1) -> Any:
    """For `delayed_job.py`."""
    return {"phase": phase, "ranks": list(ranks), "seconds": seconds, "first": first, "last": last, "every": every}


ALL = tuple(range(PROCESSES))
PLANS = (
    Plan("slow rank 1", (delay("forward", [1], 0.6),)),
    Plan("slow rank 0", (delay("forward", [0], 0.4),)),
    Plan("slow rank 2, backward", (delay("backward", [2], 0.5),)),
    Plan("slow rank 3, every fourth step", (delay("forward", [3], 2.0, every=4),)),
    Plan("slow rank 3, later", (delay("backward", [3], 1.0, first=22, last=38),)),
    Plan("slow ranks 2 and 3", (delay("forward", [2, 3], 0.6),), nodes=2),
    Plan("late data on rank 0", (delay("data", [0], 0.5),)),
    Plan("late data on rank 2", (delay("data", [2], 1.5, every=3),)),
    Plan("slow saves", (delay("save", ALL, 4.0, first=10, last=30, every=10),)),
    Plan("slow saves of rank 0", (delay("save", [0], 4.0, first=10, last=30, every=10),)),
    Plan("lost processes", (), killed_at=17),
    Plan("lost nodes", (), nodes=2, killed_at=28, pause=20.0),
    Plan(
        "everything",
        (
            delay("forward", [1], 1.0, last=20), delay("data", [2], 1.0, first=22, last=38),
            delay("save", ALL, 4.0, first=10, last=30, every=10),
        ),
        killed_at=26,
    ),
)  # fmt: skip
COLUMNS = ("planted, s", "found, s", "off by", "named")


@dataclass(frozen=True)
class Outcome:
    """Seconds by kind of cause."""

    planted: dict[str, float]
    found: dict[str, float]
    what_if: WhatIf


def run(plan: Plan, client: Client, text: Path, folder: Path) -> Outcome:
    """Have it happen, and read the ledger of the first node."""
    folder.mkdir()
    started = _start(plan, client, text, folder)
    if plan.killed_at is not None:
        due = plan.killed_at
        wait_for(lambda: bool(_lines(folder, "steps", 0)) and _lines(folder, "steps", 0)[-1]["step"] >= due, "the step")
        for process in started:
            for each in [process.pid, *workers(process.pid)]:
                kill(each, signal.SIGKILL)
            process.wait(30)
        time.sleep(plan.pause)
        started = _start(plan, client, text, folder)
    for process in started:
        assert process.wait(300) == 0, process.output()
    found = of_directory(folder / "node-0")
    sums: dict[str, float] = {}
    for cause in found.causes:
        sums[cause.kind] = sums.get(cause.kind, 0.0) + cause.nanoseconds / 1e9
    return Outcome(_planted(plan, folder), sums, found)


def check(plan: Plan, outcome: Outcome) -> dict[str, str]:
    """Refuse what is off by more than a tenth, or other ranks; the row of the table."""
    for kind, seconds in outcome.planted.items():
        assert abs(outcome.found.get(kind, 0.0) - seconds) <= TOLERANCE * seconds, (kind, outcome)
    slow = {rank for each in plan.delays if CAUSE[each["phase"]] == "slow_ranks" for rank in each["ranks"]}
    named = [cause for cause in outcome.what_if.causes if cause.kind == "slow_ranks"]
    if slow:
        most = max(named, key=lambda cause: cause.nanoseconds)
        assert set(most.ranks) == slow, outcome
    kinds = list(outcome.planted)
    return {
        "planted, s": ", ".join(f"{kind} {outcome.planted[kind]:.1f}" for kind in kinds),
        "found, s": ", ".join(f"{outcome.found[kind]:.1f}" for kind in kinds),
        "off by": ", ".join(f"{100 * (outcome.found[kind] / outcome.planted[kind] - 1):+.1f} %" for kind in kinds),
        "named": ", ".join(str(rank) for rank in sorted(slow)),
    }


def _planted(plan: Plan, folder: Path) -> dict[str, float]:
    """By the processes' own notes; what was done again counts once, with the restart."""
    found: dict[str, float] = {}
    resumed = 10**9
    if plan.killed_at is not None:
        steps = _lines(folder, "steps", 0)
        # Before its first step a process computes one to settle its buckets, which is noted, too.
        again = max(at for at, line in enumerate(steps) if at and line["step"] <= steps[at - 1]["step"])
        resumed = steps[again]["step"] - 1
        # The end of the step that was resumed from is the beginning of the next one.
        found["restart"] = steps[again]["time"] - next(e["time"] for e in steps[:again] if e["step"] == resumed + 1)
    for rank in range(PROCESSES):
        notes = {(line["phase"], line["step"]): line["seconds"] for line in _lines(folder, "slept", rank)}
        for (phase, _step), seconds in notes.items():
            share = seconds / max(len(each["ranks"]) for each in plan.delays if each["phase"] == phase)
            found[CAUSE[phase]] = found.get(CAUSE[phase], 0.0) + share
    return found


def _lines(folder: Path, name: str, rank: int) -> list[dict[str, Any]]:
    path = folder / f"{name}-{rank}"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def _start(plan: Plan, client: Client, text: Path, folder: Path) -> list[Started]:
    endpoint = f"127.0.0.1:{free_port()}"
    started = []
    for node in range(plan.nodes):
        arguments = [
            f"--nnodes={plan.nodes}", f"--nproc-per-node={PROCESSES // plan.nodes}", "--rdzv-backend=c10d",
            "--rdzv-id=price", f"--rdzv-endpoint={endpoint}", f"--rdzv-conf=is_host={int(node == 0)}", "--no-python",
            str(Path(__file__).with_name("delayed_job.py")), "fit", *SETTINGS, f"data.source={text}",
            f"output_dir={folder / f'node-{node}'}",
        ]  # fmt: skip
        environment = {
            "DELAYS": json.dumps(plan.delays),
            "DELAYED_IN": str(folder),
            "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
        }
        started.append(client.start("launch", arguments, environment, folder / f"log-{len(started)}"))
    return started
