"""Torch's object collectives, which unpickle what a peer sends, fail in the processes of the tests' jobs."""

from __future__ import annotations

import importlib
import re
from typing import Any, NoReturn

COLLECTIVES = re.compile(r"(all_gather|gather|send|recv|broadcast|scatter)_object(_list)?")


def collectives() -> list[str]:
    """Their names in the installed torch."""
    import torch.distributed.distributed_c10d as c10d

    return [name for name in vars(c10d) if COLLECTIVES.fullmatch(name)]


_ORIGINALS: dict[str, Any] = {}


def allow() -> None:
    """Give them back, for a user's Trainer with a strategy of Lightning's own, whose broadcasts are not ours."""
    for name, original in _ORIGINALS.items():
        for module in ("torch.distributed.distributed_c10d", "torch.distributed"):
            setattr(importlib.import_module(module), name, original)


def forbid() -> None:
    """Have each fail in this process."""
    for name in collectives():
        where = importlib.import_module("torch.distributed.distributed_c10d")
        _ORIGINALS.setdefault(name, getattr(where, name))

        def refuse(*_: Any, name: str = name, **__: Any) -> NoReturn:
            raise AssertionError(f"a job called torch's {name}, which unpickles what a peer sends")

        for module in ("torch.distributed.distributed_c10d", "torch.distributed"):
            setattr(importlib.import_module(module), name, refuse)
