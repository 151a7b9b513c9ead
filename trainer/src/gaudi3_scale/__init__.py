"""Distributed training on Intel Gaudi 3, and on CPU and CUDA with the same command.

Importing this package is light: torch, Lightning and transformers come with the first name that needs them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gaudi3_scale.lazy import lazily
from gaudi3_scale.version import VERSION

if TYPE_CHECKING:
    from gaudi3_scale.integration.accelerator import GaudiAccelerator
    from gaudi3_scale.integration.trainer import GaudiTrainer
    from gaudi3_scale.models.adamw import GaudiOptimizer
    from gaudi3_scale.serving.inference_server import OptimizedInferenceServer

__version__ = VERSION
__all__ = ["GaudiAccelerator", "GaudiOptimizer", "GaudiTrainer", "OptimizedInferenceServer", "__version__"]

__getattr__ = lazily(
    __name__,
    {
        "GaudiAccelerator": "integration.accelerator",
        "GaudiOptimizer": "models.adamw",
        "GaudiTrainer": "integration.trainer",
        "OptimizedInferenceServer": "serving.inference_server",
    },
)
