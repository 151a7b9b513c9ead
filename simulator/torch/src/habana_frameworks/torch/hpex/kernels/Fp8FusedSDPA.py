"""FusedSDPA in fp8, which is refused; its helpers are those of FusedSDPA."""

from __future__ import annotations

from gaudi3_hpu_simulator.errors import refusing, refusing_class
from habana_frameworks.torch.hpex.kernels.FusedSDPA import gqa_input_reshape_fwd, gqa_output_reshape, is_gqa

__all__ = [
    "Fp8FusedSDPA", "fp8_fused_sdpa", "fp8_sdpa_bwd_wrapper", "fp8_sdpa_fwd_wrapper", "gqa_input_reshape_fwd",
    "gqa_output_reshape", "is_gqa",
]  # fmt: skip

_INSTEAD = "use FusedSDPA in bfloat16, or run on hardware"

Fp8FusedSDPA = refusing_class("Fp8FusedSDPA (fp8)", _INSTEAD, "apply")
fp8_fused_sdpa = refusing("fp8_fused_sdpa (fp8)", _INSTEAD)
fp8_sdpa_fwd_wrapper = refusing("fp8_sdpa_fwd_wrapper (fp8)", _INSTEAD)
fp8_sdpa_bwd_wrapper = refusing("fp8_sdpa_bwd_wrapper (fp8)", _INSTEAD)
