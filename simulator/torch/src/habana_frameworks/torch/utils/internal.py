"""Which mode the process is in."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from functools import wraps
from typing import Any

from habana_frameworks.torch import mode


def is_lazy() -> bool:
    """Whether PT_HPU_LAZY_MODE asked for lazy mode."""
    return mode.LAZY


def lazy_only(func: Callable[..., Any]) -> Callable[..., None]:
    """A function that returns nothing, and in eager mode does nothing but warn at its first call."""
    warned = False

    @wraps(func)
    def wrapper(*arguments: Any, **options: Any) -> None:
        nonlocal warned
        if mode.LAZY:
            func(*arguments, **options)
        elif not warned:
            warned = True
            warnings.warn(f"{func.__name__} has no effect in eager mode (PT_HPU_LAZY_MODE=0)", stacklevel=2)

    return wrapper


class Timer:
    """Seconds that the body of a `with` takes on this machine, which are none of a Gaudi's."""

    def __init__(self) -> None:
        self.start_t = self.end_t = 0.0

    def __enter__(self) -> Timer:
        self.start_t = time.perf_counter()
        return self

    def __exit__(self, *error: object) -> None:
        self.end_t = time.perf_counter()

    @property
    def elapsed(self) -> float:
        """From entry to exit."""
        return self.end_t - self.start_t
