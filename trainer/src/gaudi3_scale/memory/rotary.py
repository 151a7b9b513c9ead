"""Rotary position embedding by the device's own kernel."""

from __future__ import annotations

import functools
import sys
from typing import Any

import torch
from torch import Tensor, nn

from gaudi3_scale.hpu.kernels import fused_rotary

FUNCTION = "apply_rotary_pos_emb"
"""What transformers' decoder models call it, each in a module of their own."""


def use_fused_rotary(model: nn.Module, device_type: str) -> str:
    """Have attention modules like this model's call the device's kernel; one sentence on what that does.

    Done where the device has a kernel of its own and the model's formula is the usual one (first half with second
    half). Tensors on other devices are turned by the model's own function, as before.
    """
    kernel = fused_rotary(device_type)
    if kernel.call is None:
        return f"no effect: {kernel.about}"
    callers = [module for module in model.modules() if FUNCTION in _names(module)]
    written = [sys.modules[type(module).__module__] for module in callers]
    usual = [place for place in written if _is_usual(getattr(place, FUNCTION, None))]
    for place in set(usual):
        formula = getattr(place, FUNCTION)
        if not isinstance(formula, functools.partial):
            setattr(place, FUNCTION, functools.partial(_turn, formula))
    if not usual:
        return "no effect: no module of this model applies the usual rotary embedding"
    return f"{kernel.about}, in {len(usual)} modules"


def _turn(formula: Any, q: Tensor, k: Tensor, cos: Tensor, sin: Tensor, unsqueeze_dim: int = 1) -> tuple[Any, Any]:
    """As transformers calls it: q and k (B, H, T, D), cos and sin (B or 1, T, D)."""
    kernel = fused_rotary(q.device.type)
    if kernel.call is None or len(cos) != 1 or unsqueeze_dim != 1:
        turned: tuple[Any, Any] = formula(q, k, cos, sin, unsqueeze_dim=unsqueeze_dim)
        return turned
    positions = torch.arange(cos.shape[1], device=q.device)[None]
    return kernel.call(q, cos[0], sin[0], positions), kernel.call(k, cos[0], sin[0], positions)


def _names(module: nn.Module) -> tuple[str, ...]:
    code = getattr(type(module).forward, "__code__", None)
    return code.co_names if code is not None else ()


def _is_usual(function: Any) -> bool:
    """Does it turn the first half of D against the second, and nothing else?"""
    generator = torch.Generator().manual_seed(0)
    q, k, angle = (torch.randn(shape, generator=generator) for shape in ((1, 2, 3, 8), (1, 1, 3, 8), (1, 3, 8)))

    def turned(x: Tensor) -> Tensor:
        swapped = torch.cat([-x[..., 4:], x[..., :4]], -1)
        return x * angle.cos()[:, None] + swapped * angle.sin()[:, None]

    try:
        theirs = function(q, k, angle.cos(), angle.sin())
    except (TypeError, RuntimeError, ValueError):
        return False
    return all(torch.allclose(one, turned(x), atol=1e-6) for one, x in zip(theirs, (q, k), strict=True))
