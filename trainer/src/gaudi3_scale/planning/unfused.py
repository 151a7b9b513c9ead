"""Attention as torch computes it on CUDA, on tensors of any device: the same tensors are kept for backward.

Of torch's fused kernels for CUDA, the one for float32 takes as many heads of keys as of queries only. Where there are
fewer, torch writes the product out and keeps the weights of all scores: seen with torch 2.11 on an H100, in the
history of its allocator.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.overrides import TorchFunctionMode


class CudaAttention(TorchFunctionMode):
    """Writes attention out where torch has no fused kernel on CUDA, while it is entered.

    To be entered again wherever something is recomputed (`models.activation_checkpoint`).
    """

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call, with the kernel that CUDA would have."""
        kwargs = kwargs or {}
        if func is nn.functional.scaled_dot_product_attention and _unfused(*args[:2], **kwargs):
            with sdpa_kernel(SDPBackend.MATH):
                return func(*args, **kwargs)
        return func(*args, **kwargs)


def _unfused(query: Any, key: Any, **others: Any) -> bool:
    lowered = torch.is_autocast_enabled(query.device.type)
    return query.dtype == torch.float32 and not lowered and query.shape[1] != key.shape[1]
