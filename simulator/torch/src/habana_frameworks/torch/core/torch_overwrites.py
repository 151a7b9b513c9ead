"""Names of modules, which Habana keeps for its debugging of lazy graphs: none are kept here."""

from __future__ import annotations

from collections import deque
from typing import Any

_name_stack: deque[str] = deque()
_module_dict: dict[str, int] = {}


def _names_hook_already_registered(module: Any) -> bool:
    return bool(getattr(module, "names_hook", False))


def overwrite_torch_functions() -> None:
    """Nothing to do: `gaudi3_hpu_simulator.load` has fitted torch."""
