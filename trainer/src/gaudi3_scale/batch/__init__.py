"""The largest batch that a device's memory holds.

`AdaptiveBatchFinder` finds it for a model of one's own, `train.micro_batch_size=auto` for a job.
"""

from gaudi3_scale.batch.finder import AdaptiveBatchFinder

__all__ = ["AdaptiveBatchFinder"]
