"""How a job leaves: agreed on by all ranks, with a last checkpoint if there is time; in one's own Trainer, too."""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from conftest import assert_same, free_port, kill, wait_for, workers
from zygote import Client, Started

from gaudi3_scale.errors import TrainerError
from gaudi3_scale.interruption import Notice
from gaudi3_scale.interruption.last_checkpoint import save_last


class Recorder:
    """A saver that takes some seconds of a clock of its own."""

    def __init__(self, newest: int | None, estimate: float | None, durable: bool = True) -> None:
        self.newest = newest
        self._estimate = estimate
        self.durable = durable
        self.calls: list[Any] = []

    def save(self, step: int, last: bool = False) -> None:
        self.calls.append(("save", step, last))

    def wait(self, deadline: float | None) -> bool:
        return self.durable

    def close(self, deadline: float | None) -> bool:
        return "upload" not in vars(self)

    def estimate(self) -> float | None:
        return self._estimate


def alone(value: Any) -> list[Any]:
    """What a single rank gathers."""
    return [value]


def notice(left: float | None) -> Notice:
    """A notice with so many seconds left."""
    return Notice("aws", "AWS will terminate", None if left is None else time.time() + left)


@pytest.mark.parametrize(
    ("saver", "left", "saved", "words"),
    [
        (Recorder(20, 4.0), 60.0, True, "AWS will terminate (rank 0): the checkpoint of step 23 is committed"),
        (Recorder(None, None), None, True, "AWS will terminate (rank 0): the checkpoint of step 23 is committed"),
        (Recorder(23, 4.0), 1.0, False, "AWS will terminate (rank 0): the checkpoint of step 23 is committed"),
        (
            Recorder(20, 4.0),
            5.05,
            False,
            "AWS will terminate (rank 0): 5 s are left and a checkpoint takes 4.0 s, so step 23 is not saved, and the "
            "job goes on from step 20",
        ),
        # Nothing to fall back on, so nothing to lose.
        (Recorder(None, 4.0), 5.05, True, "AWS will terminate (rank 0): the checkpoint of step 23 is committed"),
        (
            Recorder(20, None, durable=False),
            60.0,
            False,
            "AWS will terminate (rank 0): 60 s are left and an earlier checkpoint is not done yet, so step 23 is "
            "not saved, and the job goes on from the newest committed checkpoint",
        ),
    ],
)
def test_a_last_checkpoint_is_begun_only_if_there_is_time_for_it(
    saver: Recorder, left: float | None, saved: bool, words: str
) -> None:
    last = save_last(saver, 23, alone, notice(left))
    assert (
        re.sub(r"(\d+)\.\d s are left", lambda m: f"{round(float(m[0].split()[0]))} s are left", last.reason) == words
    )
    assert saver.calls == ([("save", 23, True)] if saved else [])


def test_ranks_decide_by_the_least_time_and_the_slowest_disk() -> None:
    answers: list[Callable[[Any], list[Any]]] = [
        lambda mine: [Notice("peer", "another process was told to leave", time.time() + 9.0), mine],
        lambda mine: [9.0, mine],
        lambda mine: [mine, mine],
        lambda mine: [5.0, mine],
        lambda mine: [7.0, mine],
    ]
    saver = Recorder(20, 0.1)
    last = save_last(saver, 23, lambda value: answers.pop(0)(value), notice(60.0))
    assert (last.rank, last.notice.reason, last.saved) == (1, "AWS will terminate", False)
    assert "7.0 s are left and a checkpoint takes 5.0 s" in last.reason
    assert saver.calls == [] and answers == []


def test_a_save_that_fails_on_one_rank_fails_on_all() -> None:
    def gather(value: Any) -> list[Any]:
        return [value, (False, TrainerError("The disk is full."))] if isinstance(value, tuple) else [value, value]

    with pytest.raises(TrainerError, match=r"^The disk is full\.$"):
        save_last(Recorder(20, 1.0), 23, gather, notice(60.0))


def start(client: Client, folder: Path, *words: str) -> Started:
    """Two ranks of `own_trainer.py` under the launcher."""
    arguments = [f"--rdzv-endpoint=127.0.0.1:{free_port()}", "--rdzv-backend=c10d", "--rdzv-id=test"]
    arguments += ["--nproc-per-node=2", "--monitor-interval=0.1", "--no-python", "own_trainer", str(folder), *words]
    return client.start("launch", arguments, {}, folder / "log")


def held(folder: Path, phase: str, started: Started) -> list[int]:
    """Wait until rank 1 is held; the workers."""
    wait_for(lambda: (folder / "held").exists(), phase, lambda: started.poll() is not None)
    return workers(started.pid)


def test_a_signal_to_one_rank_hangs_lightnings_own_handling(client: Client, tmp_path: Path) -> None:
    """What this is for: if it fails, Lightning has learnt it, and the callback may do less."""
    (tmp_path / "hold-synchronisation").touch()
    started = start(client, tmp_path, "plain")
    pids = held(tmp_path, "synchronisation", started)
    kill(pids[1], signal.SIGTERM)
    time.sleep(0.3)
    (tmp_path / "go").touch()
    time.sleep(8)
    assert [pid for pid in pids if Path(f"/proc/{pid}").exists()] == pids
    for pid in [*pids, started.pid]:
        kill(pid, signal.SIGKILL)


@pytest.fixture(scope="module")
def finished(client: Client, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Steps and weights of a run to which nothing happened."""
    folder = tmp_path_factory.mktemp("own")
    started = start(client, folder)
    assert started.wait(60) == 0, started.output()
    return torch.load(folder / "result.pt")


@pytest.mark.parametrize(("phase", "step"), [("training", 3), ("synchronisation", 4), ("validation", 2)])
def test_a_signal_to_one_rank_ends_ones_own_trainer_at_the_same_step_and_it_goes_on(
    phase: str, step: int, client: Client, finished: Any, tmp_path: Path
) -> None:
    (tmp_path / f"hold-{phase}").touch()
    started = start(client, tmp_path)
    pids = held(tmp_path, phase, started)
    kill(pids[1], signal.SIGTERM)
    time.sleep(0.3)
    (tmp_path / "go").touch()
    assert started.wait(30) == 75, started.output()
    assert (
        f"Interrupted at step {step}, as SIGTERM was sent to this process (rank 1): the checkpoint of step {step} is "
        "committed.\n"
    ) in started.output()
    (tmp_path / f"hold-{phase}").unlink()
    again = start(client, tmp_path)
    assert again.wait(60) == 0, again.output()
    assert_same(torch.load(tmp_path / "result.pt"), finished)
