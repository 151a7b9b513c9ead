"""What a job needs and costs, before anything is rented.

`predict_peak` tells the bytes of a device for a configuration and a micro-batch, `max_batch` the largest micro-batch
that fits. Nothing heavy is imported here, since the command line starts with it.
"""

from __future__ import annotations

from gaudi3_scale.planning.peak import MemoryPeak, max_batch, predict_peak

__all__ = ["MemoryPeak", "max_batch", "predict_peak"]
