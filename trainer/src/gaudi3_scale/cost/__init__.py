"""What a training costs: estimates for several platforms before it, and the bill of a job while it runs.

    from gaudi3_scale.cost import CostAnalyzer

compares platforms from inputs that all have a source and a date; docs/use/cost.md has the formulas. `bill` adds up the
money of a running job, `chargeback` that of many jobs. Nothing heavy is imported here, since the command line starts
with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gaudi3_scale.lazy import lazily

if TYPE_CHECKING:
    from gaudi3_scale.cost.analyzer import CostAnalyzer
    from gaudi3_scale.cost.comparison import Comparison
    from gaudi3_scale.cost.inputs import Inputs

__all__ = ["Comparison", "CostAnalyzer", "Inputs"]

__getattr__ = lazily(
    __name__,
    {"Comparison": "cost.comparison", "CostAnalyzer": "cost.analyzer", "Inputs": "cost.inputs"},
)
