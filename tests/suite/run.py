"""`make test`: every part, three at a time, with what each one cost.

A part is a make target. What it prints goes into `.cache/test/PART.txt` and, where the part fails, onto the screen;
its slowest tests are listed there. Parts of one lane follow one another, and lanes run side by side. CPU time
counts a part's processes that have ended and were waited for, and the containers of the simulated nodes. `make prepare`
comes first and is not counted: it downloads, compiles and builds the node image once.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LOGS = ROOT / ".cache" / "test"
BUDGET_MINUTES = 70
LANES = [
    ["system", "molecule-test"],
    [
        "lint",
        "trainer-test",
        "benchmark-test",
        "doctor-test",
        "migration-test",
        "watch-test",
        "unit",
        "simulator-test",
        "deploy-test",
        "coverage",
    ],
]
"""Simulated nodes in one lane, as there is one network and one container storage; in the other what `coverage` sums."""
LOOSE = ["plays", "terraform-test", "device-test", "website-test", "sanity", "artifact"]
"""What runs beside the lanes, and what these go on with at their ends."""
WORKERS = 3
"""One more than the cores of the machine that this is cut for, as simulated nodes and killed jobs wait a good deal."""
WITH_CONTAINERS = {"system", "molecule-test"}
_COUNTS = re.compile(r"(\d+) (passed|failed|errors?|skipped|xfailed|xpassed)\b")


@dataclass
class Part:
    """One make target and its outcome."""

    name: str
    code: int | None = None
    wall: float = 0.0
    cpu: float = 0.0
    counts: dict[str, int] = field(default_factory=dict)

    @property
    def log(self) -> Path:
        return LOGS / f"{self.name}.txt"


def count(text: str) -> dict[str, int]:
    """Sums of pytest's closing lines in ``text``: one line per pytest run, such as "3 passed, 1 skipped in 0.12s".

    The line of a pytest that a failed test quotes is indented, and not counted.
    """
    totals: dict[str, int] = {}
    for line in text.splitlines():
        if not re.match(r"(=+ )?\d.*\bin \d+(\.\d+)?s", line):
            continue
        for number, word in _COUNTS.findall(line):
            kind = "failed" if word.startswith("error") else word
            totals[kind] = totals.get(kind, 0) + int(number)
    return totals


def container_seconds() -> float:
    """CPU seconds of all containers of this machine since it booted; 0 where there is no such account."""
    for path, scale in (
        ("/sys/fs/cgroup/cpuacct/libpod_parent/cpuacct.usage", 1e-9),
        ("/sys/fs/cgroup/cpu,cpuacct/libpod_parent/cpuacct.usage", 1e-9),
        ("/sys/fs/cgroup/libpod_parent/cpu.stat", 1e-6),
    ):
        try:
            return int(Path(path).read_text().split()[-1 if "usage" in path else 1]) * scale
        except (OSError, ValueError, IndexError):
            continue
    return 0.0


class Suite:
    """The parts that are to run, and the processes of those that do."""

    def __init__(self, lanes: list[list[str]], make: str, loose: Sequence[str] = ()) -> None:
        self.lanes = [[Part(name) for name in lane] for lane in lanes]
        self.loose = [Part(name) for name in loose]
        self.make = make
        self.started = time.monotonic()
        self.screen = threading.Lock()
        self.running: dict[int, subprocess.Popen[bytes]] = {}
        self.stopped = False

    def parts(self) -> list[Part]:
        return [part for lane in (*self.lanes, self.loose) for part in lane]

    def say(self, text: str) -> None:
        minutes, seconds = divmod(int(time.monotonic() - self.started), 60)
        with self.screen:
            print(f"[{minutes:02d}:{seconds:02d}] {text}", flush=True)

    def run_part(self, part: Part) -> None:
        """Run one part to its end."""
        self.say(f"{part.name} ...")
        before, containers = time.monotonic(), container_seconds()
        with part.log.open("wb") as output:
            process = subprocess.Popen(
                [self.make, "--no-print-directory", part.name],
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                # What the parts need is there already; a make of its own must not take this one's job slots.
                env={key: value for key, value in os.environ.items() if key not in ("MAKEFLAGS", "MFLAGS")}
                | {"PYTEST_ADDOPTS": "--durations=40 --durations-min=2"},
            )
            self.running[process.pid] = process
            _pid, status, used = os.wait4(process.pid, 0)
            process.returncode = part.code = os.waitstatus_to_exitcode(status)
            del self.running[process.pid]
        part.wall = time.monotonic() - before
        part.cpu = used.ru_utime + used.ru_stime
        if part.name in WITH_CONTAINERS:
            part.cpu += container_seconds() - containers
        part.counts = count(part.log.read_text(errors="replace"))
        outcome = ", ".join(f"{number} {word}" for word, number in part.counts.items()) or "ok"
        if part.code:
            outcome = f"FAILED with exit code {part.code} ({outcome})"
        self.say(f"{part.name}: {outcome}; {part.cpu:.0f} s of CPU, {part.wall:.0f} s of time")
        if part.code:
            with self.screen:
                print(part.log.read_text(errors="replace")[-20_000:], flush=True)

    def run_lane(self, lane: list[Part]) -> None:
        for part in lane:
            if not self.stopped:
                self.run_part(part)

    def run(self) -> None:
        """Run every lane, and what is loose; an interrupt ends all that runs."""
        pending = [*self.lanes, *([part] for part in self.loose)]
        gate = threading.Lock()

        def work() -> None:
            while True:
                with gate:
                    if not pending or self.stopped:
                        return
                    lane = pending.pop(0)
                self.run_lane(lane)

        threads = [threading.Thread(target=work) for _ in range(WORKERS if (os.cpu_count() or 1) > 1 else 1)]
        for thread in threads:
            thread.start()
        try:
            for thread in threads:
                while thread.is_alive():
                    thread.join(1)
        except KeyboardInterrupt:
            self.stopped = True
            for pid in list(self.running):
                os.killpg(pid, signal.SIGINT)
            for thread in threads:
                thread.join(60)
            raise

    def table(self) -> str:
        """What each part cost."""
        rows = [f"{'part':<16}{'CPU s':>8}{'wall s':>8}  outcome"]
        for part in self.parts():
            outcome = "not run" if part.code is None else "ok" if part.code == 0 else f"exit code {part.code}"
            rows.append(f"{part.name:<16}{part.cpu:>8.0f}{part.wall:>8.0f}  {outcome}")
        cpu = sum(part.cpu for part in self.parts()) / 60
        wall = (time.monotonic() - self.started) / 60
        rows.append(f"together {cpu:.1f} CPU-minutes (the aim: at most {BUDGET_MINUTES}) in {wall:.1f} minutes")
        return "\n".join(rows)

    def summary(self) -> str:
        """The closing line: a part that failed without a failed test, such as lint, counts as one."""
        total: dict[str, int] = {}
        for part in self.parts():
            for word, number in part.counts.items():
                total[word] = total.get(word, 0) + number
            if part.code and not part.counts.get("failed"):
                total["failed"] = total.get("failed", 0) + 1
        line = f"{total.get('passed', 0)} passed, {total.get('failed', 0)} failed"
        return line + (f", {total['skipped']} skipped" if total.get("skipped") else "")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--make", default="make", help="the make program")
    parser.add_argument("parts", nargs="*", help="these parts alone")
    arguments = parser.parse_args()
    *lanes, loose = [
        [name for name in lane if not arguments.parts or name in arguments.parts] for lane in (*LANES, LOOSE)
    ]
    LOGS.mkdir(parents=True, exist_ok=True)
    # A shell's background ignores it, and so would the parts, whose tests interrupt programs by it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    suite = Suite([lane for lane in lanes if lane], arguments.make, loose)
    try:
        suite.run()
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    print(suite.table())
    print(suite.summary(), flush=True)
    return 1 if any(part.code != 0 for part in suite.parts()) else 0


if __name__ == "__main__":
    sys.exit(main())
