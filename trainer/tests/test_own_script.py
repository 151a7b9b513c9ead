"""A script of the user's as a job: Lightning's names for Gaudi, status.json, and examples/own_script killed twice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import lightning.pytorch as pl
import pytest
import torch
from conftest import PACKAGES, QUIET, SIMULATOR, free_port, kill, wait_for, workers
from zygote import Client, Started

from gaudi3_scale import GaudiAccelerator, own_script
from gaudi3_scale.callbacks import StatusCallback
from gaudi3_scale.checkpoint import GaudiCheckpoint, Saver
from gaudi3_scale.errors import ConfigError, TrainerError
from gaudi3_scale.integration.strategies import GaudiSingleStrategy, GaudiStrategy, HabanaDDPStrategy
from gaudi3_scale.interruption import InterruptionCallback, Notice, Notices

ROOT = Path(__file__).resolve().parents[2]
REGISTRIES = """
for lightning in sys.argv[1:]:
    accelerators = importlib.import_module(lightning + ".accelerators")
    print(accelerators.AcceleratorRegistry["hpu"]["accelerator"].__name__)
"""


@pytest.mark.parametrize(
    ("imports", "lightnings"),
    [
        ("import gaudi3_scale.integration", ["lightning.pytorch"]),
        ("from gaudi3_scale.interruption import InterruptionCallback", ["lightning.pytorch"]),
        (
            "import pytorch_lightning, lightning.pytorch; from gaudi3_scale import GaudiAccelerator",
            ["pytorch_lightning", "lightning.pytorch"],
        ),
    ],
)
def test_hpu_is_a_gaudi_for_whoever_imports_a_name_for_a_trainer(imports: str, lightnings: list[str]) -> None:
    """By Lightning's registries; `import gaudi3_scale` alone imports nothing and changes how nothing is imported."""
    program = (
        "import importlib, sys\nfinders = list(sys.meta_path)\nimport gaudi3_scale\n"
        f"assert sys.meta_path == finders and 'torch' not in sys.modules\n{imports}\n{REGISTRIES}"
    )
    result = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program, *lightnings],
        env={**os.environ, "PYTHONPATH": PACKAGES}, text=True, capture_output=True, timeout=280, check=False,
    )  # fmt: skip
    assert result.stdout.split() == ["GaudiAccelerator"] * len(lightnings), result.stderr


class Line(pl.LightningModule):
    """The smallest module that learns, or fails at a step."""

    def __init__(self, fails: int = -1) -> None:
        super().__init__()
        self.net = torch.nn.Linear(2, 1)
        self.fails = fails

    def training_step(self, batch: torch.Tensor, batch_idx: int) -> torch.Tensor:
        if self.global_step == self.fails:
            raise ValueError("the data is odd\nand more of it")
        loss: torch.Tensor = self.net(batch).pow(2).mean()
        return loss

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=0.1)


LOADER = torch.utils.data.DataLoader(torch.rand(12, 2))


