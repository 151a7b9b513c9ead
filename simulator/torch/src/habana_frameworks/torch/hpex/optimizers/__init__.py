"""The optimisers that Gaudi runs as one kernel, in torch's operations."""

from habana_frameworks.torch.hpex.optimizers.adamw import FusedAdamW
from habana_frameworks.torch.hpex.optimizers.others import (
    Adam,
    AdamW,
    FusedAdagrad,
    FusedLamb,
    FusedLars,
    FusedResourceApplyMomentum,
    FusedSGD,
)

__all__ = [
    "Adam", "AdamW", "FusedAdagrad", "FusedAdamW", "FusedLamb", "FusedLars", "FusedResourceApplyMomentum", "FusedSGD",
]  # fmt: skip
