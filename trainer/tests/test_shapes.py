"""Sequence buckets with the least padding, and the watch over input shapes."""

from __future__ import annotations

import itertools
import logging
import random

import pytest
import torch

from gaudi3_scale.errors import ConfigError
from gaudi3_scale.memory import SequenceBuckets, ShapeSentinel, best_buckets


def padded(lengths: list[int], buckets: tuple[int, ...] | list[int]) -> int:
    return sum(min(bucket for bucket in buckets if bucket >= length) for length in lengths)


@pytest.mark.parametrize("multiple", [1, 8])
def test_best_buckets_pad_least(multiple: int) -> None:
    for seed in range(20):
        numbers = random.Random(seed)
        lengths = [numbers.randint(1, 60) for _ in range(12)]
        count = numbers.randint(1, 4)
        found = best_buckets(lengths, count, multiple)
        candidates = sorted({-(-length // multiple) * multiple for length in lengths})
        best = min(
            padded(lengths, chosen)
            for size in range(1, count + 1)
            for chosen in itertools.combinations(candidates, size)
            if chosen[-1] == candidates[-1]
        )
        assert found == sorted(set(found)) and len(found) <= count
        assert padded(lengths, found) == best


def test_bucket_edges() -> None:
    assert best_buckets([], 3) == []
    assert best_buckets({7: 100}, 3, 8) == [8]
    assert [SequenceBuckets([4, 8]).bucket(length) for length in (1, 4, 5, 8)] == [4, 4, 8, 8]
    with pytest.raises(ConfigError, match=r"^sequence_buckets is \[8, 4\]: give ascending lengths of at least 1\.$"):
        SequenceBuckets([8, 4])
    with pytest.raises(ConfigError, match=r"^The batch has tensors of lengths \[2, 3\]: bucketing needs"):
        SequenceBuckets([4]).pad({"a": torch.ones(1, 2), "b": torch.ones(1, 3)})
    with pytest.raises(ConfigError, match=r"^0 buckets of multiples of 1 were asked for"):
        best_buckets([1], 0)


def test_sentinel_counts_warns_on_growth_and_suggests(caplog: pytest.LogCaptureFixture) -> None:
    sentinel = ShapeSentinel(limit=3, buckets=2, multiple=10)
    with caplog.at_level(logging.WARNING):
        for _ in range(5):
            sentinel.observe({"ids": torch.ones(2, 10)})
        assert sentinel.observe({"ids": torch.ones(2, 11)}) and sentinel.observe({"ids": torch.ones(2, 12)})
        assert not caplog.records
        sentinel.observe({"ids": torch.ones(2, 31)})  # the fourth shape is one too many
        assert len(caplog.records) == 1
        for length in (32, 33, 34):
            sentinel.observe({"ids": torch.ones(2, length)})
        assert len(caplog.records) == 1
        sentinel.observe({"ids": torch.ones(2, 35)})  # twice as many as at the warning before
        assert len(caplog.records) == 2
    assert (sentinel.steps, len(sentinel.signatures), sentinel.suggest()) == (12, 8, [10, 40])
    tokens = 5 * 10 + 11 + 12 + 31 + 32 + 33 + 34 + 35
    assert sentinel.waste([10, 40]) == pytest.approx(1 - tokens / (5 * 10 + 7 * 40))
    assert sentinel.report() == (
        "8 distinct input shape(s) in 12 step(s), each of which a graph-compiling device compiles: sequence buckets "
        f"10, 40 would make 2 of the 8 lengths, with {1 - tokens / 330:.1%} padding."
    )


def test_sentinel_tells_dtypes_and_names_apart() -> None:
    sentinel = ShapeSentinel()
    assert sentinel.observe([torch.ones(2, 3)])
    assert not sentinel.observe([torch.zeros(2, 3)])
    assert sentinel.observe([torch.ones(2, 3, dtype=torch.int64)])
    assert sentinel.observe({"x": torch.ones(2, 3)})
    assert sentinel.report() == "3 distinct input shape(s) in 4 step(s); bucketing would not make them fewer."
