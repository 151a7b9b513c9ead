"""Where a pass stands among the others, and what it is handed."""

from enum import Enum, auto

from gaudi3_hpu_simulator.errors import refusing_class


class OptimizationPassPlacement(Enum):
    """Before the partitioner, or within it."""

    PRE_PARTITIONER = auto()
    PARTITIONER = auto()


OptimizerContext = refusing_class("OptimizerContext, because nothing is compiled", "run on hardware")
