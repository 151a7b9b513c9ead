"""Step marks, and what is to run after one. Signatures: [bridge] 1.19, `core/step_closure.py`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from habana_frameworks.torch import mode
from habana_frameworks.torch.utils.internal import lazy_only

_marks = 0
_closures: list[Callable[[], Any]] = []


@lazy_only
def add_step_closure(closure: Callable[..., Any], args: tuple[Any, ...] = ()) -> None:
    """Run `closure(*args)` at the next mark."""
    _closures.append(lambda: closure(*args))


@lazy_only
def mark_step(device_str: str = "", sync: bool = False) -> None:
    """End the graph being collected, in lazy mode: counted here. In eager mode it does nothing, and warns once."""
    _mark()


@lazy_only
def iter_mark_step(device_str: str = "") -> None:
    """As `mark_step`, at the end of an iteration."""
    _mark()


def marked_steps() -> int:
    """How often a graph was ended in this process. Of the simulator: Habana's package does not have it."""
    return _marks


def _mark() -> None:
    global _marks
    _marks += 1
    due = _closures[:]
    _closures.clear()
    for closure in due:
        closure()
    from habana_frameworks.torch.utils.event_dispatcher import EventDispatcher, EventId

    EventDispatcher.instance().publish(EventId.MARK_STEP, [])


def _mark_step_if_lazy(device_str: str = "") -> None:
    if mode.LAZY:
        mark_step(device_str)
