"""Checkpoints are whole or passed over, whatever happens to the process or the disk."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from conftest import SOURCE

from gaudi3_scale.checkpoint import CheckpointStore, DamagedCheckpointError

STATE = {"weights": torch.arange(5000.0), "step": 1}


def truncate(path: Path) -> None:
    """Lose the second half."""
    os.truncate(path / "state.pt", (path / "state.pt").stat().st_size // 2)


def flip(path: Path) -> None:
    """Change one bit."""
    data = bytearray((path / "state.pt").read_bytes())
    data[len(data) // 2] ^= 1
    (path / "state.pt").write_bytes(data)


def forget(path: Path) -> None:
    """Lose the commit marker."""
    (path / "manifest.json").unlink()


def lose(path: Path) -> None:
    """Lose the content."""
    (path / "state.pt").unlink()


def misname(path: Path) -> None:
    """Put another step's checkpoint in its place."""
    (path / "manifest.json").write_text((path / "manifest.json").read_text().replace('"step": 20', '"step": 10'))


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (truncate, r"state.pt has \d+ bytes instead of \d+"),
        (flip, "the content of state.pt has changed"),
        (forget, r"its manifest cannot be read \(FileNotFoundError\)"),
        (lose, r"state.pt cannot be read \(No such file or directory\)"),
        (misname, "its manifest describes something else"),
    ],
)
def test_a_damaged_newest_checkpoint_is_passed_over_with_its_reason(
    damage: Callable[[Path], None], reason: str, tmp_path: Path
) -> None:
    said: list[str] = []
    store = CheckpointStore(tmp_path, keep=2, say=said.append)
    store.save(10, STATE, {})
    newest = store.save(20, STATE, {})
    assert (found := store.newest()) is not None and found.step == 20 and said == []
    damage(newest.path)
    with pytest.raises(DamagedCheckpointError, match=reason):
        store.verify(20)
    assert (found := store.newest()) is not None and found.step == 10
    assert len(said) == 1 and said[0].startswith(f"checkpoint {newest.path} is damaged (")
    store.save(20, STATE, {})
    assert (found := store.newest()) is not None and found.step == 20


def test_only_the_newest_are_kept(tmp_path: Path) -> None:
    store = CheckpointStore(tmp_path, keep=2)
    for step in (5, 10, 15):
        store.save(step, STATE, {})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["step-00000010", "step-00000015"]


def test_what_is_loaded_is_what_was_saved(tmp_path: Path) -> None:
    loaded = CheckpointStore(tmp_path, keep=1).save(3, STATE, {"seed": 7}).load()
    assert torch.equal(loaded["weights"], torch.arange(5000.0))
    assert loaded["step"] == 1


SAVER = """
import sys, torch
from pathlib import Path
from gaudi3_scale.checkpoint import CheckpointStore
store = CheckpointStore(Path(sys.argv[1]), keep=2)
first = store.steps()[-1:] or [0]
for step in range(first[0] + 1, 10**6):
    store.save(step, {"step": step, "weights": torch.full((30000,), float(step))}, {})
    print(step, flush=True)
"""


def test_a_kill_at_any_instant_loses_nothing_that_was_committed(tmp_path: Path) -> None:
    chance = random.Random(0)
    for _ in range(4):
        process = subprocess.Popen(
            [sys.executable, "-c", SAVER, str(tmp_path)],
            env={**os.environ, "PYTHONPATH": str(SOURCE)},
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        first = process.stdout.readline()
        time.sleep(chance.uniform(0, 0.05))
        process.send_signal(signal.SIGKILL)
        committed = int((first + process.communicate()[0]).split()[-1])
        said: list[str] = []
        store = CheckpointStore(tmp_path, keep=2, say=said.append)
        newest = store.newest()
        assert newest is not None and newest.step >= committed and said == []
        assert newest.load()["weights"].tolist() == [float(newest.step)] * 30000
        store.clean()
        assert len(list(tmp_path.iterdir())) in (1, 2, 3)
        assert all(path.name.startswith("step-") for path in tmp_path.iterdir())
