"""Callbacks of Lightning: those of any Trainer by name below, those of `gaudi3-train fit` besides (`step_order`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gaudi3_scale.lazy import lazily

if TYPE_CHECKING:
    from gaudi3_scale.callbacks.garbage_callback import GarbageCallback
    from gaudi3_scale.callbacks.gaudi_checkpoint import GaudiCheckpoint
    from gaudi3_scale.callbacks.interruption_callback import InterruptionCallback
    from gaudi3_scale.callbacks.monitoring_callback import MonitoringCallback
    from gaudi3_scale.callbacks.status_callback import StatusCallback
    from gaudi3_scale.callbacks.throughput_callback import ThroughputCallback

__all__ = [
    "GarbageCallback",
    "GaudiCheckpoint",
    "InterruptionCallback",
    "MonitoringCallback",
    "StatusCallback",
    "ThroughputCallback",
]

__getattr__ = lazily(
    __name__,
    {
        "GarbageCallback": "callbacks.garbage_callback",
        "GaudiCheckpoint": "callbacks.gaudi_checkpoint",
        "InterruptionCallback": "callbacks.interruption_callback",
        "MonitoringCallback": "callbacks.monitoring_callback",
        "StatusCallback": "callbacks.status_callback",
        "ThroughputCallback": "callbacks.throughput_callback",
    },
)
