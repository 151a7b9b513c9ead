"""Where scales of fp8 would be kept: refused, but for a name."""

from enum import IntEnum

from gaudi3_hpu_simulator.errors import refusing_class


class FP8FwdTensors(IntEnum):
    """Tensors of the forward pass that have scales."""

    GEMM1_INPUT = 0


FP8TensorMeta = refusing_class("fp8 (FP8TensorMeta)", "use bfloat16, or run on hardware")
