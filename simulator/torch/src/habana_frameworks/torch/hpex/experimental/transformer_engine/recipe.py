"""How fp8 would be scaled: refused, but for the formats' names."""

from __future__ import annotations

from enum import Enum, auto

from gaudi3_hpu_simulator.errors import refusing_class


class Format(Enum):
    """Formats of fp8. Their values are not public: compare the members."""

    E5M2 = auto()
    HYBRID = auto()


DelayedScaling = refusing_class("fp8", "use bfloat16, or run on hardware")
