"""Recorded graphs, which are refused: running the module instead would hide what replay does to inputs and shapes."""

from __future__ import annotations

from typing import Any, NoReturn

from gaudi3_hpu_simulator.errors import refuse


def _refuse() -> NoReturn:
    raise refuse("graphs to record and replay", "run the module without them, or on hardware")


def wrap_in_hpu_graph(
    module: Any,
    asynchronous: bool = False,
    disable_tensor_cache: bool = False,
    dry_run: bool = False,
    max_graphs: int | None = None,
) -> NoReturn:
    """Record a module's graph at its first call and replay it afterwards: refused."""
    _refuse()


class HPUGraph:
    """A recorded graph: refused."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        _refuse()


class ModuleCacher:
    """A module that records its graphs in training: refused."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        _refuse()


class CachedParams:
    """Inputs and outputs of a recorded graph: refused."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        _refuse()


def input_hash(obj: Any) -> int:
    """What tells recorded graphs apart: refused with them."""
    _refuse()


def copy_to(dst: Any, src: Any) -> None:
    """Fill a recorded graph's inputs: refused."""
    _refuse()
