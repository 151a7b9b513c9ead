"""The public classes of planning, tuning, cost and watching: each has an example of its own, which its tests run."""

from __future__ import annotations

import doctest
import importlib

import pytest

NAMES = (
    "gaudi3_scale.batch.AdaptiveBatchFinder",
    "gaudi3_scale.cost.CostAnalyzer",
    "gaudi3_scale.distributed.OptimizedDDP",
    "gaudi3_scale.monitoring.PerformanceMonitor",
    "gaudi3_scale.optimization.BatchOptimizer",
    "gaudi3_scale.tuning.AutoTuner",
)


@pytest.mark.parametrize("name", NAMES)
def test_a_class_has_an_example_where_it_is_imported_from(name: str) -> None:
    module, _, last = name.rpartition(".")
    found = getattr(importlib.import_module(module), last)
    (test,) = doctest.DocTestFinder(recurse=False).find(found, last)
    assert any(last in example.source for example in test.examples), f"help({last}) shows no example"
