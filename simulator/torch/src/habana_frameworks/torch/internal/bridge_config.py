"""The bridge's variables by getter and setter, such as `get_pt_hpu_gpu_migration()`.

A getter gives the variable's value, or its default; a setter exists for few of them and holds for this process.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any

from habana_frameworks.torch import mode
from habana_frameworks.torch.internal.bridge_flags import DEFAULTS, SETTABLE

_set: dict[str, bool | int | str] = {}


def __getattr__(name: str) -> Any:
    verb, _, variable = name.upper().partition("_")
    if verb == "GET" and variable in DEFAULTS:
        return lambda: value(variable)
    if verb == "SET" and variable in SETTABLE:
        return lambda value: _set.__setitem__(variable, value)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def value(variable: str) -> bool | int | str:
    """What the getter of a variable gives."""
    if variable == "PT_HPU_LAZY_MODE":  # read once, and by default eager here
        return int(mode.LAZY)
    default = DEFAULTS[variable]
    if variable in _set:
        return _set[variable]
    text = os.environ.get(variable, "")
    if not text or isinstance(default, str):
        return text or default
    if isinstance(default, bool):
        return text.lower() in ("1", "true", "t", "yes", "y", "on")
    return int(text, 0)


@contextlib.contextmanager
def env_setting(var: str, val: Any) -> Iterator[None]:
    """Give a variable this value inside a `with`; only those with a setter have one to give."""
    setter = __getattr__(f"set_{var.lower()}")
    before = value(var.upper())
    setter(val)
    try:
        yield
    finally:
        setter(before)
