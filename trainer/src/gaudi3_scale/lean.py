"""Takes out of Lightning's loop what costs time in every step and does nothing for a job.

What a step calls stays as it is, in the same order; what goes is around it: an idle profiler's contexts, texts for a
log that is off, callbacks without the hook, the name of the running hook noted through `nn.Module`'s slow assignment,
a signature inspected again for every batch. It concerns only trainers that were given to `quicken`. What is reached
into is checked first: another Lightning whose loop has changed is an error at the start, not a wrong step later.
"""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import lightning.pytorch as pl
from lightning.pytorch.profilers import PassThroughProfiler

from gaudi3_scale.internals import (
    CALL_CALLBACKS,
    CALL_MODULE,
    CALL_STRATEGY,
    CURRENT_HOOK,
    have_built,
    have_called,
)

COLLECT_EVERY = 50
"""Optimizer steps between two collections of garbage; cycles may hold on to device memory, so it must not be rare."""

_HOOKS = "_gaudi3_scale_hooks"
_CURRENT = CURRENT_HOOK.key


def quicken(trainer: pl.Trainer) -> None:
    """To be called once on a new trainer."""
    if type(trainer.profiler) is PassThroughProfiler:
        trainer.profiler = SilentProfiler()
    have_built(trainer, _Arguments)
    trainer.callbacks.append(CollectGarbage())
    if not logging.getLogger(CALL_CALLBACKS.module).isEnabledFor(logging.DEBUG):
        _quicken_calls()
        trainer.__dict__[_HOOKS] = _Hooks(trainer)


class SilentProfiler(PassThroughProfiler):
    """Measures nothing, without a generator for each of the thirty hooks of a step."""

    _nothing: AbstractContextManager[None] = nullcontext()

    def profile(self, action_name: str) -> AbstractContextManager[None]:
        """No context."""
        return self._nothing


class CollectGarbage(pl.Callback):
    """Collects garbage between steps, at the same steps on all ranks, instead of whenever a rank happens to be due.

    A collection in the middle of a rank's step makes all others wait in the next collective.
    """

    def __init__(self, every: int = COLLECT_EVERY) -> None:
        self._every = every
        self._was_enabled = False
        self._steps = 0

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """From now on only on schedule."""
        self._was_enabled = gc.isenabled()
        gc.collect()
        gc.disable()

    def on_train_batch_end(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Collect, if it is time to; batches are counted anew in each epoch, steps are not."""
        if (batch_idx + 1) % trainer.accumulate_grad_batches == 0:
            self._steps += 1
            if self._steps % self._every == 0:
                gc.collect()

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        if self._was_enabled:
            gc.enable()

    def on_exception(self, trainer: pl.Trainer, pl_module: pl.LightningModule, exception: BaseException) -> None:
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


class _Hooks:
    """For each hook the callbacks that have one, in their order; found anew when the list of callbacks changes."""

    def __init__(self, trainer: pl.Trainer) -> None:
        self._trainer = trainer
        self._callbacks: list[pl.Callback] = []
        self._found: dict[str, list[Callable[..., Any]]] = {}

    def quick(self) -> bool:
        """Is there nothing to be measured?"""
        return type(self._trainer.profiler) is SilentProfiler

    def of(self, name: str) -> list[Callable[..., Any]]:
        """The callbacks' methods of this name that do something."""
        if self._callbacks != self._trainer.callbacks:
            self._callbacks, self._found = list(self._trainer.callbacks), {}
        if name not in self._found:
            nothing = getattr(pl.Callback, name, None)
            self._found[name] = [
                getattr(callback, name)
                for callback in self._callbacks
                if name in vars(callback) or getattr(type(callback), name, None) is not nothing
            ]
        return self._found[name]


def _quicken_calls() -> None:
    """Put quick versions of Lightning's calls in front of its own, for those trainers."""
    CURRENT_HOOK.check()
    have_called(CALL_CALLBACKS, _quick_callbacks)
    have_called(CALL_MODULE, _quick_module)
    have_called(CALL_STRATEGY, _quick_strategy)


def _quick_callbacks(theirs: Callable[..., Any]) -> Callable[..., Any]:
    def quick(
        trainer: pl.Trainer, hook_name: str, *args: Any, monitoring_callbacks: bool | None = None, **kwargs: Any
    ) -> None:
        hooks: _Hooks | None = trainer.__dict__.get(_HOOKS)
        if hooks is None or monitoring_callbacks is not None or not hooks.quick():
            theirs(trainer, hook_name, *args, monitoring_callbacks=monitoring_callbacks, **kwargs)
            return
        found = hooks.of(hook_name)
        module = trainer.lightning_module if found else None
        if module is None:
            for method in found:
                method(trainer, module, *args, **kwargs)
            return
        notes = module.__dict__
        before, notes[_CURRENT] = notes[_CURRENT], hook_name
        for method in found:
            method(trainer, module, *args, **kwargs)
        notes[_CURRENT] = before

    return quick


def _quick_module(theirs: Callable[..., Any]) -> Callable[..., Any]:
    def quick(
        trainer: pl.Trainer, hook_name: str, *args: Any, pl_module: pl.LightningModule | None = None, **kwargs: Any
    ) -> Any:
        hooks: _Hooks | None = trainer.__dict__.get(_HOOKS)
        if hooks is None or pl_module is not None or not hooks.quick():
            return theirs(trainer, hook_name, *args, pl_module=pl_module, **kwargs)
        module = trainer.lightning_module
        notes = module.__dict__
        before, notes[_CURRENT] = notes[_CURRENT], hook_name
        output = getattr(module, hook_name)(*args, **kwargs)
        notes[_CURRENT] = before
        return output

    return quick


def _quick_strategy(theirs: Callable[..., Any]) -> Callable[..., Any]:
    def quick(trainer: pl.Trainer, hook_name: str, *args: Any, **kwargs: Any) -> Any:
        hooks: _Hooks | None = trainer.__dict__.get(_HOOKS)
        if hooks is None or not hooks.quick():
            return theirs(trainer, hook_name, *args, **kwargs)
        notes = trainer.lightning_module.__dict__
        before, notes[_CURRENT] = notes[_CURRENT], hook_name
        output = getattr(trainer.strategy, hook_name)(*args, **kwargs)
        notes[_CURRENT] = before
        return output

    return quick
