"""A trial as a real job: `gaudi3-train fit` in a process, or under the launcher in several."""

from __future__ import annotations

import ctypes
import json
import os
import platform
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import yaml

from gaudi3_scale.config import Config
from gaudi3_scale.files import write_atomically
from gaudi3_scale.hpu.device import tells_out_of_memory
from gaudi3_scale.internals import OWN_STORE
from gaudi3_scale.interruption.patience import LEAVING_FILE
from gaudi3_scale.status import FILE, JobStatus, StatusFile
from gaudi3_scale.tuning.space import patched
from gaudi3_scale.tuning.study_options import Objective, Options
from gaudi3_scale.tuning.trial import Outcome, Report, Trial
from gaudi3_scale.version import VERSION

MARK = "GAUDI3_TUNING_TRIAL"
"""Variable in the environment of a trial's processes."""
OF_A_LAUNCHER: tuple[str, ...] = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
OF_A_LAUNCHER += (
    "GROUP_RANK",
    "GROUP_WORLD_SIZE",
    "ROLE_RANK",
    "ROLE_NAME",
    "ROLE_WORLD_SIZE",
    OWN_STORE,
    LEAVING_FILE,
)
LOOK_SECONDS = 0.2
LEAVE_SECONDS = 20
"""For a trial that is ended early, before it is killed."""
PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None)


class FitRunner:
    """Makes trials with `gaudi3-train fit`. All use the data in one folder, which `prepare` fills."""

    def __init__(self, options: Options, data: Path) -> None:
        """`data` is used where the configuration names no folder."""
        self._options, self._data = options, data

    def prepare(self, trial: Trial) -> None:
        """Tokenise the data before the first trial, whose time it would be; a failure is the trial's to report."""
        trial.folder.mkdir(parents=True, exist_ok=True)
        file = self._write(trial)
        with (trial.folder / "prepare.log").open("ab") as log:
            subprocess.call(self._command("prepare", file, 1), stdout=log, stderr=log, env=_environment(trial))

    def __call__(self, trial: Trial, report: Report) -> Outcome:
        """Make it, and tell its speed while it goes on."""
        if trial.folder.exists():
            shutil.rmtree(trial.folder / "checkpoints", ignore_errors=True)
        trial.folder.mkdir(parents=True, exist_ok=True)
        for name in ("metrics.jsonl", FILE, "goodput.jsonl"):
            (trial.folder / name).unlink(missing_ok=True)
        file = self._write(trial)
        began = time.monotonic()
        with (trial.folder / "log").open("wb") as log:
            process = _Process(self._command("fit", file, trial.processes), trial, log)
            try:
                ended, reason = self._watch(process, trial, report, began)
            finally:
                process.stop()
        outcome = self._outcome(trial, process, ended, reason)
        outcome.seconds = time.monotonic() - began
        shutil.rmtree(trial.folder / "checkpoints", ignore_errors=True)
        return outcome

    def _watch(self, process: _Process, trial: Trial, report: Report, began: float) -> tuple[str, str]:
        """Until it ends, or has to: why it was ended, and in words."""
        told = 0
        while True:
            # Before the readings, so that those of a trial that ends between two looks are told as well.
            over = process.code() is not None
            readings = list(lines(trial.folder / "metrics.jsonl"))
            if self._reached(readings) and not over:
                return "reached", ""
            for count in range(told + 1, len(readings) + 1):
                value = self._intermediate(readings[:count])
                if value is not None and report(readings[count - 1]["step"], value) and not over:
                    return "pruned", f"ended after step {readings[count - 1]['step']}, behind the other trials"
            told = len(readings)
            if over:
                return "", ""
            if time.monotonic() - began > self._options.time_limit:
                return "timed out", f"not finished within {self._options.time_limit:g} s, after step {_step(readings)}"
            time.sleep(LOOK_SECONDS)

    def _reached(self, readings: list[dict[str, Any]]) -> bool:
        target = self._options.target_loss
        return target is not None and any(line["loss"] is not None and line["loss"] <= target for line in readings)

    def _intermediate(self, readings: list[dict[str, Any]]) -> float | None:
        if self._options.objective is Objective.time_to_loss:
            return _number(readings[-1]["loss"])
        return speed(readings, self._options.warm_steps)

    def _outcome(self, trial: Trial, process: _Process, ended: str, reason: str) -> Outcome:
        readings, status = list(lines(trial.folder / "metrics.jsonl")), StatusFile(trial.folder / FILE).read()
        outcome = Outcome(
            tokens_per_second=speed(readings, self._options.warm_steps),
            loss=next((_number(line["loss"]) for line in reversed(readings) if line["loss"] is not None), None),
            memory_gib=_gib(status.get("peak_memory_bytes") or process.resident_bytes),
            environment=environment(status),
        )
        target = self._options.target_loss
        for line in readings:
            if target is not None and line["loss"] is not None and line["loss"] <= target:
                outcome.seconds_to_loss = line["time"] - readings[0]["time"]
                break
        if ended in ("pruned", "timed out"):
            outcome.state, outcome.reason = ended, reason  # type: ignore[assignment]
        elif ended != "reached" and process.code() != 0:
            outcome.state, outcome.reason = _failure(trial, process.code(), status)
        elif outcome.tokens_per_second is None and target is None:
            outcome.state = "failed"
            outcome.reason = f"it made fewer steps than a speed needs: only {_step(readings)}"
        return outcome

    def _write(self, trial: Trial) -> Path:
        file = trial.folder / "config.yml"
        settings = of_trial(trial.config, self._options, trial.folder, self._data)
        write_atomically(file, yaml.safe_dump(settings.model_dump(mode="json", exclude_unset=True)))
        return file

    @staticmethod
    def _command(name: str, file: Path, processes: int) -> list[str]:
        command = [sys.executable, "-m"]
        if processes > 1:
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", 0))
                port = probe.getsockname()[1]
            command += ["gaudi3_scale.launch", f"--nproc-per-node={processes}", "--rdzv-backend=c10d"]
            command += [f"--rdzv-endpoint=127.0.0.1:{port}", "--rdzv-id=tuning", "-m"]
        return [*command, "gaudi3_scale", name, "--config", str(file)]


