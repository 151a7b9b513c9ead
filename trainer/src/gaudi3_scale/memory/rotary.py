"""Rotary position embedding with fewer passes over memory than transformers' formula."""

from __future__ import annotations

import types
from typing import Any

import torch
from torch import Tensor, nn

from gaudi3_scale.kernels import fused_rotary

FUNCTION = "apply_rotary_pos_emb"
"""What transformers' decoder models call it."""


def use_fused_rotary(model: nn.Module, device_type: str) -> str:
    """Have every attention module of this model call the fused rotary embedding; one sentence on what that does.

    Only this model's modules are changed, and only where their formula is the usual one (first half with second half).
    """
    kernel = fused_rotary(device_type)
    if kernel.call is None:
        return f"no effect: {kernel.about}"
    callers = [module for module in model.modules() if FUNCTION in _names(module)]
    usual = [module for module in callers if _is_usual(type(module).forward.__globals__[FUNCTION])]
    for module in usual:
        forward = type(module).forward
        scope = {**forward.__globals__, FUNCTION: _fused}
        copied = types.FunctionType(
            forward.__code__, scope, forward.__name__, forward.__defaults__, forward.__closure__
        )
        copied.__kwdefaults__ = forward.__kwdefaults__
        module.forward = types.MethodType(copied, module)
    if not usual:
        return "no effect: no module of this model applies the usual rotary embedding"
    return f"{kernel.about}, in {len(usual)} modules"


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """x (B, H, T, D) turned by the angles of cos and sin, which broadcast to it."""
    turned: Tensor = _Rotation.apply(x, cos, sin)  # type: ignore[no-untyped-call]
    return turned


class _Rotation(torch.autograd.Function):
    """x * cos + (-x2, x1) * sin without the temporaries; backward is the transposed rotation."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        ctx.save_for_backward(cos, sin)
        half = x.shape[-1] // 2
        out = x * cos
        out[..., :half].addcmul_(x[..., half:], sin[..., :half], value=-1)
        out[..., half:].addcmul_(x[..., :half], sin[..., half:])
        return out

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        (gradient,), (cos, sin) = gradients, ctx.saved_tensors
        half = gradient.shape[-1] // 2
        out = gradient * cos
        out[..., :half].addcmul_(gradient[..., half:], sin[..., half:])
        out[..., half:].addcmul_(gradient[..., :half], sin[..., :half], value=-1)
        return out, None, None


def _fused(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor, unsqueeze_dim: int = 1) -> tuple[Tensor, Tensor]:
    """As transformers calls it: q and k (B, H, T, D), cos and sin (B or 1, T, D)."""
    kernel = fused_rotary(q.device.type)
    if kernel.call is not None and kernel.own and len(cos) == 1 and unsqueeze_dim == 1:
        positions = torch.arange(cos.shape[1], device=q.device)[None]
        return kernel.call(q, cos[0], sin[0], positions), kernel.call(k, cos[0], sin[0], positions)
    cos, sin = cos.unsqueeze(unsqueeze_dim), sin.unsqueeze(unsqueeze_dim)
    return rotate(q, cos, sin), rotate(k, cos, sin)


def _names(module: nn.Module) -> tuple[str, ...]:
    code = getattr(type(module).forward, "__code__", None)
    return code.co_names if code is not None else ()


def _is_usual(function: Any) -> bool:
    """Does it turn the first half of D against the second, and nothing else?"""
    generator = torch.Generator().manual_seed(0)
    q, k, angle = (torch.randn(shape, generator=generator) for shape in ((1, 2, 3, 8), (1, 1, 3, 8), (1, 3, 8)))
    try:
        theirs = function(q, k, angle.cos(), angle.sin())
        ours = (
            rotate(q, angle.cos()[:, None], angle.sin()[:, None]),
            rotate(k, angle.cos()[:, None], angle.sin()[:, None]),
        )
    except (TypeError, RuntimeError, ValueError):
        return False
    return all(torch.allclose(one, other, atol=1e-6) for one, other in zip(theirs, ours, strict=True))
