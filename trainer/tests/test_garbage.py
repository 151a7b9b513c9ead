"""Garbage of a training is collected between two steps, at the same steps on all ranks."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import lightning.pytorch as pl
import pytest
import torch
from conftest import QUIET
from torch import nn

from gaudi3_scale.callbacks import GarbageCallback


class Module(pl.LightningModule):
    """Learns a line, and does something besides in the middle of each step."""

    def __init__(self, work: Callable[[], object]) -> None:
        super().__init__()
        self.line = nn.Linear(4, 1)
        self.work = work
        self.inside = False
        self.losses: list[float] = []

    def training_step(self, batch: torch.Tensor, batch_idx: int) -> torch.Tensor:
        self.inside = True
        self.work()
        loss: torch.Tensor = self.line(batch).square().mean()
        self.losses.append(loss.item())
        return loss

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=0.1)


class StepEnds(pl.Callback):
    """Comes first, so that all callbacks after it run between two steps."""

    def on_train_batch_end(self, trainer: pl.Trainer, module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        module.inside = False


class Batches:
    """Endless."""

    def __iter__(self) -> Iterator[torch.Tensor]:
        while True:
            yield torch.ones(2, 4)


def trainer(tmp_path: Path, *callbacks: pl.Callback) -> pl.Trainer:
    """One that does as little besides as a job's."""
    return pl.Trainer(
        accelerator="cpu",
        max_epochs=-1,
        max_steps=30,
        **QUIET,
        default_root_dir=tmp_path,
        callbacks=list(callbacks),
    )


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

    one = trainer(tmp_path, StepEnds(), *callbacks)
    gc.collect()
    gc.freeze()
    usual = gc.get_threshold()
    gc.set_threshold(700, 10, 10)  # Python 3.13 has larger ones
    gc.callbacks.append(noticed)
    try:
        one.fit(module, train_dataloaders=Batches())
    finally:
        gc.callbacks.remove(noticed)
        gc.set_threshold(*usual)
        gc.unfreeze()
    return inside, after


def test_garbage_is_collected_between_steps_only(tmp_path: Path) -> None:
    assert collections_inside(tmp_path)[0], "the collector was to be due in the middle of a step"
    inside, after = collections_inside(tmp_path, GarbageCallback(every=10))
    assert (inside, after[:3]) == ([], [10, 20, 30])
    assert gc.isenabled()


def test_the_collector_is_given_back_after_a_failure(tmp_path: Path) -> None:
    def fail() -> None:
        assert not gc.isenabled()
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        trainer(tmp_path, GarbageCallback()).fit(Module(fail), train_dataloaders=Batches())
    assert gc.isenabled()
