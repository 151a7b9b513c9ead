"""What torch's profiler takes on Gaudi beside its own arguments. Names: [bridge] 1.19, `activity_profiler`."""

from __future__ import annotations

from enum import Enum
from typing import Any

import torch
import torch.profiler

from gaudi3_hpu_simulator.errors import refuse

__all__ = ["DebugActivity", "register_habana_activity_profiler"]


class DebugActivity(Enum):
    """Calls below torch that Gaudi's profiler can list, too."""

    SYNAPSE_FUNCTION_CALLS = 1
    BRIDGE_FUNCTION_CALLS = 2


def register_habana_activity_profiler() -> None:
    """Let torch.profiler.profile take `debug_activities`, which are refused: nothing below torch runs here."""
    original = torch.profiler.profile
    if getattr(original, "habana", False):
        return

    class profile(original):  # type: ignore[valid-type, misc]
        """torch's profiler."""

        habana = True

        def __init__(self, *, debug_activities: Any = None, **options: Any) -> None:
            if debug_activities:
                raise refuse("calls of Synapse or of the bridge to list", "leave debug_activities out")
            super().__init__(**options)

    profile.__doc__ = original.__doc__
    torch.profiler.profile = profile  # type: ignore[misc]


register_habana_activity_profiler()
