"""Data parallelism that measures its link: what `gaudi3_scale.distributed.OptimizedDDP` is made of."""
