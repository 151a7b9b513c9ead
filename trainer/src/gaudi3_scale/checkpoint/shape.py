"""Whether a checkpoint's state is one: looked at once, when it is read, and not where each part is used.

A file that is whole by its digests may still hold anything, as its writer may have been anybody who could write there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from gaudi3_scale.checkpoint.manifest import DamagedCheckpointError

Check = Callable[[Any], bool]


def _is(*kinds: type) -> Check:
    return lambda value: isinstance(value, kinds) and (bool in kinds or not isinstance(value, bool))


def _list_of(part: Check) -> Check:
    return lambda value: isinstance(value, list | tuple) and all(map(part, value))


def _table_of(part: Check) -> Check:
    return lambda value: isinstance(value, dict) and all(type(key) is str and part(value[key]) for key in value)


def _has(*required: str, **parts: Check) -> Check:
    """A table in which these are there, and each of `parts` is as it should be where it is there."""

    def check(value: Any) -> bool:
        return (
            isinstance(value, dict)
            and all(name in value for name in required)
            and all(check(value[name]) for name, check in parts.items() if name in value)
        )

    return check


NOTHING = type(None)
_NUMBER = _is(int, float)


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 0


def _is_table_of_pairs(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.dtype == torch.float32 and value.ndim == 2 and value.shape[1] == 2


def _is_number_or_nothing(value: Any) -> bool:
    return value is None or _NUMBER(value)


_GROUP = _has("params", params=_list_of(_is(str)))
_RANK = _has(
    random=_is(dict, torch.Tensor),
    loops=_is(dict),
    loss_sum=_NUMBER,
    loss_count=_is_count,
    figures=_list_of(_NUMBER),
    cost=_is(dict, NOTHING),
)
PARTS: dict[str, tuple[Check, str]] = {
    "plain": (_table_of(_is(torch.Tensor)), "a table of tensors"),
    "training": (
        _has(
            *("extra", "groups", "values"),
            extra=_is(dict),
            groups=_list_of(_list_of(_GROUP)),
            values=_list_of(_table_of(_is(dict))),
            frozen=_is(str),
        ),
        "what belongs to a model and its optimizers",
    ),
    "ranks": (lambda value: _list_of(_RANK)(value) and len(value) > 0, "a list of what each rank had"),
    "hosts": (_list_of(_is(str)), "a list of names"),
    "step": (_is_count, "a number of steps"),
    "samples": (_is_count, "a number of samples"),
    "loss": (_is_number_or_nothing, "a number"),
    "first_loss": (_is_number_or_nothing, "a number"),
    "skipped_steps": (_is_count, "a number of steps"),
    "reference": (_is_table_of_pairs, "a table of log-probabilities"),
    "scheduler": (_has("last_epoch", last_epoch=_is_count), "the position of a schedule"),
    "schedulers": (_list_of(_is(dict)), "a list of schedules"),
    "callbacks": (_table_of(_is(dict)), "a table of callbacks"),
    "configured": (
        lambda value: value is None or _has(groups=_is(list, tuple), schedulers=_is(list, tuple))(value),
        "a table of settings",
    ),
}
"""The parts that are known by name, and what each is in words."""
ALWAYS = ("plain", "training", "ranks", "step")
OF_A_JOB = ("samples", "loss", "first_loss", "scheduler")
OF_A_FIT = ("schedulers", "callbacks")
OF_A_RANK = {OF_A_JOB: ("random", "loss_sum", "loss_count"), OF_A_FIT: ("random", "loops")}


def checked(state: Mapping[str, Any], file: str, also: tuple[str, ...] = ()) -> None:
    """DamagedCheckpointError if a part of a state is missing or is something else; `also` are parts it has to have."""
    for name in (*ALWAYS, *also):
        if name not in state:
            raise DamagedCheckpointError(f"{file} has no part {name!r}")
    for name, (check, words) in PARTS.items():
        if name in state and not check(state[name]):
            raise DamagedCheckpointError(f"in {file} the part {name!r} is not {words}")
    groups, values = state["training"]["groups"], state["training"]["values"]
    if len(groups) != len(values):
        raise DamagedCheckpointError(
            f"in {file} the part 'training' is of {len(groups)} and of {len(values)} optimizers"
        )
    for name in OF_A_RANK.get(also, ()):
        if any(name not in rank for rank in state["ranks"]):
            raise DamagedCheckpointError(f"in {file} a rank has no {name!r}")


@contextmanager
def restoring(file: Path) -> Iterator[None]:
    """Parts of a checkpoint are given to objects that know their own states: an odd one becomes a sentence."""
    try:
        yield
    except (LookupError, AttributeError, TypeError, ValueError, ArithmeticError, RuntimeError) as error:
        reason = (str(error).strip() or "no message").splitlines()[0][:200]
        raise DamagedCheckpointError(f"{file.name} cannot be restored ({type(error).__name__}: {reason})") from error
