"""Attention and rotary embeddings."""

from __future__ import annotations

from typing import Any

from gaudi3_hpu_simulator.errors import refuse
from habana_frameworks.torch.hpex.kernels.attention import FusedSDPA
from habana_frameworks.torch.hpex.kernels.rotary import (
    RotaryPosEmbeddingHelperV1,
    RotaryPosEmbeddingHelperV2,
    RotaryPosEmbeddingHelperV3,
    RotaryPosEmbeddingMode,
    apply_rotary_pos_emb,
)

__all__ = [
    "CTCLoss", "Fp8Ops", "FusedSDPA", "RotaryPosEmbeddingHelperV1", "RotaryPosEmbeddingHelperV2",
    "RotaryPosEmbeddingHelperV3", "RotaryPosEmbeddingMode", "apply_rotary_pos_emb",
]  # fmt: skip


class CTCLoss:
    """Habana's connectionist temporal classification: refused."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        raise refuse("CTCLoss", "use torch.nn.CTCLoss, or run on hardware")


class Fp8Ops:
    """Habana's fp8 operations: refused."""

    @staticmethod
    def cast_to_fp8_v2(*arguments: Any, **options: Any) -> None:
        """Cast to fp8 with scales: refused."""
        raise refuse("fp8", "use bfloat16, or run on hardware")
