"""Choice of a transformers model's attention: as built, `sdpa`, `eager`, or the device's fused kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from torch import Tensor, nn

from gaudi3_scale.errors import ConfigError
from gaudi3_scale.hpu.kernels import Kernel, fused_attention

Attention = Literal["auto", "sdpa", "eager", "flash"]
ATTENTIONS: tuple[Attention, ...] = ("auto", "sdpa", "eager", "flash")
FUSED = "gaudi_fused"
"""Name of our function in transformers' registries of attention and mask functions."""
_KERNELS: dict[str, Callable[..., Any]] = {}
"""By type of device."""


def use_attention(model: nn.Module, wanted: Attention, device_type: str, kernel: Kernel | None = None) -> str:
    """Set the attention of every transformers model in `model`; one sentence on what that does.

    `flash` is the device's fused kernel, `auto` that kernel where the device has one of its own, else as built.
    `kernel` stands for the device's where a step of another device is predicted.
    """
    if wanted not in ATTENTIONS:
        raise ConfigError(f"attention is {wanted!r}: give one of {', '.join(ATTENTIONS)}.")
    models = _settable(model)
    if not models:
        return f"{type(model).__name__} is no transformers model, so its attention stays as it is written"
    before = {str(each.config._attn_implementation) for each in models}
    kernel = kernel or fused_attention(device_type)
    if wanted == "auto":
        wanted = "flash" if kernel.own else "auto"
    if wanted == "auto":
        return f"as built ({', '.join(sorted(before))})"
    if wanted == "flash" and kernel.call is None:
        return f"as built ({', '.join(sorted(before))}): {kernel.about}"
    name = FUSED if wanted == "flash" else wanted
    if name == FUSED:
        _register()
        assert kernel.call is not None
        _KERNELS[device_type] = kernel.call  # looked up here once: an import within a block would break its graph
    for each in models:
        each.set_attn_implementation(name)
    after = f"{kernel.about}" if name == FUSED else name
    return f"{after} instead of {', '.join(sorted(before))}"


def _settable(model: nn.Module) -> list[Any]:
    """The outermost transformers models that let their attention be set."""
    if getattr(model, "set_attn_implementation", None) is not None:
        able: Any = model
        return [able] if able._can_set_attn_implementation() else []
    return [found for child in model.children() for found in _settable(child)]


def _register() -> None:
    from transformers import AttentionInterface
    from transformers.masking_utils import AttentionMaskInterface, sdpa_mask

    AttentionInterface.register(FUSED, _attend)
    AttentionMaskInterface.register(FUSED, sdpa_mask)


def _attend(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    is_causal: bool | None = None,
    **kwargs: Any,
) -> tuple[Tensor, None]:
    """As transformers calls it: q (B, H, T, D), k and v with perhaps fewer heads; gives (B, T, H, D)."""
    kernel = _KERNELS.get(query.device.type)
    if kernel is None:  # of a prediction, whose tensors are on another device than the training's
        kernel = fused_attention(query.device.type).call
        assert kernel is not None, "chosen only where there is one"
    causal = is_causal if is_causal is not None else getattr(module, "is_causal", True)
    causal = bool(causal) and attention_mask is None and query.shape[2] > 1
    out: Tensor = kernel(query, key, value, attention_mask, dropout, causal, scaling)
    return out.transpose(1, 2).contiguous(), None
