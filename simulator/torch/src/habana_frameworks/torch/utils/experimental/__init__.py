"""The card's generation, and what libraries ask about memory and recompilation.

Names: [bridge] 1.19, `utils/experimental/__init__.py` and `csrc/bindings.cpp`.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import torch

import habana_frameworks.torch.hpu as hpu
from gaudi3_hpu_simulator.errors import refuse
from habana_frameworks.torch.utils.experimental.detect_recompilation import (
    const_shape_dataloader,
    data_dynamicity,
    detect_recompilation_auto_model,
)

__all__ = [
    "const_shape_dataloader", "data_dynamicity", "detect_recompilation_auto_model", "hpu", "synDeviceType",
]  # fmt: skip


class synDeviceType(IntEnum):
    """Generations by Synapse's names. Their numbers are not Synapse's: compare the members, not the values."""

    synDeviceGaudi = 1
    synDeviceGaudi2 = 2
    synDeviceGaudi3 = 3


def _get_device_type() -> synDeviceType:
    return synDeviceType.synDeviceGaudi3


def _is_fp16_supported() -> bool:
    """Whether this generation computes in float16: the first one does not."""
    return _get_device_type() != synDeviceType.synDeviceGaudi


def _is_available() -> bool:
    return hpu.is_available()


def _data_ptr(t: torch.Tensor) -> int:
    """Address of a tensor's data; 0 for an empty one."""
    return t.data_ptr() if t.numel() else 0


def _compute_stream() -> int:
    raise refuse("address of a stream", "use torch.hpu.current_stream()")


def _record_params(model: Any = None, optimizer: Any = None, force_model_update: bool = False) -> None:
    """Nothing to do: it names tensors for logs of the card's memory, which are not kept here."""


def _record_param(
    name: str, t_start: int, t_size: int, is_param: bool = False, is_grad: bool = False, is_optim_state: bool = False
) -> None:
    """Nothing to do: see `_record_params`."""


def _set_profiler_tracer_memory(device_id: int) -> int:
    raise refuse("profiler of the card", "use torch.profiler, or run on hardware")


def _reset_device_memory() -> None:
    raise refuse("pool of memory to reset", "delete the tensors")
