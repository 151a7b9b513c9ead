"""Training in fp8, which is refused: the module is there because libraries import it before they know."""

from __future__ import annotations

import contextlib
from typing import Any

from gaudi3_hpu_simulator.errors import refuse, refusing_class
from habana_frameworks.torch.hpex.experimental.transformer_engine import (
    cpp_extensions,
    distributed,
    fp8,
    recipe,
    utils,
)

__all__ = ["FusedAttention", "Linear", "cpp_extensions", "distributed", "fp8", "fp8_autocast", "recipe", "utils"]


def fp8_autocast(enabled: bool = False, *arguments: Any, **options: Any) -> Any:
    """Compute in fp8 inside a `with`: refused, unless it is turned off."""
    if enabled:
        raise refuse("fp8", "use bfloat16, or run on hardware")
    return contextlib.nullcontext()


Linear = refusing_class("fp8 (Linear)", "use torch.nn.Linear in bfloat16, or run on hardware")
FusedAttention = refusing_class("fp8 (FusedAttention)", "use hpex.kernels.FusedSDPA in bfloat16, or run on hardware")
