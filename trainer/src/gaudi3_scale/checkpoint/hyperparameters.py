"""Hyperparameters over a restart: what is configured now counts, and what training changed meanwhile goes on.

A checkpoint has two things of them: how optimizers and schedules were configured when its run began, and how they were
when it was saved (a schedule changes rates, some change momenta, and so may callbacks). What is configured as it was
goes on as it was saved. What is configured otherwise is taken as it is now, and a schedule only keeps its position.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Sequence
from typing import Any

import torch
from torch.optim.lr_scheduler import LambdaLR, LRScheduler, ReduceLROnPlateau

BASE = "initial_lr"
"""The key of a parameter group under which a schedule keeps the rate that it starts from."""
MOVING = {"last_epoch", "base_lrs"}
"""What a schedule's state has besides its settings, where its name does not begin with an underscore."""

Optimizers = Sequence[torch.optim.Optimizer]
Group = dict[str, Any]


def configured(optimizers: Optimizers, schedulers: Sequence[Any]) -> dict[str, Any]:
    """Settings of optimizers and schedules; to be called before the first step, and before anything is restored."""
    groups = [[_settings(group) for group in optimizer.param_groups] for optimizer in optimizers]
    return copy.deepcopy({"groups": groups, "schedulers": [scheduler.state_dict() for scheduler in schedulers]})


def resume(
    optimizers: Optimizers, schedulers: Sequence[Any], now: dict[str, Any], before: dict[str, Any] | None, saved: Any
) -> list[str]:
    """Set optimizers and schedules to go on from a checkpoint, and return what is configured otherwise, in words.

    Args:
        optimizers: with their state restored, and otherwise new.
        schedulers: theirs, new.
        now: `configured` of them.
        before: `configured` of the run that saved; None if the checkpoint does not have it.
        saved: groups and schedules when it was saved, in the form of `configured`.
    """
    changes: list[str] = []
    rates: set[int] = set()
    for number, optimizer in enumerate(optimizers):
        then = before["groups"][number] if before else [_unscheduled(group) for group in saved["groups"][number]]
        for live, new, old, was in zip(
            optimizer.param_groups, now["groups"][number], then, saved["groups"][number], strict=True
        ):
            base = BASE if BASE in new else "lr"
            for key in new:
                if key == base and not _same(new[key], old.get(key)):
                    rates.add(number)
                if key == "lr" and base == BASE:
                    continue  # the schedule's
                if key not in was or not _same(new[key], old.get(key)):
                    changes.append(f"{'lr' if key == BASE else key} {new[key]} instead of {old.get(key)}")
                else:
                    live[key] = copy.deepcopy(was[key])
    for number, scheduler in enumerate(schedulers):
        old_settings = before["schedulers"][number] if before else None
        differs = _differences(scheduler, now["schedulers"][number], old_settings)
        changes += differs
        owner = next((n for n, each in enumerate(optimizers) if each is getattr(scheduler, "optimizer", None)), None)
        state = saved["schedulers"][number]
        if owner is None or not (differs or owner in rates):
            _go_on(scheduler, state, saved["groups"][owner] if owner is not None else [])
        elif isinstance(scheduler, ReduceLROnPlateau):
            counters = ("best", "num_bad_epochs", "cooldown_counter", "last_epoch")
            scheduler.load_state_dict({key: state[key] for key in counters})
            if before and owner in rates:
                _reduce(scheduler.optimizer, saved["groups"][owner], before["groups"][owner])
        else:
            advance(scheduler, _position(state))
    return list(dict.fromkeys(changes))


def advance(scheduler: LRScheduler, position: int) -> None:
    """Put a new schedule where it is after this many steps; its optimizer has the rates then."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch misses the optimizer's steps
        if isinstance(scheduler, LambdaLR):  # a function of the position
            scheduler.last_epoch = position - 1
            scheduler.step()
            return
        for _ in range(position):
            scheduler.step()


def _go_on(scheduler: Any, state: dict[str, Any], groups: list[Group]) -> None:
    """As it was saved; but a function that a schedule calls is in no checkpoint, so that its rate is computed again."""
    if isinstance(scheduler, LambdaLR):
        scheduler.load_state_dict(state)
        advance(scheduler, state["last_epoch"])
        scheduler.load_state_dict({**state, "_last_lr": scheduler.get_last_lr()})
        return
    scheduler.load_state_dict(state)
    for live, was in zip(scheduler.optimizer.param_groups if groups else [], groups, strict=True):
        live["lr"] = copy.deepcopy(was["lr"])


def _reduce(optimizer: torch.optim.Optimizer, groups: list[Group], before: list[Group]) -> None:
    """New rates as far below where they start as the old ones were."""
    for live, was, old in zip(optimizer.param_groups, groups, before, strict=True):
        live["lr"] = live["lr"] * (was["lr"] / old["lr"])


def _settings(group: Group) -> Group:
    return {key: value for key, value in group.items() if key not in ("params", "param_names")}


def _unscheduled(group: Group) -> Group:
    """What is known of the configuration from a group as it was saved."""
    return {**_settings(group), "lr": group.get(BASE, group["lr"])}


def _position(state: dict[str, Any]) -> int:
    """Steps of the schedule; one that only holds others has them in these."""
    position: int = state["last_epoch"] if "last_epoch" in state else state["_schedulers"][0]["last_epoch"]
    return position


def _differences(scheduler: Any, new: dict[str, Any], old: dict[str, Any] | None) -> list[str]:
    """Settings of a schedule that are not what they were."""
    if old is None:
        return []
    name = type(scheduler).__name__
    keys = [key for key in new if key not in MOVING and key != "_last_lr" and not _same(new[key], old.get(key))]
    said = [f"{name}.{key} {new[key]} instead of {old.get(key)}" for key in keys if not key.startswith("_")]
    return said or ([f"another {name}"] if keys else [])


def _same(one: Any, other: Any) -> bool:
    """Equal values, in whatever kinds of sequences, and tensors by what they hold."""
    if isinstance(one, torch.Tensor) or isinstance(other, torch.Tensor):
        return bool(torch.equal(torch.as_tensor(one), torch.as_tensor(other)))
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(_same(a, b) for a, b in zip(one, other, strict=True))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(value, other[key]) for key, value in one.items())
    return bool(one == other)