@dataclass
class _Process:
    """The process of a trial, or its launcher; it ends with this one."""

    command: list[str]
    trial: Trial
    log: IO[bytes]
    resident_bytes: int | None = None
    """Largest of any of its processes, once it has ended."""
    _pid: int = 0
    _code: int | None = field(default=None)

    def __post_init__(self) -> None:
        process = subprocess.Popen(
            self.command,
            stdin=subprocess.DEVNULL,
            stdout=self.log,
            stderr=self.log,
            env=_environment(self.trial),
            start_new_session=True,
            preexec_fn=_end_with_parent,
        )
        self._pid = process.pid
        process.returncode = 0  # it is waited for here, which tells its memory too

    def code(self) -> int | None:
        """Exit code, negative for a signal; None while it runs."""
        if self._code is None:
            pid, status, usage = os.wait4(self._pid, os.WNOHANG)
            if pid:
                self._code, self.resident_bytes = os.waitstatus_to_exitcode(status), usage.ru_maxrss * 1024
        return self._code

    def stop(self) -> None:
        """End it if it runs, in order if it can, and whatever it has left."""
        if self.code() is None:
            os.kill(self._pid, signal.SIGTERM)
            until = time.monotonic() + LEAVE_SECONDS
            while self.code() is None and time.monotonic() < until:
                time.sleep(0.05)
            if self.code() is None:
                os.kill(self._pid, signal.SIGKILL)
                while self.code() is None:
                    time.sleep(0.05)
        kill_marked(self.trial.mark)


