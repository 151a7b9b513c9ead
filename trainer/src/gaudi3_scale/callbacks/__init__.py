"""Callbacks of Lightning: those of any Trainer by name below, those of `gaudi3-train fit` besides (`step_order`)."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gaudi3_scale.callbacks.gaudi_checkpoint import GaudiCheckpoint
    from gaudi3_scale.callbacks.interruption_callback import InterruptionCallback
    from gaudi3_scale.callbacks.status_callback import StatusCallback
    from gaudi3_scale.callbacks.throughput_callback import ThroughputCallback

_HOMES = {
    "GaudiCheckpoint": "gaudi3_scale.callbacks.gaudi_checkpoint",
    "InterruptionCallback": "gaudi3_scale.callbacks.interruption_callback",
    "StatusCallback": "gaudi3_scale.callbacks.status_callback",
    "ThroughputCallback": "gaudi3_scale.callbacks.throughput_callback",
}

__all__ = ["GaudiCheckpoint", "InterruptionCallback", "StatusCallback", "ThroughputCallback"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
