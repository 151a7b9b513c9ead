"""One case of the kill matrix: a signal, to whom, in which phase; what was seen."""

from __future__ import annotations

import json
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conftest import free_port, kill, workers
from zygote import Client, Started

STEPS, EVERY, EVALUATE = 10, 4, 3
PAUSE_STEP = {
    "data": 7,
    "forward": 7,
    "backward": 7,
    "optimizer": 7,
    "evaluation": 6,
    "warm-up": 0,
    "save": 8,
    "upload": 8,
}
BOUND = 20.0
"""Seconds after which nothing of a job may be left; `collective_timeout` and the grace are 5 each here."""
SETTINGS = (
    "device=cpu",
    "model.hidden_size=32",
    "model.intermediate_size=64",
    "model.layers=2",
    "model.sequence_length=32",
    f"train.max_steps={STEPS}",
    "train.micro_batch_size=2",
    "train.accumulation_steps=2",
    "train.warmup_steps=2",
    "train.log_every=1",
    "train.threads=1",
    "train.collective_timeout=5",
    f"train.evaluate_every={EVALUATE}",
    f"checkpoint.every={EVERY}",
    "data.validation_samples=8",
    "metrics.enabled=false",
    "interruption.grace=5",
)


SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGUSR1)
TARGETS = ("one rank", "all ranks", "launcher")
KINDS: dict[str, tuple[str, ...]] = {
    "plain": (),
    "compiled": ("train.mode=compile", "train.compile_backend=aot_eager"),
    "LoRA": ("model.lora.rank=2",),
    "HSDP": ("train.strategy=habana_fsdp", "train.replicas=2"),
}
"""Settings of a kind of job beyond `SETTINGS`."""
PROCESSES = {"HSDP": 4}
"""Of the other kinds there are two."""


@dataclass(frozen=True)
class Case:
    """What is done to a job."""

    number: signal.Signals
    target: str
    phase: str
    kind: str = "plain"

    @property
    def name(self) -> str:
        """For pytest and the table."""
        kind = "" if self.kind == "plain" else f"-{self.kind}"
        return f"{self.number.name}-{self.target}-{self.phase}{kind}".replace(" ", "-")


