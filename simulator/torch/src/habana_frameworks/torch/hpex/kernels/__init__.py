"""Attention, rotary embeddings, and what is refused: losses and fp8."""

from __future__ import annotations

from gaudi3_hpu_simulator.errors import refusing_class
from habana_frameworks.torch.hpex.kernels.Fp8FusedSDPA import (
    fp8_fused_sdpa,
    fp8_sdpa_bwd_wrapper,
    fp8_sdpa_fwd_wrapper,
    gqa_output_reshape,
)
from habana_frameworks.torch.hpex.kernels.FusedSDPA import FusedSDPA
from habana_frameworks.torch.hpex.kernels.PySDPA import PySDPA, PySDPAHinted
from habana_frameworks.torch.hpex.kernels.RotaryPosEmbeddingHelper import (
    RotaryPosEmbeddingHelperV1,
    RotaryPosEmbeddingHelperV2,
    RotaryPosEmbeddingHelperV3,
    RotaryPosEmbeddingMode,
    apply_rotary_pos_emb,
)

__all__ = [
    "CTCLoss", "CustomSoftmax", "Fp8Ops", "FusedSDPA", "PySDPA", "PySDPAHinted", "RotaryPosEmbeddingHelperV1",
    "RotaryPosEmbeddingHelperV2", "RotaryPosEmbeddingHelperV3", "RotaryPosEmbeddingMode", "apply_rotary_pos_emb",
    "fp8_fused_sdpa", "fp8_sdpa_bwd_wrapper", "fp8_sdpa_fwd_wrapper", "gqa_output_reshape",
]  # fmt: skip

CTCLoss = refusing_class("CTCLoss", "use torch.nn.CTCLoss, or run on hardware", "apply")
CustomSoftmax = refusing_class("CustomSoftmax, an approximation", "use torch.softmax, or run on hardware", "apply")
Fp8Ops = refusing_class("fp8", "use bfloat16, or run on hardware", "cast_to_fp8_v2")
