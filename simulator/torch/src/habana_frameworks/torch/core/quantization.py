"""Preparation of inference. Signatures: [bridge] 1.19, `core/quantization.py`."""

from __future__ import annotations

import os
from typing import Any, TypeVar

from gaudi3_hpu_simulator.errors import refuse
from habana_frameworks.torch.internal import fuse_conv_bn

_Model = TypeVar("_Model")
_INFERENCE = "PT_HPU_INFERENCE_MODE"


def hpu_set_inference_env(model: _Model | None = None) -> _Model | None:
    """Mark the process as one that infers; a model comes back with its batch normalisation folded into convolutions."""
    from habana_frameworks.torch import hpu

    hpu.enable_inference_mode()
    return None if model is None else fuse_conv_bn.fuse(model)


def hpu_teardown_inference_env() -> None:
    """Undo `hpu_set_inference_env`."""
    from habana_frameworks.torch import hpu

    hpu.disable_inference_mode()


def hpu_inference_initialize(
    model: Any = None, mark_only_scales_as_const: bool = False, optimizer: Any = None, args: Any = None
) -> None:
    """Prepare a model for (quantised) inference: only the quantised part would do something, and it is refused."""
    from habana_frameworks.torch import hpu

    if os.environ.get("QUANT_CONFIG") or mark_only_scales_as_const:
        raise refuse("fp8 inference", "run without QUANT_CONFIG, or on hardware")
    hpu.enable_inference_mode()


def hpu_set_env(model: _Model | None = None) -> _Model | None:
    """Older name of `hpu_set_inference_env`."""
    return hpu_set_inference_env(model)


def hpu_initialize(
    model: Any = None, mark_only_scales_as_const: bool = False, optimizer: Any = None, args: Any = None
) -> None:
    """Older name of `hpu_inference_initialize`."""
    hpu_inference_initialize(model, mark_only_scales_as_const, optimizer, args)


def hpu_reset_env() -> None:
    """Older name of `hpu_teardown_inference_env`."""
    hpu_teardown_inference_env()


def _mark_params_as_const(model: Any = None, only_scales: bool = False, console_prints: bool = False) -> None:
    """Nothing to do: there is no graph compiler that would fold constants."""


def _check_params_as_const(model: Any = None, only_scales: bool = False) -> None:
    """Nothing to do: see `_mark_params_as_const`."""
