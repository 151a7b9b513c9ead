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


def forbid() -> None:
    """Have each fail in this process."""
    for name in collectives():

        def refuse(*_: Any, name: str = name, **__: Any) -> NoReturn:
            raise AssertionError(f"a job called torch's {name}, which unpickles what a peer sends")

        for module in ("torch.distributed.distributed_c10d", "torch.distributed"):
            setattr(importlib.import_module(module), name, refuse)
