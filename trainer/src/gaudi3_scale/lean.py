"""Takes out of Lightning's loop what costs time in every step and does nothing for a job.

All of it is on one trainer, never on Lightning itself, and what is reached into is checked first: another Lightning
whose loop has changed is an error at the start, not a wrong step later.
"""

from __future__ import annotations

import gc
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import lightning.pytorch as pl
from lightning.pytorch.profilers import PassThroughProfiler

COLLECT_EVERY = 50
"""Optimizer steps between two collections of garbage; cycles may hold on to device memory, so it must not be rare."""


def slim(trainer: pl.Trainer) -> None:
    """To be called once on a new trainer."""
    loop = trainer.fit_loop.epoch_loop
    if not hasattr(loop, "_build_kwargs") or not hasattr(trainer, "profiler"):
        raise RuntimeError("lightning's training loop has changed: review lean.slim")
    if type(trainer.profiler) is PassThroughProfiler:
        trainer.profiler = SilentProfiler()
    loop._build_kwargs = _Arguments(loop._build_kwargs)
    trainer.callbacks.append(CollectGarbage())


class SilentProfiler(PassThroughProfiler):
    """Measures nothing, without a generator for each of the thirty hooks of a step."""

    _nothing: AbstractContextManager[None] = nullcontext()

    def profile(self, action_name: str) -> AbstractContextManager[None]:
        """No context."""
        return self._nothing


class QuickHooks:
    """For a LightningModule: Lightning notes the running hook on it, some fifty times per step.

    `nn.Module` looks through parameters, buffers and submodules whenever an attribute is set; this one is none of them.
    """

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "_current_fx_name":
            self.__dict__[name] = value
        else:
            super().__setattr__(name, value)


class CollectGarbage(pl.Callback):
    """Collects garbage between steps, at the same steps on all ranks, instead of whenever a rank happens to be due.

    A collection in the middle of a rank's step makes all others wait in the next collective.
    """

    def __init__(self, every: int = COLLECT_EVERY) -> None:
        self._every = every
        self._was_enabled = False

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """From now on only on schedule."""
        self._was_enabled = gc.isenabled()
        gc.collect()
        gc.disable()

    def on_train_batch_end(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Collect, if it is time to."""
        if (batch_idx + 1) % (self._every * trainer.accumulate_grad_batches) == 0:
            gc.collect()

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """As before."""
        if self._was_enabled:
            gc.enable()

    def on_exception(self, trainer: pl.Trainer, pl_module: pl.LightningModule, exception: BaseException) -> None:
        """As before."""
        if self._was_enabled:
            gc.enable()


class _Arguments:
    """The arguments of `training_step`, whose signature Lightning inspects before every batch; here once."""

    def __init__(self, build: Any) -> None:
        self._build = build
        self._names: tuple[str, ...] | None = None

    def __call__(self, kwargs: dict[str, Any], batch: Any, batch_idx: int) -> dict[str, Any]:
        if self._names is None:
            kwargs = self._build(kwargs, batch, batch_idx)
            self._names = tuple(kwargs)
            return kwargs
        values = {"batch": batch, "batch_idx": batch_idx}
        for name in self._names:
            kwargs[name] = values[name]
        return kwargs
