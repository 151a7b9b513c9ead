"""Jobs' folders and pages for the tests."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gaudi3_scale.metrics_listener import BoundedServer
from gaudi3_watch.pages import Pages, Source

BEGAN = 1_700_000_000.0
"""When the jobs of the tests began."""


def status(**changes: Any) -> dict[str, Any]:
    """What status.json of a running job says."""
    found = {
        "schema": 1,
        "state": "running",
        "step": 100,
        "max_steps": 400,
        "loss": 2.5,
        "first_loss": 5.5,
        "validation_loss": 2.6,
        "baseline_loss": 3.0,
        "tokens_per_second": 1234.0,
        "goodput": None,
        "cost": None,
        "world_size": 2,
        "device": "cpu",
        "hardware_name": None,
        "simulated": False,
        "precision": "32-true",
        "started_at": BEGAN,
        "updated_at": BEGAN + 1000,
        "error": None,
        "interruption": None,
    }
    return found | changes


def metric(step: int, **changes: Any) -> dict[str, Any]:
    """A line of metrics.jsonl: a step takes ten seconds."""
    found = {
        "step": step,
        "loss": 5.5 - step / 50,
        "gradient_norm": 1.0,
        "learning_rate": 0.001,
        "tokens": 100 * step,
        "tokens_per_second": 10.0,
        "time": BEGAN + 10 * step,
    }
    return found | changes


def account(step: int, time: float, run: str = "a", event: str = "account", **seconds: float) -> dict[str, Any]:
    """A line of goodput.jsonl; the seconds are those since the process began."""
    parts = dict.fromkeys(("startup", "compute", "data_wait", "checkpoint_stall", "evaluation", "other"), 0.0) | seconds
    spent = {part: int(value * 1e9) for part, value in parts.items()}
    began = BEGAN + time - sum(parts.values())
    return {"event": event, "step": step, "run": run, "began": began, "time": BEGAN + time, "nanoseconds": spent}


def write_lines(path: Path, lines: list[Any]) -> None:
    """A file of JSON lines; texts are written as they are."""
    path.write_text("".join((each if isinstance(each, str) else json.dumps(each)) + "\n" for each in lines))


@pytest.fixture
def job(tmp_path: Path) -> Path:
    """The folder of a job that has restarted once."""
    folder = tmp_path / "job"
    folder.mkdir()
    (folder / "status.json").write_text(json.dumps(status()))
    write_lines(folder / "metrics.jsonl", [metric(step) for step in range(10, 101, 10)])
    write_lines(
        folder / "evaluation.jsonl",
        [{"step": s, "validation_loss": 5 - s / 50, "time": BEGAN + 10 * s} for s in (50, 100)],
    )
    ledger = [
        account(0, 5, event="start", startup=5),
        account(30, 305, startup=5, compute=290, checkpoint_stall=10),
        account(50, 505, startup=5, compute=490, checkpoint_stall=10),
        account(30, 600, "b", "start", startup=10),
        account(100, 1000, "b", startup=10, compute=390, checkpoint_stall=10),
    ]
    write_lines(folder / "goodput.jsonl", ledger)
    return folder


@pytest.fixture
def serve() -> Iterator[Callable[..., str]]:
    """Serves a source, and gives the page's address."""
    servers: list[BoundedServer] = []

    def start(source: Source, **given: Any) -> str:
        tls = given.pop("tls", None)
        server = BoundedServer("127.0.0.1", 0, Pages(source, **given), tls)
        servers.append(server)
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return f"{'https' if tls else 'http'}://127.0.0.1:{server.server_port}"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()
