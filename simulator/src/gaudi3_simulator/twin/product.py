"""The collection's health engine, from the checkout that this program lies in: one judge for report and twin."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

from .. import SimulatorError

_ROOT = Path(__file__).resolve().parents[4]
_UTILITIES = "ansible_collections.gaudi3.scale.plugins.module_utils"


def part(name: str) -> ModuleType:
    """A file of the collection, such as ``_health.engine``; ``SimulatorError`` where the collection is not there."""
    collections = str(_ROOT / "collections")
    if collections not in sys.path and (_ROOT / "collections/ansible_collections/gaudi3/scale").is_dir():
        sys.path.append(collections)
    try:
        return import_module(f"{_UTILITIES}.{name}")
    except ImportError as error:
        raise SimulatorError(
            f"The health engine is not there ({error}): run this program from a checkout of the collection."
        ) from None
