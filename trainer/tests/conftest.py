"""Helpers to run `gaudi3-train` as a user does: as processes, alone or under torchrun."""

from __future__ import annotations

import atexit
import gc
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from zygote import Client, Started

    Process = subprocess.Popen[str] | Started

# The simulated cards of this run of the tests are not those of another one, which may hold all of them.
os.environ["GAUDI3_HPU_SIMULATOR_CARDS"] = tempfile.mkdtemp(prefix="gaudi3-cards-")
atexit.register(shutil.rmtree, os.environ["GAUDI3_HPU_SIMULATOR_CARDS"], ignore_errors=True)
os.environ.setdefault("GAUDI3_HPU_SIMULATOR_RESET", "1")  # seconds for which a card resets after its holder was killed

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "trainer" / "src"
SOURCES = (SOURCE, *(ROOT / name / "src" for name in ("benchmark-tool", "doctor", "migration", "watch")))
"""All that the trainer's wheel has: its package, and those that lie beside it."""
PACKAGES = os.pathsep.join(map(str, SOURCES))
"""The same for PYTHONPATH."""
SIMULATOR = ROOT / ".cache" / "hpu"
"""The simulated device, where it is built."""
SMALL = (
    "device=cpu",
    "model.hidden_size=64",
    "model.intermediate_size=128",
    "model.layers=2",
    "model.sequence_length=64",
    "train.max_steps=60",
    "train.log_every=3",
    "train.warmup_steps=4",
    "train.threads=1",
    "train.micro_batch_size=12",
    "train.collective_timeout=5",
    "checkpoint.every=5",
    "data.validation_samples=16",
    "metrics.enabled=false",
)
QUIET: dict[str, Any] = {
    "logger": False,
    "enable_checkpointing": False,
    "enable_progress_bar": False,
    "enable_model_summary": False,
}
"""For a Trainer that neither says nor keeps anything."""
REPEATING = ("test_elastic", "test_hung_cards", "test_interruption", "test_kill_matrix")
"""Test files whose jobs are not traced: they do again, at other instants, what others' jobs do."""


def pytest_collection_finish() -> None:
    """Each collection of garbage would go through all objects of torch and transformers again."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Iterator[None]:
    """Commands that are called in this process choose the plugins of its torch; the next test's processes do not."""
    names = ("TORCH_DEVICE_BACKEND_AUTOLOAD", "PT_HPU_LAZY_MODE")
    before = {name: os.environ.get(name) for name in names}
    try:
        return (yield)
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


def zygote(traced: bool = True, cards: bool = False) -> Client:
    """What starts processes that have imported everything already, with `cards` the simulated device too.

    There is one of each kind for all tests, whose processes are traced or not.
    """
    from zygote import Client

    kind = (traced, cards)
    if kind not in _ZYGOTES:
        _ZYGOTES[kind] = Client(*([SIMULATOR] if cards else []), traced=traced)
        atexit.register(_ZYGOTES[kind].close)
    return _ZYGOTES[kind]


_ZYGOTES: dict[tuple[bool, bool], Client] = {}


