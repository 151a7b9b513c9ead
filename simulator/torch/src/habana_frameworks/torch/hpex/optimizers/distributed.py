"""FusedAdamW for sharded parameters: here the same one."""

from habana_frameworks.torch.hpex.optimizers.adamw import FusedAdamW

__all__ = ["FusedAdamW"]
