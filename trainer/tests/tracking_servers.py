"""A real MLflow server with SQLite, for as long as it is needed."""

from __future__ import annotations

import json
import os
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from conftest import free_port, wait_for

PYTHON = Path(__file__).resolve().parents[2] / ".cache" / "mlflow" / "bin" / "python"


@contextmanager
def mlflow_server(folder: Path) -> Iterator[str]:
    """Its address; database and artefacts lie in the folder. Skips where it is not installed, and fails in CI."""
    if not PYTHON.exists():
        (pytest.fail if os.environ.get("CI") else pytest.skip)(
            "MLflow's server is not in .cache/mlflow: this was NOT tested (make .cache/mlflow/ready)"
        )
    port = free_port()
    command = [str(PYTHON), "-P", str(Path(__file__).with_name("mlflow_server.py"))]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            [*command, f"sqlite:///{folder}/runs.db", f"{folder}/artifacts", str(port)],
            env=environment, stdout=log, stderr=log,
        )  # fmt: skip
    try:
        wait_for(lambda: answers(port), "MLflow server", lambda: process.poll() is not None)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


def answers(port: int) -> bool:
    """Does a server answer there?"""
    try:
        return bool(ask(f"http://127.0.0.1:{port}", "experiments/get?experiment_id=0"))
    except OSError:
        return False


def ask(server: str, what: str, **values: Any) -> Any:
    """MLflow's REST interface."""
    request = urllib.request.Request(f"{server}/api/2.0/mlflow/{what}", json.dumps(values).encode() if values else None)
    request.add_header("Content-Type", "application/json")
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)