@pytest.mark.parametrize(
    ("started", "devices", "nodes", "kind"),
    [
        ({}, "auto", 1, GaudiSingleStrategy),
        ({}, 2, 1, HabanaDDPStrategy),
        ({}, 1, 2, HabanaDDPStrategy),
        ({"LOCAL_WORLD_SIZE": "3"}, "auto", 1, HabanaDDPStrategy),
    ],
)
@pytest.mark.parametrize("accelerator", ["object", "hpu"])
def test_lightnings_trainer_takes_our_strategy_and_as_many_devices_as_there_are_processes(
    accelerator: str,
    started: dict[str, str],
    devices: Any,
    nodes: int,
    kind: type,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in started.items():
        monkeypatch.setenv(name, value)
    if accelerator == "hpu":  # the CPU has to do, where there is no card
        monkeypatch.setattr("gaudi3_scale.integration.accelerator.available", lambda device: 8)
        monkeypatch.setattr("gaudi3_scale.integration.accelerator.index_of", lambda *_: 0)
    wanted: Any = GaudiAccelerator("cpu") if accelerator == "object" else "hpu"
    trainer = pl.Trainer(accelerator=wanted, devices=devices, num_nodes=nodes, max_steps=1, **QUIET)
    count = int(started.get("LOCAL_WORLD_SIZE", devices if devices != "auto" else 8 if accelerator == "hpu" else 1))
    assert trainer.num_devices == count
    assert type(trainer.strategy) is (HabanaDDPStrategy if count * nodes > 1 else kind)
    assert isinstance(trainer.accelerator, GaudiAccelerator)


def test_one_process_is_really_trained_on_the_accelerator() -> None:
    trainer = pl.Trainer(accelerator=GaudiAccelerator("cpu"), max_steps=1, **QUIET)
    trainer.fit(Line(), LOADER)
    assert isinstance(trainer.strategy, GaudiStrategy) and trainer.global_step == 1


def test_other_accelerators_are_left_to_lightning() -> None:
    assert type(pl.Trainer(accelerator="cpu", devices=1, **QUIET).strategy).__name__ == "SingleDeviceStrategy"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the job that this process is."""
    monkeypatch.setenv(own_script.DIRECTORY, str(tmp_path / "job"))
    (tmp_path / "job").mkdir()
    return tmp_path / "job"


def status(folder: Path) -> dict[str, Any]:
    """The content of status.json."""
    found: dict[str, Any] = json.loads((folder / "status.json").read_text())
    return found


def fit(module: pl.LightningModule, *callbacks: pl.Callback, steps: int = 6, **options: Any) -> None:
    pl.Trainer(accelerator="cpu", max_steps=steps, max_epochs=-1, callbacks=list(callbacks), **QUIET, **options).fit(
        module, LOADER
    )


def test_a_job_tells_of_its_training_and_its_checkpoints(folder: Path) -> None:
    fit(Line(), GaudiCheckpoint(every_n_steps=2), steps=4)
    first = status(folder)["first_loss"]
    fit(Line(), GaudiCheckpoint(every_n_steps=2))
    found = status(folder)
    expected = {"state": "finished", "step": 6, "max_steps": 6, "world_size": 1, "device": "cpu", "simulated": False}
    expected |= {"checkpoint": str(folder / "checkpoints/step-00000006"), "checkpoint_step": 6, "resumed_from_step": 4}
    assert {key: found[key] for key in expected} == expected
    assert found["loss"] > 0 and found["first_loss"] == first and found["tokens"] is None and found["error"] is None


def test_a_launcher_has_the_last_word(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GAUDI3_LAUNCH_LEAVING", str(folder / "leaving"))
    fit(Line(), InterruptionCallback())
    assert (status(folder)["state"], status(folder)["step"]) == ("running", 6)


def test_a_failure_is_told_in_one_line(folder: Path) -> None:
    with pytest.raises(ValueError, match="the data is odd"):
        fit(Line(fails=3), InterruptionCallback())
    found = status(folder)
    assert (found["state"], found["step"], found["error"]) == ("failed", 3, "ValueError: the data is odd")


def test_what_fails_before_training_is_told_too(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: Any) -> None:
        raise TrainerError("No card could be taken into use.")

    monkeypatch.setattr("gaudi3_scale.integration.strategies.take", refuse)
    with pytest.raises(TrainerError):
        pl.Trainer(accelerator=GaudiAccelerator("cpu"), callbacks=[InterruptionCallback()], **QUIET).fit(Line(), LOADER)
    found = status(folder)
    assert (found["state"], found["step"], found["error"]) == ("failed", 0, "No card could be taken into use.")


def test_without_a_job_nothing_is_written_unless_it_is_asked_for(tmp_path: Path) -> None:
    fit(Line(), GaudiCheckpoint(tmp_path / "checkpoints", every_n_steps=6), default_root_dir=tmp_path)
    assert not (tmp_path / "status.json").exists()
    fit(Line(), StatusCallback(tmp_path / "mine"))
    assert status(tmp_path / "mine")["state"] == "finished"


def test_an_end_that_nobody_knows_is_no_number(folder: Path) -> None:
    class Stop(pl.Callback):
        def on_train_batch_end(self, trainer: pl.Trainer, *arguments: Any) -> None:
            trainer.should_stop = trainer.global_step == 3

    fit(Line(), InterruptionCallback(), Stop(), steps=-1)
    assert (status(folder)["step"], status(folder)["max_steps"]) == (3, None)


def test_the_job_says_whom_to_listen_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(own_script.INTERRUPTION, '{"sources": ["aws"], "poll": 1}')
    assert (InterruptionCallback()._config.sources, InterruptionCallback(poll=2)._config.poll) == (["aws"], 2)
    monkeypatch.setenv(own_script.INTERRUPTION, "[1]")
    with pytest.raises(ConfigError, match=r"^GAUDI3_INTERRUPTION is '\[1\]': give the section `interruption`"):
        InterruptionCallback()


class Notify(pl.Callback):
    """Tells the process to leave while it makes step 5."""

    def __init__(self, interruption: InterruptionCallback, seconds: float) -> None:
        self._interruption = interruption
        self._seconds = seconds

    def on_train_batch_start(self, trainer: pl.Trainer, *arguments: Any) -> None:
        if trainer.global_step == 4:
            assert self._interruption._notices is not None
            self._interruption._notices.tell(Notice("aws", "AWS will terminate", time.time() + self._seconds))


@pytest.mark.parametrize(
    ("seconds", "kept", "words"),
    [
        (500, 5, "AWS will terminate (rank 0): the checkpoint of step 5 is committed"),
        (9, 4, " s are left and a checkpoint takes 60.0 s, so step 5 is not saved, and the job goes on from step 4"),
    ],
)
def test_a_script_leaves_and_ends_with_the_checkpoints_that_the_job_would_have(
    seconds: float, kept: int, words: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A last checkpoint only if there is time for it, and one after the last step though it is not due."""
    monkeypatch.setattr(Saver, "estimate", lambda self: 60.0)
    checkpoint = GaudiCheckpoint(every_n_steps=2)
    interruption = InterruptionCallback(save=checkpoint.save)
    listening: list[Notices] = []
    start = Notices.start
    monkeypatch.setattr(Notices, "start", lambda self: listening.append(self) or start(self))
    with pytest.raises(SystemExit) as left:
        fit(Line(), checkpoint, interruption, Notify(interruption, seconds), steps=7)
    listening[0].stop()  # this process does not end, and the deadline would end it
    found = status(folder)
    assert (left.value.code, found["state"], found["step"], found["checkpoint_step"]) == (75, "interrupted", 5, kept)
    assert words in found["interruption"]
    checkpoint = GaudiCheckpoint(every_n_steps=2)
    fit(Line(), checkpoint, InterruptionCallback(save=checkpoint), steps=7)
    found = status(folder)
    expected = ("finished", 7, kept, 7)
    assert tuple(found[key] for key in ("state", "step", "resumed_from_step", "checkpoint_step")) == expected


class Example:
    """examples/own_script/train.py on two simulated cards under the launcher, as its unit starts it."""

    def __init__(self, client: Client, folder: Path, text: Path) -> None:
        self._client = client
        self.folder = folder
        self._text = text
        self._starts = 0

    def start(self) -> Started:
        self._starts += 1
        script = ROOT / "examples/own_script/train.py"
        arguments = [f"--status={self.folder / 'status.json'}", "--say-ending", "--rdzv-backend=c10d"]
        arguments += [f"--rdzv-endpoint=127.0.0.1:{free_port()}", "--rdzv-id=own", "--nproc-per-node=2"]
        arguments += ["--max-restarts=1", "--monitor-interval=0.1", "--no-python", str(script)]
        environment = {own_script.DIRECTORY: str(self.folder)}
        words = ["--steps=150", "--save-every=10", f"--text={self._text}"]
        return self._client.start("launch", [*arguments, *words], environment, self.folder / f"log-{self._starts}")

    def saved(self) -> int:
        """The newest committed checkpoint."""
        return max((int(path.name[5:]) for path in (self.folder / "checkpoints").glob("step-*")), default=0)

    def reaches(self, step: int, started: Started) -> None:
        wait_for(lambda: self.saved() >= step, f"checkpoint {step}", lambda: started.poll() is not None)


@pytest.mark.skipif(not SIMULATOR.is_dir(), reason="the simulated hpu is not built: `make hpu` builds it")
def test_the_example_goes_on_after_a_kill_and_after_a_signal(cards: Client, tmp_path: Path, text: Path) -> None:
    example = Example(cards, tmp_path, text)
    started = example.start()
    example.reaches(10, started)
    first = workers(started.pid)
    kill(first[1], signal.SIGKILL)  # the launcher starts both again, and the card of this one resets
    wait_for(
        lambda: status(tmp_path).get("resumed_from_step") is not None, "resumption", lambda: started.poll() is not None
    )
    killed_at = status(tmp_path)["resumed_from_step"]
    assert killed_at >= 10 and set(workers(started.pid)).isdisjoint(first)
    example.reaches(killed_at + 10, started)
    kill(started.pid, signal.SIGTERM)
    assert started.wait(60) == 75, started.output()
    left = status(tmp_path)
    assert (left["state"], left["checkpoint_step"]) == ("interrupted", left["step"]), started.output()
    assert left["step"] > killed_at and "SIGTERM" in left["interruption"]
    again = example.start()
    assert again.wait(120) == 0, again.output()
    found = status(tmp_path)
    expected = {"state": "finished", "step": 150, "max_steps": 150, "world_size": 2, "device": "hpu", "simulated": True}
    expected |= {"resumed_from_step": left["step"], "error": None}
    assert {key: found[key] for key in expected} == expected
    assert found["loss"] < found["first_loss"] and found["goodput"] is not None and found["tokens_per_second"] > 0
    assert again.output().count("trained to step 150") == 1
