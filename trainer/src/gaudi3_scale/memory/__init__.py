"""Memory of a training step: predicted, planned, and traded for computation.

`predict_step` counts a step's bytes on fake tensors, `plan_recompute` chooses what to recompute so that they fit a
budget, `MemoryOptimizer` and `AdvancedMemoryManager` are options for a module of one's own, and `apply` is what the job
does with its configuration.
"""

from gaudi3_scale.memory.advisor import MemoryOptimizer, MicroBatches
from gaudi3_scale.memory.apply import apply
from gaudi3_scale.memory.buckets import SequenceBuckets, best_buckets
from gaudi3_scale.memory.manager import AdvancedMemoryManager
from gaudi3_scale.memory.recompute import RecomputePlan, plan_recompute
from gaudi3_scale.memory.sentinel import ShapeSentinel
from gaudi3_scale.memory.tracker import StepMemory, predict_step

__all__ = [
    "AdvancedMemoryManager",
    "MemoryOptimizer",
    "MicroBatches",
    "RecomputePlan",
    "SequenceBuckets",
    "ShapeSentinel",
    "StepMemory",
    "apply",
    "best_buckets",
    "plan_recompute",
    "predict_step",
]
