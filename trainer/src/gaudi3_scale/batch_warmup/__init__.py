"""`gaudi3-train batch-warmup`: how large may the batch be, and from when on?

The critical batch is measured, not estimated from the noise of gradients, which is no reliable guide to it (Ai2, arXiv
2505.23971, which measures by branches too). From checkpoints of the job at its own batch, short branches go on with
once, twice, four times ... that batch for the same number of tokens. The largest batch whose held-out loss is no worse
than that of the job's own batch, beyond the noise between seeds, is the critical one there.
"""

from gaudi3_scale.batch_warmup.points import Branch, CriticalPoint, schedule_of

__all__ = ["Branch", "CriticalPoint", "schedule_of"]
