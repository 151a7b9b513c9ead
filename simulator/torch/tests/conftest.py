"""The suite runs on the built device: the one on PYTHONPATH, else the checkout's (`make hpu`)."""

from __future__ import annotations

import atexit
import gc
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
BUILT = HERE.parents[2] / ".cache" / "hpu"

os.environ["OMP_NUM_THREADS"] = "1"
# Each run is a machine of its own, whose cards nobody else takes.
MACHINE = tempfile.mkdtemp(prefix="hpu-cards-")
atexit.register(shutil.rmtree, MACHINE, ignore_errors=True)
os.environ["GAUDI3_HPU_SIMULATOR_CARDS"] = MACHINE
if importlib.util.find_spec("habana_frameworks") is None:
    if not (BUILT / "habana_frameworks").is_dir():
        pytest.exit(f"The simulated hpu device is not built in {BUILT}: run 'make hpu' first.", returncode=1)
    sys.path.insert(0, str(BUILT))
sys.path.insert(0, str(HERE))  # helpers are found under every import mode of pytest

import torch  # noqa: E402  # loads the device
from forks import Forks  # noqa: E402

torch.set_num_threads(1)


def environment(**more: str) -> dict[str, str]:
    """For a process of its own that loads the device."""
    path = os.pathsep.join(entry for entry in sys.path if entry and Path(entry).is_dir())
    return {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1", **more}


@pytest.fixture(scope="session")
def forks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forks]:
    """What starts processes that have torch already."""
    forks = Forks(environment(), tmp_path_factory.mktemp("forks"))
    yield forks
    forks.close()


@pytest.fixture
def run(forks: Forks) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run a piece of Python in a process of its own, which loads the device in some environment."""
    return lambda code, **more: forks.start(code, environment(**more)).wait()


@pytest.fixture
def fresh() -> Callable[..., subprocess.CompletedProcess[str]]:
    """As `run`, in a process that has imported nothing: for what imports do, as starting one takes over a second."""

    def fresh(code: str, **more: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", code]
        return subprocess.run(
            command, env=environment(**more), capture_output=True, text=True, timeout=300, check=False
        )

    return fresh


@pytest.fixture
def clean() -> Iterator[None]:
    """A test leaves on the card what was there before it.

    Objects that refer to each other are collected only where the bytes differ: it takes half a second where
    torch.compile and transformers are loaded.
    """
    if torch.hpu.memory_allocated():
        gc.collect()
    before = torch.hpu.memory_allocated()
    yield
    if torch.hpu.memory_allocated() == before:
        return
    gc.collect()
    # The thread of the backward pass drops its last tensors a moment after backward() has returned.
    deadline = time.monotonic() + 5
    while torch.hpu.memory_allocated() != before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert torch.hpu.memory_allocated() == before
