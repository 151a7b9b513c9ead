"""The search for the largest batch, over devices that are made up: memory is a maximum of lines in the batch."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from gaudi3_scale.batch import cache
from gaudi3_scale.batch.scaling import Step, keep_samples, scaled_rate
from gaudi3_scale.batch.search import BatchTrial, FoundBatch, probe, search
from gaudi3_scale.config import load
from gaudi3_scale.errors import ConfigError


class Card:
    """A step of a batch takes max(floor, base + each x batch) bytes, and `limit` is all there is."""

    def __init__(self, floor: int, base: int, each: int, limit: int) -> None:
        self.floor, self.base, self.each, self.limit = floor, base, each, limit
        self.tried: list[int] = []
        self.overruns = 0

    def bytes(self, batch: int) -> int:
        return max(self.floor, self.base + self.each * batch)

    def trial(self, batch: int) -> BatchTrial:
        self.tried.append(batch)
        fits = self.bytes(batch) <= self.limit
        self.overruns += not fits
        return BatchTrial(batch, fits, self.bytes(batch) if fits else None)

    @property
    def largest(self) -> int:
        return (self.limit - self.base) // self.each


@pytest.mark.parametrize("seed", range(8))
def test_two_trials_find_the_largest_batch_without_running_out_of_memory(seed: int) -> None:
    """The prediction is up to 3 % above what a step takes, and never below."""
    source = random.Random(seed)
    for _ in range(100):
        base, each = source.randrange(10**6, 10**9), source.randrange(10**5, 10**7)
        card = Card(int(base * source.uniform(1, 1.5)), base, each, 0)
        card.limit = base + each * source.randrange(60, 4000) + source.randrange(each)
        card.limit = max(card.limit, int(1.04 * card.floor))
        above = source.uniform(1, 1.03)
        found = search(lambda batch, c=card, a=above: int(c.bytes(batch) * a), card.trial, card.limit, 2**16)  # type: ignore[misc]
        assert card.overruns == 0 and len(card.tried) <= 2
        assert 0.97 * card.largest - 1 <= found.batch <= card.largest


def test_a_prediction_that_is_too_low_is_made_good() -> None:
    card = Card(0, 1000, 10, 11_000)
    found = search(lambda batch: int(card.bytes(batch) * 0.97), card.trial, card.limit, 2**16)
    assert card.tried[0] > 1000 and card.overruns == 1 and len(card.tried) == 2
    assert found.batch == card.tried[1] and 850 <= found.batch <= 1000


def test_a_bound_that_is_far_from_the_memory_is_not_tried() -> None:
    card = Card(0, 1000, 10, 11_000)
    found = search(card.bytes, card.trial, card.limit, 64)
    assert (found.batch, card.tried, found.measured) == (64, [], None)


def test_without_a_prediction_a_few_batches_are_tried() -> None:
    card = Card(0, 1000, 10, 11_000)
    found = probe(card.trial, card.limit, 2**16)
    assert found.batch == 1000 and len(card.tried) <= 8 and card.overruns == 0


def test_a_device_that_holds_not_one_sample_is_said_so() -> None:
    card = Card(0, 10 * 2**20, 2**20, 4 * 2**20)
    with pytest.raises(ConfigError, match="A step with one sample takes 11 MiB by the prediction, and 4 MiB"):
        search(card.bytes, card.trial, card.limit, 2**16)
    with pytest.raises(ConfigError, match="A step with one sample does not fit"):
        probe(card.trial, card.limit, 2**16)


def test_accumulation_keeps_the_samples_of_a_step() -> None:
    assert keep_samples(12, 64, 2) == Step(8, 4, 64)
    assert keep_samples(100, 64, 2) == Step(32, 1, 64)
    assert keep_samples(12, 26, 2) == Step(1, 13, 26)
    with pytest.raises(ConfigError, match="global_batch_size is 63, which 2 process"):
        keep_samples(12, 63, 2)
    assert scaled_rate(1e-3, 256, 64, "linear") == pytest.approx(4e-3)
    assert scaled_rate(1e-3, 256, 64, "square_root") == pytest.approx(2e-3)


def test_what_was_found_is_remembered_by_all_that_matters(tmp_path: Path) -> None:
    found = FoundBatch(12, "predicted and tried", 100, 99, 101, [BatchTrial(12, True, 99)])
    cache.write(tmp_path, cache.key({"world_size": 2}), found)
    assert cache.read(tmp_path, cache.key({"world_size": 2})) == found
    assert cache.read(tmp_path, cache.key({"world_size": 4})) is None
    (tmp_path / cache.FILE).write_text("{")
    assert cache.read(tmp_path, cache.key({"world_size": 2})) is None


def test_auto_is_a_value_of_the_configuration() -> None:
    train = load(None, ["train.micro_batch_size=auto", "train.max_micro_batch_size=32"]).train
    assert train.finds_batch and train.model_dump(mode="json")["micro_batch_size"] == "auto"
    assert type(train).model_validate(train.model_dump()).finds_batch
    assert not load(None, ["train.micro_batch_size=12"]).train.finds_batch
    for wrong in ("train.micro_batch_size=0", "train.micro_batch_size=some", "train.max_micro_batch_size=3"):
        with pytest.raises(ConfigError):
            load(None, [wrong])


def test_a_batch_that_grows_is_not_found() -> None:
    stages = "train.batch_warmup=[{from_tokens: 0, samples_per_step: 8}]"
    with pytest.raises(ConfigError, match="micro_batch_size is auto and batch_warmup is given"):
        load(None, ["train.micro_batch_size=auto", stages])
