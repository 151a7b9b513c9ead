"""How fp8 would be scaled: refused."""

from __future__ import annotations

from typing import Any

from gaudi3_hpu_simulator.errors import refuse


class DelayedScaling:
    """Scales from the maxima of earlier steps: refused."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        raise refuse("fp8", "use bfloat16, or run on hardware")
