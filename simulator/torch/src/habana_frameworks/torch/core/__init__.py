"""`htcore`: step marks and the mode. In lazy mode, too, operations run as they are issued; the marks are counted."""

from __future__ import annotations

import os
import warnings
from typing import Any

import habana_frameworks.torch  # noqa: F401
import habana_frameworks.torch.hpu as hpu
from gaudi3_hpu_simulator.errors import refuse
from habana_frameworks.torch import mode
from habana_frameworks.torch.core import quantization

__all__ = [
    "hpu", "hpu_inference_initialize", "hpu_initialize", "hpu_set_env", "hpu_set_inference_env",
    "hpu_teardown_inference_env", "is_lazy", "mark_step", "marked_steps", "quantization",
]  # fmt: skip

_marks = 0
_warned = False


def is_lazy() -> bool:
    """Whether PT_HPU_LAZY_MODE asked for lazy mode."""
    return mode.LAZY


def mark_step(device_str: str = "", sync: bool = False) -> None:
    """End the graph being collected, in lazy mode: counted here. In eager mode it does nothing, and warns once."""
    global _marks, _warned
    if mode.LAZY:
        _marks += 1
    elif not _warned:
        _warned = True
        warnings.warn("mark_step has no effect in eager mode (PT_HPU_LAZY_MODE=0)", stacklevel=2)


def marked_steps() -> int:
    """How often `mark_step` ended a graph in this process. Of the simulator: Habana's package does not have it."""
    return _marks


def hpu_set_env() -> None:
    """Optimum's preparation of inference: nothing to prepare."""


def hpu_initialize(*arguments: Any, **options: Any) -> None:
    """Optimum's preparation of a model for inference: nothing to prepare."""


def hpu_set_inference_env() -> None:
    """Mark the process as one that infers, as the flag PT_HPU_INFERENCE_MODE does."""
    os.environ["PT_HPU_INFERENCE_MODE"] = "1"


def hpu_teardown_inference_env() -> None:
    """Undo `hpu_set_inference_env`."""
    os.environ.pop("PT_HPU_INFERENCE_MODE", None)


def hpu_inference_initialize(model: Any = None, mark_only_scales_as_const: bool = False, **options: Any) -> None:
    """Prepare a model for (quantised) inference: only the quantised part would do something, and it is refused."""
    if os.environ.get("QUANT_CONFIG") or mark_only_scales_as_const:
        raise refuse("fp8 inference", "run without QUANT_CONFIG, or on hardware")
