"""Training in fp8, which is refused: the module is there because libraries import it before they know."""

from __future__ import annotations

from typing import Any

from gaudi3_hpu_simulator.errors import refuse
from habana_frameworks.torch.hpex.experimental.transformer_engine import recipe

__all__ = ["Linear", "fp8_autocast", "recipe"]


def fp8_autocast(enabled: bool = False, *arguments: Any, **options: Any) -> Any:
    """Compute in fp8 inside a `with`: refused, unless it is turned off."""
    import contextlib

    if enabled:
        raise refuse("fp8", "use bfloat16, or run on hardware")
    return contextlib.nullcontext()


class Linear:
    """A linear layer in fp8: refused."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        raise refuse("fp8", "use torch.nn.Linear in bfloat16, or run on hardware")
