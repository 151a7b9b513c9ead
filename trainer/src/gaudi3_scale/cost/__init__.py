"""What a training costs: estimates for several platforms before it, and the bill of a job while it runs.

    from gaudi3_scale.cost import CostAnalyzer

compares platforms from inputs that all have a source and a date; docs/cost.md has the formulas. `bill` adds up the
money of a running job, `chargeback` that of many jobs. Nothing heavy is imported here, since the command line starts
with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gaudi3_scale.cost.analyzer import Comparison, CostAnalyzer
    from gaudi3_scale.cost.inputs import Inputs

__all__ = ["Comparison", "CostAnalyzer", "Inputs"]


def __getattr__(name: str) -> Any:
    if name in ("Comparison", "CostAnalyzer"):
        from gaudi3_scale.cost import analyzer

        return getattr(analyzer, name)
    if name == "Inputs":
        from gaudi3_scale.cost.inputs import Inputs

        return Inputs
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
