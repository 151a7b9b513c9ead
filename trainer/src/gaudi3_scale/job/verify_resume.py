"""`gaudi3-train verify-resume`: does this very job, killed and resumed, do what it would have done without the kill?

It is run twice on this node with its own configuration, in directories that are thrown away: 2 N steps in one go, and
2 N steps with a `kill -9` of all processes after the checkpoint of step N. Losses and everything in the last checkpoint
have to be equal to the last bit. With another number of processes after the kill the samples are the same but sums
round differently: then the losses have to agree to `TOLERANCE`.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from gaudi3_scale.config import Config
from gaudi3_scale.errors import TrainerError
from gaudi3_scale.status import FILE, read_status

TOLERANCE = {"32-true": 1e-3, "bf16-mixed": 2e-2}
"""Largest relative difference of a loss after a change of the number of processes."""


def verify(config: Config, steps: int, world_sizes: list[int], log: Callable[[str], None]) -> bool:
    """Train, kill, resume, compare; is all as it should be? The first number of processes is that before the kill."""
    before = world_sizes[0]
    with tempfile.TemporaryDirectory(prefix="gaudi3-verify-") as name:
        folder = Path(name)
        whole = _Run(config, steps, folder / "whole", folder / "data")
        log(f"{2 * steps} steps with {before} process(es), undisturbed")
        whole.finish(before)
        good = True
        for after in world_sizes[1:] or [before]:
            cut = _Run(config, steps, folder / f"cut-{after}", folder / "data")
            log(f"{2 * steps} steps with {before} process(es), killed after the checkpoint of step {steps}")
            died = cut.kill(before)
            log(f"killed after step {died}; resumed with {after} process(es)")
            resumed = cut.finish(after)
            if resumed is None or resumed < steps:
                raise TrainerError(f"The killed job was resumed from step {resumed}: there was no checkpoint {steps}.")
            tolerance = 0.0 if after == before else TOLERANCE[whole.precision()]
            good = _compare(whole, cut, tolerance, log) and good
    return good


class _Run:
    """One job in a directory of its own."""

    def __init__(self, config: Config, steps: int, output: Path, data: Path) -> None:
        output.mkdir()
        settings = config.model_dump(mode="json")
        settings["output_dir"] = str(output)
        settings["data"]["directory"] = settings["data"]["directory"] or str(data)
        warm = min(config.train.warmup_steps, 2 * steps)  # a longer one is refused
        settings["train"] |= {"max_steps": 2 * steps, "warmup_steps": warm, "log_every": 1}
        settings["checkpoint"] |= {"every": steps, "keep": 2, "target": None}
        settings["metrics"]["enabled"] = False
        self.output = output
        self._steps = steps
        self._settings = output / "job.yml"
        self._settings.write_text(yaml.safe_dump(settings))

    def finish(self, processes: int) -> int | None:
        """Run to the end; the step it was resumed from."""
        with self._log().open("ab") as log:
            code = subprocess.call(self._command(processes), stdout=log, stderr=log)
        if code:
            raise TrainerError(f"The job itself failed with exit code {code}: {self._last_words()}")
        status = read_status(self.output)
        if "resumed_from_step" not in status:
            raise TrainerError(f"{self.output / FILE} does not say from which step the job was resumed: start again.")
        return status["resumed_from_step"]

    def precision(self) -> str:
        """That the finished job computed in."""
        said = read_status(self.output).get("precision")
        if said not in TOLERANCE:
            raise TrainerError(f"{self.output / FILE} does not say in which precision the job computed: start again.")
        return said

    def kill(self, processes: int) -> int:
        """Run until the checkpoint of the middle is committed and a step more is done, then kill -9; the last step."""
        middle = self.output / "checkpoints" / f"step-{self._steps:08d}"
        with self._log().open("ab") as log:
            launcher = subprocess.Popen(self._command(processes), stdout=log, stderr=log)
        try:
            while not (middle.exists() and self.losses()[-1:] and self.losses()[-1][0] > self._steps):
                if launcher.poll() is not None:
                    raise TrainerError(
                        f"The job ended with exit code {launcher.returncode} before it could be killed: "
                        + (self._last_words() if launcher.returncode else "give more --steps.")
                    )
                time.sleep(0.005)
        finally:
            for pid in _family(launcher.pid):
                _kill(pid)
            launcher.wait()
        return self.losses()[-1][0]

    def losses(self) -> list[tuple[int, float]]:
        """Step and loss of every line that is complete."""
        path = self.output / "metrics.jsonl"
        lines = path.read_text().splitlines(keepends=True) if path.exists() else []
        return [(line["step"], line["loss"]) for line in map(json.loads, (t for t in lines if t.endswith("\n")))]

    def last(self) -> dict[str, Any]:
        """Everything in the last checkpoint."""
        from gaudi3_scale.checkpoint.fetch import read_all

        return read_all(self.output / "checkpoints" / f"step-{2 * self._steps:08d}")

    def _command(self, processes: int) -> list[str]:
        command = [sys.executable]
        if processes > 1:
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", 0))
                port = probe.getsockname()[1]
            command += ["-m", "torch.distributed.run", f"--nproc-per-node={processes}", "--rdzv-backend=c10d"]
            command += [f"--rdzv-endpoint=127.0.0.1:{port}", "--rdzv-id=verify"]
        return [*command, "-m", "gaudi3_scale", "fit", "--config", str(self._settings)]

    def _log(self) -> Path:
        return self.output / "log"

    def _last_words(self) -> str:
        lines = [line for line in self._log().read_text(errors="replace").splitlines() if line.strip()]
        return next((line for line in lines if line.startswith("gaudi3-train: ")), lines[-1] if lines else "no output")


def _compare(whole: _Run, cut: _Run, tolerance: float, log: Callable[[str], None]) -> bool:
    """Say how the two differ; is it no more than allowed?"""
    expected, found = whole.losses(), cut.losses()
    if [step for step, _ in expected] != [step for step, _ in found]:
        log(f"DIFFERENT: the losses are of steps {[s for s, _ in found]}, not {[s for s, _ in expected]}")
        return False
    gap, step = max((abs(a - b) / max(abs(a), 1e-30), step) for (step, a), (_, b) in zip(expected, found, strict=True))
    if gap > tolerance:
        first = next(s for (s, a), (_, b) in zip(expected, found, strict=True) if a != b)
        log(f"DIFFERENT: losses differ from step {first} on, by up to {gap:.1e} of their value at step {step}")
        return False
    if tolerance:
        log(f"SAME SAMPLES: {len(found)} losses agree to {gap:.1e} of their value ({tolerance:.0e} is allowed)")
        return True
    different = sorted(_differences(whole.last(), cut.last(), ""))
    if different:
        log(f"DIFFERENT: all losses are equal, but not {different[0]} in the last checkpoint ({len(different)} in all)")
        return False
    log(f"EXACT: {len(found)} losses and everything in the last checkpoint are equal to the last bit")
    return True


def _differences(one: Any, other: Any, where: str) -> list[str]:
    """Where two nested states differ."""
    import torch

    if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        same = one.dtype == other.dtype and one.shape == other.shape
        return [] if same and torch.equal(one.view(-1), other.view(-1)) else [where]
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        return [found for key in one for found in _differences(one[key], other[key], f"{where}.{key}".lstrip("."))]
    if isinstance(one, list | tuple) and isinstance(other, list | tuple) and len(one) == len(other):
        return [f for n, (a, b) in enumerate(zip(one, other, strict=True)) for f in _differences(a, b, f"{where}[{n}]")]
    return [] if type(one) is type(other) and one == other else [where]


def _family(pid: int) -> list[int]:
    """A process before its descendants, so that it does not start them again."""
    children = Path(f"/proc/{pid}/task/{pid}/children")
    mine = [int(child) for child in children.read_text().split()] if children.exists() else []
    return [pid, *(found for child in mine for found in _family(child))]


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
