"""Switches of the bridge's compiler, and other small questions. Names: [bridge] 1.19, `hpu/__init__.py`.

Nothing is compiled here, so most switches do nothing but keep their state.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any

import torch

from gaudi3_hpu_simulator.errors import refusing
from gaudi3_hpu_simulator.extension import extension
from habana_frameworks.torch.hpu._utils import NAME, _get_device_index, valid
from habana_frameworks.torch.internal import bridge_config

__all__ = [
    "can_device_access_peer", "disable_const_section_serialization", "disable_dynamic_shape",
    "disable_inference_mode", "disable_matmul3d_2d_reshape", "disable_optim_output_sif", "disable_quantization",
    "enable_const_section_serialization", "enable_dynamic_shape", "enable_inference_mode",
    "enable_matmul3d_2d_reshape", "enable_optim_output_sif", "enable_quantization", "enable_recompute_sdp",
    "get_arch_list", "get_dynamic_shape_status", "get_gencode_flags", "get_sync_debug_mode",
    "recompute_sdp_enabled", "sdp_kernel", "set_autocast_hpu_dtype", "set_autocast_hpu_enabled",
    "set_sync_debug_mode",
]  # fmt: skip

_INFERENCE = "PT_HPU_INFERENCE_MODE"
_SYNCHRONOUS = "PT_ENABLE_HABANA_STREAMASYNC"
_recompute = False


def enable_dynamic_shape() -> None:
    """Let shapes change without a new graph: they may always change here."""
    bridge_config.set_pt_hpu_enable_refine_dynamic_shapes(True)


def disable_dynamic_shape() -> None:
    """Undo `enable_dynamic_shape`."""
    bridge_config.set_pt_hpu_enable_refine_dynamic_shapes(False)


def get_dynamic_shape_status() -> bool:
    """Whether dynamic shapes are switched on."""
    return bool(bridge_config.get_pt_hpu_enable_refine_dynamic_shapes())


def enable_inference_mode() -> None:
    """Mark the process as one that infers."""
    os.environ[_INFERENCE] = "1"


def disable_inference_mode() -> None:
    """Undo `enable_inference_mode`."""
    os.environ.pop(_INFERENCE, None)


def enable_optim_output_sif() -> None:
    """Nothing to do: shapes are torch's own."""


def disable_optim_output_sif() -> None:
    """Nothing to do: shapes are torch's own."""


def enable_matmul3d_2d_reshape() -> None:
    """Nothing to do: matrix products are the CPU's."""


def disable_matmul3d_2d_reshape() -> None:
    """Nothing to do: matrix products are the CPU's."""


def enable_const_section_serialization(path: Any, clear_path: bool, use_compression: bool) -> None:
    """Nothing to do: there are no compiled graphs whose constants could be kept in files."""


def disable_const_section_serialization() -> None:
    """Undo `enable_const_section_serialization`."""


enable_quantization = refusing("quantised inference (enable_quantization)", "run unquantised, or on hardware")


def disable_quantization() -> None:
    """Nothing to do: quantisation cannot be switched on."""


def set_sync_debug_mode(debug_mode: Any) -> None:
    """Keep the variable that Gaudi reads; operations are synchronous here."""
    os.environ[_SYNCHRONOUS] = str(debug_mode)


def get_sync_debug_mode() -> int:
    """The variable of `set_sync_debug_mode`."""
    return int(os.environ[_SYNCHRONOUS])


def set_autocast_hpu_enabled(enabled: bool) -> None:
    """As torch.set_autocast_enabled."""
    torch.set_autocast_enabled("hpu", enabled)


def set_autocast_hpu_dtype(dtype: torch.dtype) -> None:
    """As torch.set_autocast_dtype."""
    torch.set_autocast_dtype("hpu", dtype)


def enable_recompute_sdp(enabled: bool) -> None:
    """Let FusedSDPA recompute its softmax in the backward pass, which changes no result."""
    global _recompute
    _recompute = bool(enabled)


def recompute_sdp_enabled() -> bool:
    """What `enable_recompute_sdp` was given."""
    return _recompute


@contextlib.contextmanager
def sdp_kernel(enable_recompute: bool = True) -> Iterator[dict[str, Any]]:
    """`enable_recompute_sdp` inside a `with`."""
    before = recompute_sdp_enabled()
    enable_recompute_sdp(enable_recompute)
    try:
        yield {}
    finally:
        enable_recompute_sdp(before)


def can_device_access_peer(device: Any, peer_device: Any) -> bool:
    """Whether one device reaches another: a process has one, and asking about one alone is an error."""
    count = extension().visible_cards()
    indices = [_get_device_index(each, optional=True) for each in (device, peer_device)]
    for index in indices:
        assert 0 <= index < count, f"hpu:{index} does not exist."
    assert indices[0] != indices[1], f"Both devices are hpu:{indices[0]}."
    return True


def get_gencode_flags() -> str:
    """What the library was compiled for: empty."""
    return ""


def get_arch_list() -> list[str]:
    """The generation, by its name."""
    valid()
    return [NAME]
