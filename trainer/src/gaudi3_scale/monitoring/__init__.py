"""Anomalies of a training while it runs: a slower step, waits for data, compilations, growing memory, stragglers.

    from gaudi3_scale.monitoring import PerformanceMonitor

finds them in a stream of readings, without torch; `gaudi3_scale.callbacks.MonitoringCallback` takes the readings of a
Trainer. `gaudi3-train fit` has both by default: see the section `monitoring` of `gaudi3-train config`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gaudi3_scale.lazy import lazily

if TYPE_CHECKING:
    from gaudi3_scale.monitoring.anomaly import KINDS, Anomaly, StepReading
    from gaudi3_scale.monitoring.monitor import PerformanceMonitor

__all__ = ["KINDS", "Anomaly", "PerformanceMonitor", "StepReading"]

__getattr__ = lazily(
    __name__,
    {
        "KINDS": "monitoring.anomaly",
        "Anomaly": "monitoring.anomaly",
        "PerformanceMonitor": "monitoring.monitor",
        "StepReading": "monitoring.anomaly",
    },
)