PLAIN = [Case(number, target, phase) for phase in PAUSE_STEP for number in SIGNALS for target in TARGETS]
# One case for each phase of each other kind, so that every signal, to every target, comes to each kind.
OTHERS = [
    Case(SIGNALS[(row + column) % 3], TARGETS[(row + row // 3 + column) % 3], phase, kind)
    for column, kind in enumerate(list(KINDS)[1:])
    for row, phase in enumerate(PAUSE_STEP)
]
CASES = PLAIN + OTHERS


@dataclass(frozen=True)
class Outcome:
    """What was seen."""

    code: int
    """Exit code of the launcher, minus the signal that killed it."""
    before: list[int]
    """Steps with a committed checkpoint when the signal was sent."""
    after: list[int]
    status: dict[str, Any]
    seconds: float
    """From the signal until nothing of the job was left."""


class KilledJob:
    """A job of several processes on one node, under the real launcher."""

    def __init__(self, client: Client, folder: Path, text: Path, *settings: str, kind: str = "plain") -> None:
        self.client = client
        self.folder = folder
        self.processes = PROCESSES.get(kind, 2)
        self.settings = (*SETTINGS, *KINDS[kind], f"data.source={text}", f"output_dir={folder / 'out'}", *settings)
        folder.mkdir(parents=True)
        self._starts = 0

    def start(self, environment: dict[str, str] | None = None, *launcher: str) -> Started:
        """Start the launcher."""
        self._starts += 1
        port = free_port()
        arguments = [f"--rdzv-endpoint=127.0.0.1:{port}", "--rdzv-backend=c10d", "--rdzv-id=test"]
        arguments += [
            f"--nproc-per-node={self.processes}",
            "--monitor-interval=0.1",
            *launcher,
            "--no-python",
            "gaudi3-train",
            "fit",
            *self.settings,
        ]
        log = self.folder / f"log-{self._starts}"
        return self.client.start("launch", arguments, environment or {}, log)

    def finish(self) -> str:
        """Run to the end."""
        started = self.start()
        code = started.wait(120)
        assert code == 0, started.output()
        return started.output()

    def steps(self) -> list[int]:
        """Steps of the committed checkpoints."""
        return sorted(int(p.name[5:]) for p in (self.folder / "out" / "checkpoints").glob("step-*"))

    def status(self) -> dict[str, Any]:
        """The content of status.json."""
        status: dict[str, Any] = json.loads((self.folder / "out" / "status.json").read_text())
        return status

    def lines(self, name: str) -> list[tuple[int, float]]:
        """Step and loss in a file of lines."""
        key = "loss" if name == "metrics" else "validation_loss"
        lines = [json.loads(line) for line in (self.folder / "out" / f"{name}.jsonl").read_text().splitlines()]
        return [(line["step"], line[key]) for line in lines]

    def uploaded(self) -> list[int]:
        """Steps of the checkpoints that are whole in the target."""
        found = (self.folder / "target").glob("step-*/manifest.json")
        return sorted({int(path.parent.name.split("-")[1]) for path in found})

    def state(self) -> Any:
        """The content of the last checkpoint."""
        from gaudi3_scale.checkpoint.fetch import read_all

        return read_all(self.folder / "out" / "checkpoints" / f"step-{STEPS:08d}")

    def strike(self, case: Case) -> Outcome:
        """Run into the phase, send the signal, and watch the job go; raises if it does not."""
        ranks = ["0"] if case.phase in ("save", "upload", "evaluation") else ["1"]
        if case.target == "all ranks" and ranks != ["0"]:
            ranks = [str(rank) for rank in range(self.processes)]
        environment = {
            "PAUSE_IN": str(self.folder),
            "PAUSE_PHASE": case.phase,
            "PAUSE_STEP": str(PAUSE_STEP[case.phase]),
            "PAUSE_RANKS": ",".join(ranks),
        }
        started = self.start(environment)
        _wait(lambda: all((self.folder / f"paused-{rank}").exists() for rank in ranks), 60, started)
        due = (PAUSE_STEP[case.phase] - (case.phase == "save")) // EVERY * EVERY
        _wait(lambda: due == 0 or due in self.steps(), 60, started)  # it is written in the background
        alive = workers(started.pid)
        assert len(alive) == self.processes
        victims = {"one rank": [alive[int(ranks[-1])]], "all ranks": alive, "launcher": [started.pid]}[case.target]
        before = self.steps()
        began = time.monotonic()
        for pid in victims:
            kill(pid, case.number)
        if case.number != signal.SIGKILL or case.target == "launcher":
            time.sleep(1.0 if case.number == signal.SIGKILL else 0.2)  # the notice is heard while the phase lasts
        (self.folder / "go").touch()
        try:
            code = started.wait(BOUND)
            _wait(lambda: not any(_alive(pid) for pid in alive), BOUND - (time.monotonic() - began))
        finally:
            for pid in [*alive, started.pid]:
                if _alive(pid):
                    kill(pid, signal.SIGKILL)
        took = time.monotonic() - began
        return Outcome(code, before, self.steps(), self.status(), took)


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def _wait(condition: Any, seconds: float, started: Started | None = None) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"not within {seconds:.1f} s"
        assert started is None or started.poll() is None, started.output()
        time.sleep(0.01)


def row(seen: Outcome, resumed: int) -> dict[str, str]:
    """A case that held, for the table."""
    ending = f"exit {seen.code}" if seen.code >= 0 else "killed"
    return {
        "ending": f"{ending}, `{seen.status['state']}`",
        "before": str(max(seen.before, default=0)),
        "resumed": str(resumed),
        "seconds": f"{seen.seconds:.1f}",
    }


COLUMNS = ("ending", "before", "resumed", "seconds")
TEXT = f"""
A job of two processes (gloo, CPU) under `gaudi3_scale.launch`, or of four with HSDP (two copies, each split over
two processes), trains {STEPS} steps of two micro-batches, saves every
{EVERY} steps and evaluates every {EVALUATE}. One or both processes are held in a phase, the signal is sent,
the phase goes on. Then the job is started again and runs to its end. A case's name has the signal, what gets it, the
phase and, where it is not the plain one, the kind of job.

In every row below: nothing of the job was left {BOUND:.0f} seconds after the signal; no checkpoint that was committed
before was lost; and after the restart the weights, the optimizer's state, the random states, every logged loss and
every evaluation were equal, bit for bit, to those of a job to which nothing happened.

- *ending*: exit code of the launcher, and the state in `status.json`. 75 is an orderly interruption. 1 follows a
  `kill -9`; the state is then whatever was written last.
- *before*: newest step with a committed checkpoint when the signal came. *resumed*: the step after which the second
  run began.
- *seconds*: from the signal to the end of the last process, on a machine that was busy with other work besides: a
  bound, no figure to compare.
"""
