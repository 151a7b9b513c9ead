"""Calls with an argument of another kind are refused in one sentence that names what to give."""

from __future__ import annotations

from typing import Any

import pytest

from gaudi3_scale.errors import ConfigError
from gaudi3_scale.optimization import BatchOptimizer
from gaudi3_scale.tuning import AutoTuner


def test_a_batch_optimizer_of_a_model_names_the_number_that_it_takes() -> None:
    model: Any = object()
    with pytest.raises(ConfigError, match=r"largest is of type object: .* AdaptiveBatchFinder finds"):
        BatchOptimizer(model)


def test_a_tuner_of_a_model_and_its_data_names_the_settings_that_it_takes() -> None:
    model: Any = object()
    dataset: Any = [1, 2]
    with pytest.raises(ConfigError, match="config is of type object: AutoTuner takes the settings of a job"):
        AutoTuner(model, dataset)
