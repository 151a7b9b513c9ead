"""Activation checkpointing of a function, with a context around it that torch does not restore in backward."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from torch.utils.checkpoint import checkpoint as of_torch

_AROUND: Callable[[], AbstractContextManager[Any]] | None = None
"""Makes the context; a plain global, since a compiled block reads it."""


def checkpoint(function: Callable[..., Any], *args: Any, **named: Any) -> Any:
    """As torch's, whose arguments these are."""
    if _AROUND is not None:
        function = _within(_AROUND, function)
    return of_torch(function, *args, **named)


@contextmanager
def around_recomputation(make: Callable[[], AbstractContextManager[Any]]) -> Iterator[None]:
    """Have what is checkpointed meanwhile run in a context of its own, in forward and again in backward.

    torch restores autocast and random state, and no mode in which functions of torch are called.
    """
    global _AROUND
    before, _AROUND = _AROUND, make
    try:
        yield
    finally:
        _AROUND = before


def _within(make: Callable[[], AbstractContextManager[Any]], function: Callable[..., Any]) -> Callable[..., Any]:
    def run(*args: Any, **named: Any) -> Any:
        with make():
            return function(*args, **named)

    return run