class Job:
    """A job with its output directories, one per node.

    Its processes are forked from a warm one. With ``fresh`` each is a new interpreter, as a user's are.
    """

    def __init__(
        self, folder: Path, text: Path, nodes: int = 1, processes: int = 1, restarts: int = 0, fresh: bool = False
    ) -> None:
        self.fresh = fresh
        self.folder = folder
        self.text = text
        self.nodes = nodes
        self.processes = processes
        self.restarts = restarts
        self._starts = 0
        folder.mkdir(parents=True)

    def node(self, number: int = 0) -> Path:
        """The output directory of a node."""
        return self.folder / f"node{number}"

    def start(self, *overrides: str) -> list[Process]:
        """Start the job's launchers, each in a process group of its own."""
        port = free_port()
        return [self._start(number, port, overrides) for number in range(self.nodes)]

    def run(self, *overrides: str, code: int = 0) -> str:
        """Run to the end; the output of the first node."""
        launchers = self.start(*overrides)
        outputs = [launcher.communicate(timeout=120)[0] for launcher in launchers]
        assert [launcher.returncode for launcher in launchers] == [code] * self.nodes, "\n".join(outputs)
        return outputs[0]

    @contextmanager
    def running(self, *overrides: str, lines: int, saved: int = 0) -> Iterator[list[Process]]:
        """The job once every node has so many logged lines and this step's checkpoint; killed with -9 on leaving."""
        launchers = self.start(*overrides)
        try:
            wait_for(
                lambda: all(
                    len(self.losses(n)) >= lines and max(self.steps(n), default=0) >= saved for n in range(self.nodes)
                ),
                f"{lines} logged lines and a checkpoint of step {saved}",
                lambda: any(launcher.poll() is not None for launcher in launchers),
            )
            yield launchers
        finally:
            for launcher in launchers:
                for pid in [*workers(launcher.pid), launcher.pid]:
                    kill(pid, signal.SIGKILL)
            for launcher in launchers:
                launcher.communicate()

    def losses(self, node: int = 0) -> list[tuple[int, float]]:
        """Step and loss of every line of metrics.jsonl."""
        path = self.node(node) / "metrics.jsonl"
        lines = path.read_text().splitlines(keepends=True) if path.exists() else []
        parsed = [json.loads(line) for line in lines if line.endswith("\n")]
        return [(line["step"], line["loss"]) for line in parsed]

    def status(self, node: int = 0) -> dict[str, Any]:
        """The content of status.json."""
        status: dict[str, Any] = json.loads((self.node(node) / "status.json").read_text())
        return status

    def steps(self, node: int = 0) -> list[int]:
        """Steps of the committed checkpoints."""
        found = (self.node(node) / "checkpoints").glob("step-*")
        return sorted(int(path.name.removeprefix("step-")) for path in found)

    def state(self, step: int, node: int = 0) -> dict[str, Any]:
        """The content of a checkpoint."""
        from gaudi3_scale.checkpoint.fetch import read_all

        return read_all(self.node(node) / "checkpoints" / f"step-{step:08d}")

    def _start(self, node: int, port: int, overrides: tuple[str, ...]) -> Process:
        settings = ["fit", *SMALL, f"data.source={self.text}", f"output_dir={self.node(node)}", *overrides]
        torchrun = [f"--nnodes={self.nodes}", f"--nproc-per-node={self.processes}", "--rdzv-backend=c10d"]
        torchrun += [f"--rdzv-endpoint=127.0.0.1:{port}", "--rdzv-id=test", f"--max-restarts={self.restarts}"]
        torchrun += ["--log-dir", str(self.folder), "-m", "gaudi3_scale"]
        alone = self.nodes * self.processes == 1
        if not self.fresh:
            self._starts += 1
            log = self.folder / f"output-{node}-{self._starts}"
            traced = not any(f"/{name}.py" in os.environ.get("PYTEST_CURRENT_TEST", "") for name in REPEATING)
            if alone:
                return zygote(traced).start("worker", settings, {}, log)
            return zygote(traced).start("torchrun", [*torchrun, *settings], {}, log)
        command = ["-m", "gaudi3_scale"] if alone else ["-m", "torch.distributed.run", *torchrun]
        return subprocess.Popen(
            [sys.executable, *command, *settings],
            env={**os.environ, "PYTHONPATH": PACKAGES},
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )


def free_port() -> int:
    """A port nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def workers(launcher: int) -> list[int]:
    """The children of a process, in the order they were started."""
    path = Path(f"/proc/{launcher}/task/{launcher}/children")
    return [int(pid) for pid in path.read_text().split()] if path.exists() else []


def kill(pid: int, number: signal.Signals) -> None:
    """Send a signal to a process that may be gone."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return


def wait_for(
    condition: Callable[[], bool], what: str, dead: Callable[[], bool] = lambda: False, seconds: float = 90
) -> float:
    """Wait until something is true; the seconds it took."""
    began = time.monotonic()
    while not condition():
        assert not dead(), f"ended before there was {what}"
        assert time.monotonic() - began < seconds, f"no {what} within {seconds} s"
        time.sleep(0.01)
    return time.monotonic() - began


def assert_same(one: Any, other: Any, where: str = "state") -> None:
    """Equal to the last bit, through dictionaries, lists and tensors."""
    import torch

    assert type(one) is type(other), where
    if isinstance(one, torch.Tensor):
        assert one.dtype == other.dtype and torch.equal(one, other), where
    elif isinstance(one, dict):
        assert list(one) == list(other), where
        for key in one:
            assert_same(one[key], other[key], f"{where}.{key}")
    elif isinstance(one, list | tuple):
        assert len(one) == len(other), where
        for number, (a, b) in enumerate(zip(one, other, strict=True)):
            assert_same(a, b, f"{where}[{number}]")
    else:
        assert one == other, where


@pytest.fixture(scope="session")
def warm() -> Client:
    """What starts processes that have imported everything already."""
    return zygote()


@pytest.fixture(scope="session")
def client() -> Client:
    """The same for jobs that are not traced."""
    return zygote(traced=False)


@pytest.fixture(scope="session")
def cards() -> Client:
    """The same for processes that have the simulated device."""
    return zygote(cards=True)


@pytest.fixture(scope="session")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small text to learn, so that its collection costs no time."""
    path = tmp_path_factory.mktemp("text") / "text.txt"
    lines = (f"{n} squared is {n * n}, and its half is {n / 2}.\n" for n in range(4000))
    path.write_text("".join(lines))
    return path


@pytest.fixture(scope="session")
def reference(tmp_path_factory: pytest.TempPathFactory, text: Path) -> tuple[Job, str]:
    """An uninterrupted job of one process, and what it printed."""
    job = Job(tmp_path_factory.mktemp("reference") / "job", text, fresh=True)
    return job, job.run()
