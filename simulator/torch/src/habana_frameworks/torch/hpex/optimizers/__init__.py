"""The optimisers that Gaudi runs as one kernel, here with torch's own arithmetic."""

from habana_frameworks.torch.hpex.optimizers.adamw import FusedAdamW
from habana_frameworks.torch.hpex.optimizers.others import (
    FusedAdagrad,
    FusedLamb,
    FusedLars,
    FusedResourceApplyMomentum,
    FusedSGD,
)

__all__ = ["FusedAdagrad", "FusedAdamW", "FusedLamb", "FusedLars", "FusedResourceApplyMomentum", "FusedSGD"]