def of_trial(config: Config, options: Options, folder: Path, data: Path) -> Config:
    """The job of a trial: fewer steps, a folder of its own, and nothing written or sent elsewhere."""
    train = config.train
    steps = train.max_steps if options.objective is Objective.time_to_loss else options.steps
    changes: dict[str, Any] = {
        "output_dir": str(folder),
        "train.max_steps": steps,
        "train.log_every": max(1, options.steps // 20),
        "train.evaluate_every": 0,
        "data.directory": str(config.data.directory or data),
        "checkpoint.every": max(steps, 1),
        "checkpoint.every_seconds": None,
        "checkpoint.target": None,
        "metrics.enabled": False,
        "tracking.trackers": [],
        "cost.budget": None,
    }
    if train.warmup_steps > steps:
        changes["train.warmup_steps"] = steps
    return patched(config, changes)


def lines(path: Path) -> Iterator[dict[str, Any]]:
    """The logged steps of a metrics.jsonl, without what a kill cut off."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return
    for line in text.splitlines(keepends=True):
        if line.endswith("\n") and '"tokens"' in line:
            try:
                yield json.loads(line)
            except ValueError:
                continue


def speed(readings: list[dict[str, Any]], warm: int) -> float | None:
    """Tokens per second from the first logged step after `warm` steps to the newest; None before there are two.

    Example:
        >>> speed([{"step": s, "tokens": 100 * s, "time": 0.5 * s} for s in (1, 10, 20)], warm=5)
        200.0
    """
    measured = [line for line in readings if line["step"] >= warm]
    if len(measured) < 2 or measured[-1]["time"] <= measured[0]["time"]:
        return None
    first, last = measured[0], measured[-1]
    return float((last["tokens"] - first["tokens"]) / (last["time"] - first["time"]))


def environment(status: JobStatus) -> dict[str, Any]:
    """What a trial ran on, as its status.json and this node say."""
    found = {key: value for key, value in status.items() if key in ("device", "hardware_name", "simulated", "software")}
    cores = len(os.sched_getaffinity(0))
    return {
        "host": platform.node(),
        "machine": platform.machine(),
        "cores": cores,
        "load": os.getloadavg()[0],
        "gaudi3_scale": VERSION,
        **found,
    }


def kill_marked(mark: str) -> None:
    """Kill the processes of a trial that are left, such as the workers of a launcher that was killed."""
    wanted = f"{MARK}={mark}".encode()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                if wanted in (entry / "environ").read_bytes().split(b"\0"):
                    os.kill(int(entry.name), signal.SIGKILL)
            except OSError:  # of another user, or gone
                continue


def _failure(trial: Trial, code: int | None, status: JobStatus) -> tuple[Any, str]:
    log = (trial.folder / "log").read_text(errors="replace") if (trial.folder / "log").exists() else ""
    said = [line.strip() for line in log.splitlines() if line.strip()]
    own = [line.removeprefix("gaudi3-train: ") for line in said if line.startswith("gaudi3-train: ")]
    words = str(status.get("error") or (own or said or ["it said nothing"])[-1])[:500]
    if tells_out_of_memory(log) or tells_out_of_memory(words):
        return "out of memory", words
    if code in (-signal.SIGKILL, 128 + signal.SIGKILL):
        return "out of memory", "it was killed (SIGKILL), which the system does where memory does not suffice"
    return "failed", f"exit code {code}: {words}"


def _environment(trial: Trial) -> dict[str, str]:
    """This process's, without what a launcher has put into it."""
    kept = {k: v for k, v in os.environ.items() if k not in OF_A_LAUNCHER and not k.startswith("TORCHELASTIC_")}
    return {**kept, MARK: trial.mark}


def _end_with_parent() -> None:
    """In the child: be told to leave when the search dies, however it does (prctl(2))."""
    _LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def _number(value: Any) -> float | None:
    return None if value is None else float(value)


def _gib(size: Any) -> float | None:
    return None if size is None else float(size) / 2**30


def _step(readings: list[dict[str, Any]]) -> int:
    return int(readings[-1]["step"]) if readings else 0
