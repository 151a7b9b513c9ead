"""What is measured of a published shape is what a job with it trains on."""

from __future__ import annotations

import pytest

from gaudi3_benchmark.workloads import default_size
from gaudi3_scale.config import load
from gaudi3_scale.config.shapes import SHAPES

PUBLISHED = [name for name in SHAPES if not name.endswith("-tiny")]


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_published_shape_has_the_length_that_the_benchmark_measures(name: str) -> None:
    model = load(None, [f"model.name={name}"]).model
    assert model.sequence_length == default_size(name) > 128
    assert f"tokens (that of {name}; model.sequence_length sets it)" in model.length_words
