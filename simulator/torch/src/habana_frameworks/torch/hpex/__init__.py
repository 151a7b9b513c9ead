"""Fused operations: here compositions of torch's own, with the same results and without their speed."""

from habana_frameworks.torch.hpex import kernels, normalization, optimizers

__all__ = ["kernels", "normalization", "optimizers"]
