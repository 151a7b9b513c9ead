"""Autocast to bfloat16 as an HPU does it, on tensors of any device: the same tensors are made, in the same types.

torch's autocast for `cpu` and `cuda` casts other operations, so that a prediction with one of them is not that of an
HPU. The lists are those of HabanaAI/gaudi-pytorch-bridge 1.19 (hpu_ops/autocast_helpers.h); casts are not kept from one
operation to the next.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

LOWERED = frozenset(
    (
        "addmm", "addbmm", "batch_norm", "baddbmm", "bmm", "conv1d", "conv2d", "conv3d", "conv_transpose1d",
        "conv_transpose2d", "conv_transpose3d", "dot", "dropout", "feature_dropout", "group_norm", "instance_norm",
        "layer_norm", "leaky_relu", "linear", "matmul", "mean", "mm", "mul", "mv", "softmax", "log_softmax",
        "scaled_dot_product_attention",
    )
)  # fmt: skip
IN_FLOAT = frozenset(
    (
        "acos", "addcdiv", "asin", "atan2", "bilinear", "binary_cross_entropy", "binary_cross_entropy_with_logits",
        "cdist", "cosh", "cosine_embedding_loss", "cosine_similarity", "cross_entropy_loss", "cross_entropy", "dist",
        "div", "divide", "embedding", "embedding_bag", "erfinv", "exp", "expm1", "hinge_embedding_loss",
        "huber_loss", "kl_div", "l1_loss", "log", "log10", "log1p", "log2", "logsumexp", "margin_ranking_loss",
        "mse_loss", "multi_margin_loss", "multilabel_margin_loss", "nll_loss", "pdist", "poisson_nll_loss", "pow",
        "reciprocal", "renorm", "rsqrt", "sinh", "smooth_l1_loss", "soft_margin_loss", "softplus", "tan", "topk",
        "triplet_margin_loss", "truediv", "true_divide",
    )
)  # fmt: skip
PROMOTED = frozenset(
    (
        "add", "addcmul", "cat", "sub", "stack",
    )
)  # fmt: skip
FIRST_ONLY = frozenset(
    (
        "layer_norm", "group_norm", "instance_norm", "batch_norm",
    )
)  # fmt: skip
"""Of these the input alone is cast."""


class HpuAutocast(TorchFunctionMode):
    """Casts the operands of operations as autocast on an HPU does, while it is entered.

    To be entered again wherever something is recomputed (`models.activation_checkpoint`).
    """

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call with operands that are cast."""
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        if name.startswith("__"):
            name = name.strip("_").removeprefix("r")
        if name in LOWERED:
            if name in FIRST_ONLY:
                return func(_cast(args[0], torch.bfloat16), *args[1:], **kwargs)
            return func(*_cast(args, torch.bfloat16), **_cast(kwargs, torch.bfloat16))
        if name in IN_FLOAT:
            return func(*_cast(args, torch.float32), **_cast(kwargs, torch.float32))
        if name in PROMOTED and len(_types(args)) > 1:
            return func(*_cast(args, torch.float32), **kwargs)
        return func(*args, **kwargs)


def _cast(value: Any, to: torch.dtype) -> Any:
    if isinstance(value, Tensor):
        return value.to(to) if value.dtype in (torch.float32, torch.bfloat16, torch.float16) else value
    if isinstance(value, list | tuple):
        return type(value)([_cast(each, to) for each in value])
    if isinstance(value, dict):
        return {key: _cast(each, to) for key, each in value.items()}
    return value


def _types(args: Any) -> set[torch.dtype]:
    flat = [each for value in args for each in (value if isinstance(value, list | tuple) else [value])]
    return {each.dtype for each in flat if isinstance(each, Tensor) and each.is_floating_point()}
