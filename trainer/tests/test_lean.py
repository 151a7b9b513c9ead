"""What is taken out of Lightning's loop changes nothing that a hook sees; and garbage waits for the end of a step."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import lightning.pytorch as pl
import pytest
import torch
from lightning.pytorch.profilers import Profiler
from lightning.pytorch.trainer import call
from torch import nn

from gaudi3_scale import lean
from gaudi3_scale.internals import InternalChangedError

STEPS = 12


class Module(pl.LightningModule):
    """Learns a line, and tells which hook is running."""

    def __init__(self, work: Callable[[], object] = lambda: None) -> None:
        super().__init__()
        torch.manual_seed(7)
        self.line = nn.Linear(4, 1)
        self.work = work
        self.inside = False
        self.losses: list[float] = []
        self.seen: list[str | None] = []

    def training_step(self, batch: torch.Tensor, batch_idx: int) -> torch.Tensor:
        self.inside = True
        self.seen.append(self._current_fx_name)
        self.work()
        loss = self.line(batch).square().mean()
        self.losses.append(loss.item())
        return loss

    def on_before_optimizer_step(self, optimizer: Any) -> None:
        self.seen.append(self._current_fx_name)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=0.1)


class StepEnds(pl.Callback):
    """Comes first, so that all callbacks after it run between two steps."""

    def on_train_batch_end(self, trainer: pl.Trainer, module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        module.inside = False


class Recorder(pl.Callback):
    """Notes every hook that a callback has, with what Lightning says is running."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str | None, tuple[Any, ...]]] = []
        for name in (hook for hook in vars(pl.Callback) if hook.startswith(("on_train", "on_before", "on_after"))):
            setattr(self, name, self._note(name))

    def _note(self, name: str) -> Callable[..., None]:
        def noted(trainer: pl.Trainer, module: pl.LightningModule, *rest: Any) -> None:
            self.calls.append((name, module._current_fx_name, tuple(r for r in rest if isinstance(r, int))))

        return noted


def batches() -> Iterator[torch.Tensor]:
    """Endless."""
    generator = torch.Generator().manual_seed(3)
    while True:
        yield torch.randn(2, 4, generator=generator)


class Batches:
    """As Lightning wants them."""

    def __iter__(self) -> Iterator[torch.Tensor]:
        return batches()


def trainer(tmp_path: Path, *callbacks: pl.Callback, **more: Any) -> pl.Trainer:
    """One that does as little besides as a job's."""
    settings: dict[str, Any] = {
        "accelerator": "cpu",
        "max_epochs": -1,
        "max_steps": STEPS,
        "logger": False,
        "enable_checkpointing": False,
        "enable_progress_bar": False,
        "enable_model_summary": False,
        "accumulate_grad_batches": 2,
        "gradient_clip_val": 1.0,
        "default_root_dir": tmp_path,
        "callbacks": list(callbacks),
    }
    return pl.Trainer(**settings | more)


def test_every_hook_sees_the_same(tmp_path: Path) -> None:
    recorders, modules = [Recorder(), Recorder()], [Module(), Module()]
    for recorder, module, slimmed in zip(recorders, modules, (False, True), strict=True):
        one = trainer(tmp_path, recorder, pl.Callback())
        if slimmed:
            lean.quicken(one)
        one.fit(module, train_dataloaders=Batches())
        assert one.global_step == STEPS
    theirs, ours = recorders
    assert ours.calls == theirs.calls
    assert [call for call in ours.calls if call[0] == "on_train_batch_end"] == [
        ("on_train_batch_end", "on_train_batch_end", (index,)) for index in range(2 * STEPS)
    ]
    assert modules[0].losses == modules[1].losses and modules[0].seen == modules[1].seen
    assert torch.equal(modules[0].line.weight, modules[1].line.weight)


def test_a_callback_added_later_is_called(tmp_path: Path) -> None:
    recorder = Recorder()

    class Late(pl.Callback):
        def on_train_batch_start(self, trainer: pl.Trainer, module: Any, batch: Any, batch_idx: int) -> None:
            if batch_idx == 3:
                trainer.callbacks.append(recorder)

    one = trainer(tmp_path, Late())
    lean.quicken(one)
    one.fit(Module(), train_dataloaders=Batches())
    assert recorder.calls[0][0] == "on_before_backward"


class Counting(Profiler):
    """Counts the actions it is told."""

    def __init__(self) -> None:
        super().__init__()
        self.started: list[str] = []

    def start(self, action_name: str) -> None:
        self.started.append(action_name)

    def stop(self, action_name: str) -> None:
        """Nothing to do."""


@pytest.mark.parametrize("slimmed", [False, True])
def test_a_profiler_is_told_everything(tmp_path: Path, slimmed: bool) -> None:
    lean.quicken(trainer(tmp_path))  # some other trainer is quick: it must not matter
    profiler = Counting()
    one = trainer(tmp_path, Recorder(), profiler=profiler)
    if slimmed:
        lean.quicken(one)
    one.fit(Module(), train_dataloaders=Batches())
    assert profiler.started.count("[LightningModule]Module.optimizer_step") == STEPS
    assert profiler.started.count("[Callback]Recorder.on_train_batch_end") == 2 * STEPS


def test_another_lightning_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(call, "_call_strategy_hook", lambda trainer, hook_name, options: None)
    with pytest.raises(
        InternalChangedError, match=r"_call_strategy_hook with \(trainer, hook_name, options\) in place"
    ):
        lean.quicken(trainer(tmp_path))


def collections_inside(tmp_path: Path, *callbacks: pl.Callback) -> tuple[list[int], list[int]]:
    """Batches in whose middle, and batches after which, the oldest generation was collected."""

    class Node:
        def __init__(self) -> None:
            self.me = self

    kept: list[Any] = []
    module = Module(lambda: kept.append([[Node()] for _ in range(4000)]))
    inside: list[int] = []
    after: list[int] = []

    def noticed(phase: str, info: dict[str, int]) -> None:
        if phase == "start" and info["generation"] == 2 and module.losses:
            (inside if module.inside else after).append(len(module.losses))

    one = trainer(tmp_path, StepEnds(), *callbacks, accumulate_grad_batches=1, max_steps=30)
    gc.collect()
    gc.freeze()
    gc.callbacks.append(noticed)
    try:
        one.fit(module, train_dataloaders=Batches())
    finally:
        gc.callbacks.remove(noticed)
        gc.unfreeze()
    return inside, after


def test_garbage_is_collected_between_steps_only(tmp_path: Path) -> None:
    assert collections_inside(tmp_path)[0], "the collector was to be due in the middle of a step"
    inside, after = collections_inside(tmp_path, lean.CollectGarbage(every=10))
    assert (inside, after[:3]) == ([], [10, 20, 30])
    assert gc.isenabled()


def test_the_collector_is_given_back_after_a_failure(tmp_path: Path) -> None:
    def fail() -> None:
        assert not gc.isenabled()
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        trainer(tmp_path, lean.CollectGarbage()).fit(Module(fail), train_dataloaders=Batches())
    assert gc.isenabled()
