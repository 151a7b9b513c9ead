"""The jobs of a measurement: the trunk with the job's own batch, and its branches."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import yaml

from gaudi3_scale.config import Config
from gaudi3_scale.errors import TrainerError
from gaudi3_scale.status import JobStatus, read_status

Train = Callable[[Path, int], None]
"""Runs the job of a configuration file with this many processes to its end; raises TrainerError."""
FOREVER = 10**9
"""Steps after which the next checkpoint is due, where only the last one is wanted."""


def settings_of(config: Config, output: Path, data: Path) -> dict[str, Any]:
    """A job's settings for a measurement: it serves nobody and shares the prepared data."""
    settings = config.model_dump(mode="json")
    settings["output_dir"] = str(output)
    settings["data"]["directory"] = settings["data"]["directory"] or str(data)
    settings["checkpoint"] |= {"target": None, "adopt": True}
    settings["train"] |= {"evaluate_every": 0, "accumulation_steps": 1}
    settings["metrics"]["enabled"] = False
    settings["tracking"]["trackers"] = []
    settings["profile"] |= {"steps": 0, "memory_steps": 0}
    return settings


def run_job(settings: dict[str, Any], processes: int, train: Train) -> JobStatus:
    """Run a job, or go on with it; its status at the end."""
    output = Path(settings["output_dir"])
    output.mkdir(parents=True, exist_ok=True)
    file = output / "job.yml"
    file.write_text(yaml.safe_dump(settings), encoding="utf-8")
    train(file, processes)
    status = read_status(output)
    if status.get("state") != "finished" or status.get("validation_loss") is None or status.get("tokens") is None:
        raise TrainerError(f"The job in {output} ended without a held-out loss: see its log, and start again.")
    return status


def link_checkpoint(source: Path, target: Path) -> None:
    """The same checkpoint in another folder, without a copy of its files where the disk is the same."""
    if target.exists():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = target.with_name(f".{target.name}.new")
    shutil.rmtree(draft, ignore_errors=True)
    shutil.copytree(source, draft, copy_function=_link)
    draft.rename(target)


def _link(source: str, target: str) -> str:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
    return target


def in_processes(lock: int) -> Train:
    """Trains in processes of their own, which hold on to the lock as long as they live."""

    def train(file: Path, processes: int) -> None:
        command = [sys.executable]
        if processes > 1:
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", 0))
                port = probe.getsockname()[1]
            command += ["-m", "torch.distributed.run", f"--nproc-per-node={processes}", "--rdzv-backend=c10d"]
            command += [f"--rdzv-endpoint=127.0.0.1:{port}", "--rdzv-id=batch-warmup"]
        command += ["-m", "gaudi3_scale", "fit", "--config", str(file)]
        log = file.with_name("log")
        with log.open("ab") as output:
            child = subprocess.Popen(command, stdout=output, stderr=output, pass_fds=(lock,))
            with _passing_on(child):
                code = child.wait()
        if code:
            words = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
            last = next((line for line in reversed(words) if line.startswith("gaudi3-train: ")), (words or ["-"])[-1])
            raise TrainerError(f"The job in {file.parent} failed with exit code {code}: {last}")

    return train


@contextlib.contextmanager
def _passing_on(child: subprocess.Popen[bytes]) -> Iterator[None]:
    """SIGTERM and SIGINT go to the child, which saves and leaves with a code that ends the measurement."""

    def pass_on(number: int, frame: Any) -> None:
        with contextlib.suppress(ProcessLookupError):
            child.send_signal(number)

    before = {number: signal.signal(number, pass_on) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
