"""What a device has beyond torch's own operations: fused attention and rotary embedding, graphs, pinned memory.

Beside `device.py`, the only place with names of a device's own libraries. Each question is answered with something to
call or with the reason why there is nothing. Names and argument orders of Habana's kernels are those of
`habana_frameworks.torch.hpex.kernels` and `.hpu` as used by optimum-habana 1.21; none has been run on a card.
"""

from __future__ import annotations

import functools
import importlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LOWER_LIST = "PT_HPU_AUTOCAST_LOWER_PRECISION_OPS_LIST"
"""Path of a file with the operations that autocast to bfloat16, in place of Habana's own list."""


@dataclass(frozen=True)
class Kernel:
    """Something of a device's, or the reason why it has none."""

    call: Callable[..., Any] | None
    about: str
    own: bool = False
    """The device's own, where torch has none for it."""


def fused_attention(device_type: str) -> Kernel:
    """Attention that never holds the (T, T) scores; called with (q, k, v, mask, dropout, causal, scale).

    q is (B, H, T, D), k and v may have a divisor of its heads; the result has q's shape.
    """
    return _ATTENTION.get(device_type, _torch_attention)()


def fused_rotary(device_type: str) -> Kernel:
    """Rotary embedding in one kernel; called with x (B, H, T, D), cos and sin (T, D) and positions (1, T)."""
    return _ROTARY.get(device_type, _torch_rotary)()


def lacks_grouped_products(device_type: str) -> str | None:
    """Why the products of all experts of a layer are not left to one call; None where they may be.

    transformers leaves them to `torch._grouped_mm` on every device. No public list of Intel's bridge has it, and what
    the bridge lacks runs on the host, or fails.
    """
    return "no public list of the bridge's operations has grouped products" if device_type == "hpu" else None


def inference_graph(device_type: str) -> Kernel:
    """Capture of a module's forward pass, to be replayed; called with the module."""
    return _GRAPHS.get(device_type, _no_graphs)()


def pinned_memory(device_type: str) -> Kernel:
    """Whether copies to the device gain from page-locked host memory; `call` moves a tensor there."""
    if device_type == "cpu":
        return Kernel(None, "batches are in host memory already")
    return Kernel(lambda tensor: tensor.pin_memory(), "batches in page-locked memory, copied unawaited")


@functools.cache
def locks_memory(device_type: str) -> bool:
    """Does the device gain from page-locked host memory, and does this torch give any?"""
    if device_type == "cpu":
        return False
    import torch

    try:
        torch.empty(1).pin_memory()
    except RuntimeError:
        return False
    return True


def autocast_overruled(device_type: str, operation: str) -> str | None:
    """Why this operation does not autocast to bfloat16 although the device's own list has it; None where it does.

    Habana's list, with bmm and matmul, is in docs.habana.ai, "Mixed Precision Training with PyTorch Autocast".
    """
    path = os.environ.get(LOWER_LIST) if device_type == "hpu" else None
    if not path:
        return None
    try:
        listed = operation in Path(path).read_text(encoding="utf-8").replace(",", " ").split()
    except (OSError, UnicodeDecodeError):
        return f"the file that {LOWER_LIST} names cannot be read"
    return None if listed else f"the file that {LOWER_LIST} names replaces Habana's list and has no {operation}"


def _torch_attention() -> Kernel:
    return Kernel(_scaled_dot_product, "torch's scaled_dot_product_attention, flash or memory-efficient where it can")


def _scaled_dot_product(q: Any, k: Any, v: Any, mask: Any, dropout: float, causal: bool, scale: float | None) -> Any:
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.nn.functional import scaled_dot_product_attention

    order = [SDPBackend.FLASH_ATTENTION, SDPBackend.CUDNN_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]
    grouped = q.shape[1] != k.shape[1]
    if grouped and mask is not None:  # with a mask, CUDA's fused kernels want as many heads in each
        k, v = (each.repeat_interleave(q.shape[1] // k.shape[1], dim=1) for each in (k, v))
        grouped = False
    with sdpa_kernel(order, set_priority=True):
        return scaled_dot_product_attention(q, k, v, mask, dropout, causal, scale=scale, enable_gqa=grouped)


def _habana_kernels() -> Any:
    return importlib.import_module("habana_frameworks.torch.hpex.kernels")


def _habana_attention() -> Kernel:
    try:
        fused = _habana_kernels().FusedSDPA
    except (ImportError, AttributeError):
        return Kernel(None, "habana_frameworks.torch.hpex.kernels has no FusedSDPA here")

    def attention(q: Any, k: Any, v: Any, mask: Any, dropout: float, causal: bool, scale: float | None) -> Any:
        # recompute=True: the softmax is computed again in backward instead of kept, as flash attention does
        return fused.apply(q, k, v, mask, dropout, causal, scale, "None", True)

    return Kernel(attention, "Habana's FusedSDPA with recomputed softmax", own=True)


def _habana_rotary() -> Kernel:
    try:
        fused = _habana_kernels().RotaryPosEmbeddingHelperV2
    except (ImportError, AttributeError):
        return Kernel(None, "habana_frameworks.torch.hpex.kernels has no RotaryPosEmbeddingHelperV2 here")

    def rotary(x: Any, cos: Any, sin: Any, positions: Any) -> Any:
        return fused.apply(x, cos[None, None], sin[None, None], positions)

    return Kernel(rotary, "Habana's fused rotary kernel", own=True)


def _torch_rotary() -> Kernel:
    return Kernel(None, "only an HPU has a rotary kernel of its own")


def _habana_graph() -> Kernel:
    if os.environ.get("PT_HPU_LAZY_MODE") != "1":
        return Kernel(None, "HPU graphs exist in lazy mode only, and PT_HPU_LAZY_MODE is not 1")
    try:
        wrap = importlib.import_module("habana_frameworks.torch.hpu").wrap_in_hpu_graph
    except (ImportError, AttributeError):
        return Kernel(None, "habana_frameworks.torch.hpu has no wrap_in_hpu_graph here")
    return Kernel(wrap, "the forward pass captured as an HPU graph per input shape, and replayed")


def _no_graphs() -> Kernel:
    return Kernel(None, "HPU graphs need an HPU")


_ATTENTION = {"hpu": _habana_attention}
_ROTARY = {"hpu": _habana_rotary}
_GRAPHS = {"hpu": _habana_graph}
