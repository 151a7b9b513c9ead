"""Counts of compilations and the like."""

from habana_frameworks.torch.hpu.metrics.exceptions import (
    InvalidMetricDumpFileFormat,
    InvalidMetricDumpTrigger,
    MetricNotFound,
)
from habana_frameworks.torch.hpu.metrics.metrics import metric_global, metric_localcontext, metrics_dump

__all__ = [
    "InvalidMetricDumpFileFormat", "InvalidMetricDumpTrigger", "MetricNotFound", "metric_global",
    "metric_localcontext", "metrics_dump",
]  # fmt: skip
