"""A collective on the cards that waits for good: the processes that wait end in bounded time."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest
from conftest import SIMULATOR, SMALL, free_port, kill, wait_for
from zygote import Client, Started

HERE = Path(__file__).parent
BOUND, SLOW = 6, 9
"""Seconds of `train.collective_timeout`, and of a step that takes longer."""


def job(client: Client, folder: Path, text: Path, stop: int, slow: int, *settings: str) -> Started:
    """Two processes on two simulated cards."""
    arguments = ["-m", "torch.distributed.run", "--nproc-per-node=2", "--rdzv-backend=c10d", "--monitor-interval=0.1"]
    arguments += ["--rdzv-id=hung", f"--rdzv-endpoint=127.0.0.1:{free_port()}", str(HERE / "hung_job.py"), "fit"]
    arguments += [*SMALL, "device=hpu", f"data.source={text}", f"output_dir={folder / 'out'}", "train.log_every=1"]
    arguments += ["train.micro_batch_size=2", "model.hidden_size=32", "model.intermediate_size=64", "train.mode=eager"]
    arguments += [f"train.collective_timeout={BOUND}", "train.start_timeout=90", "train.max_steps=20", *settings]
    environment = {
        "TORCH_ELASTIC_SHUTDOWN_TIMEOUT": "2",
        "STOP_IN": str(folder),
        "STOP_STEP": str(stop),
        "SLOW_STEP": str(slow),
        "SLOW_SECONDS": str(SLOW),
    }
    return client.start("python", arguments, environment, folder / "log")


@pytest.mark.skipif(not SIMULATOR.is_dir(), reason="the simulated hpu is not built: `make hpu` builds it")
@pytest.mark.parametrize(
    ("strategy", "slow", "stop"), [pytest.param("habana_ddp", 1, 4, marks=pytest.mark.proof), ("habana_fsdp", 0, 2)]
)
def test_a_stopped_process_ends_the_job_within_the_bound_and_a_slow_first_step_does_not(
    strategy: str, slow: int, stop: int, cards: Client, text: Path, tmp_path: Path
) -> None:
    running = job(cards, tmp_path, text, stop, slow, f"train.strategy={strategy}")
    try:
        wait_for((tmp_path / "stopped").exists, "stop", lambda: running.poll() is not None, seconds=180)
        seconds = wait_for(lambda: running.poll() is not None, "end", seconds=BOUND + 40)
    finally:
        kill(running.pid, signal.SIGTERM)
        running.wait(30)
    log = (tmp_path / "log").read_text()
    assert running.returncode == 1, log
    status = json.loads((tmp_path / "out" / "status.json").read_text())
    assert status["state"] == "failed" and status["step"] == stop - 1, log
    assert status["error"].startswith("Rank 0 got no further for "), log
    assert f"gaudi3-train: {status['error']}\n" in log
    assert seconds > BOUND - 2, log
    assert "Set timeout" not in log  # torch warns of a group that takes none
