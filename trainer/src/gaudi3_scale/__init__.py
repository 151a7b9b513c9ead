"""Distributed training on Intel Gaudi 3, and on CPU and CUDA with the same command.

Importing this package is light: torch, Lightning and transformers come with the first name that needs them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gaudi3_scale.integration.accelerator import GaudiAccelerator
    from gaudi3_scale.integration.trainer import GaudiTrainer
    from gaudi3_scale.optimizer import GaudiOptimizer

__version__ = "0.1.0"
__all__ = ["GaudiAccelerator", "GaudiOptimizer", "GaudiTrainer", "__version__"]

_HOMES = {
    "GaudiAccelerator": "gaudi3_scale.integration.accelerator",
    "GaudiOptimizer": "gaudi3_scale.optimizer",
    "GaudiTrainer": "gaudi3_scale.integration.trainer",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(home), name)
