"""The loader's face for one's own module, reading ahead, and masking."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lightning.pytorch as pl
import numpy as np
import pytest
import torch
from conftest import QUIET
from torch.utils.data import DataLoader
from torchdata.stateful_dataloader import StatefulDataLoader

from gaudi3_scale.config import DataConfig
from gaudi3_scale.data import PackedDataset, RankBatches, Samples, collect
from gaudi3_scale.data.masking import IGNORED, Masking
from gaudi3_scale.data.prefetch import Prefetched
from gaudi3_scale.errors import ConfigError


@pytest.fixture
def make(text: Path, tmp_path: Path) -> Any:
    """Makes the dataset of the text."""

    def dataset(**settings: Any) -> PackedDataset:
        given = {"sequence_length": 256, "batch_size": 4, "seed": 3, "rank": 0, "world_size": 1, **settings}
        return PackedDataset(text, tmp_path / "data", **given)

    return dataset


def test_an_epoch_has_every_sample_once_and_the_next_another_order(make: Any) -> None:
    data = make(batch_size=1)
    first, second = list(data), list(data)
    assert len(first) == len(second) == len(data) > 400
    assert first[0].shape == (1, 257) and first[0].dtype == torch.int64
    rows = [{tuple(batch[0].tolist()) for batch in epoch} for epoch in (first, second)]
    assert rows[0] == rows[1] and len(rows[0]) == len(data)
    assert not torch.equal(torch.cat(first), torch.cat(second))


@pytest.mark.parametrize("prefetch", [0, 3])
def test_it_goes_on_where_it_was(make: Any, prefetch: int) -> None:
    whole = list(make())
    data = make(prefetch=prefetch)
    taken = list(itertools.islice(data, 7))
    state = data.state_dict()
    assert state["samples"] == 28
    other = make(prefetch=prefetch)
    other.load_state_dict(state)
    assert torch.equal(torch.cat(whole), torch.cat([*taken, *other]))
    assert other.state_dict()["samples"] == len(whole) * 4


def test_the_order_is_one_for_any_number_of_ranks(make: Any) -> None:
    alone = torch.cat(list(itertools.islice(make(), 12)))
    pair = [make(batch_size=2, rank=rank, world_size=2) for rank in range(2)]
    for data in pair:  # after five steps of one process with twice the batch
        data.load_state_dict(make().state_dict() | {"samples": 20})
    shared = [batch for step in zip(*(itertools.islice(data, 7) for data in pair), strict=True) for batch in step]
    assert torch.equal(alone[20:48], torch.cat(shared))


@pytest.mark.parametrize("workers", [0, 1, 2])
def test_loaders_of_torch_deliver_the_same_and_resume(make: Any, workers: int) -> None:
    whole = list(make())
    settings: dict[str, Any] = {"batch_size": None, "num_workers": workers}
    if workers:
        settings["multiprocessing_context"] = "fork"
    assert torch.equal(torch.cat(whole), torch.cat(list(DataLoader(make(), **settings))))
    loader = StatefulDataLoader(make(), **settings)
    taken = list(itertools.islice(loader, 5))
    resumed = StatefulDataLoader(make(), **settings)
    resumed.load_state_dict(loader.state_dict())
    assert torch.equal(torch.cat(whole), torch.cat([*taken, *resumed]))


class Remembering(pl.LightningModule):
    """Remembers what it was given."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(1))
        self.seen: list[torch.Tensor] = []

    def training_step(self, batch: torch.Tensor, batch_idx: int) -> torch.Tensor:
        self.seen.append(batch.clone())
        return self.weight.sum() * 0

    def configure_optimizers(self) -> Any:
        return torch.optim.SGD(self.parameters(), 0.1)


@pytest.mark.parametrize("wrapped", [False, True])
def test_a_lightning_trainer_resumes_within_an_epoch(make: Any, tmp_path: Path, wrapped: bool) -> None:
    def fit(steps: int, checkpoint: Path | None = None) -> tuple[pl.Trainer, Remembering]:
        module, data = Remembering(), make(batch_size=20)
        trainer = pl.Trainer(
            accelerator="cpu",
            max_steps=steps,
            **QUIET,
            default_root_dir=tmp_path,
        )
        trainer.fit(module, StatefulDataLoader(data, batch_size=None) if wrapped else data, ckpt_path=checkpoint)
        return trainer, module

    _, whole = fit(40)
    assert len(make(batch_size=20)) == 35  # so that the last of these are of the second epoch
    trainer, first = fit(11)
    trainer.save_checkpoint(tmp_path / "half.ckpt")
    _, second = fit(40, tmp_path / "half.ckpt")
    assert torch.equal(torch.cat(whole.seen), torch.cat([*first.seen, *second.seen]))


def test_the_state_of_other_data_is_refused(make: Any) -> None:
    with pytest.raises(ConfigError, match="has the seed 3, and this data has 4: go on with the data and the seed "):
        make(seed=4).load_state_dict(make().state_dict())


def test_reading_ahead_keeps_the_order_stays_within_its_bound_and_ends() -> None:
    made: list[int] = []

    def numbers() -> Iterator[int]:
        for number in range(100):
            made.append(number)
            yield number

    before = threading.active_count()
    ahead = iter(Prefetched(numbers(), 3, lambda number: -number))
    assert [next(ahead) for _ in range(5)] == [0, -1, -2, -3, -4]
    assert len(made) <= 5 + 3 + 1  # delivered, waiting, in the thread's hands
    ahead.close()  # type: ignore[attr-defined]
    assert threading.active_count() == before
    assert list(Prefetched(numbers(), 3)) == list(range(100))


def test_an_error_while_reading_ahead_arrives_in_its_place() -> None:
    def two() -> Iterator[int]:
        yield 1
        raise OSError("the disk is gone")

    ahead = iter(Prefetched(two(), 2))
    assert next(ahead) == 1
    with pytest.raises(OSError, match="the disk is gone"):
        next(ahead)


def test_ranks_mask_what_a_single_process_would(text: Path, tmp_path: Path) -> None:
    config = DataConfig(source=str(text))
    samples = Samples(collect(config, tmp_path), config, 64, 1, Masking(256, 256, 5))
    alone = torch.cat(list(itertools.islice(RankBatches(samples, 40, 8, 0, 1), 3)))
    shared = [itertools.islice(RankBatches(samples, 40, 4, rank, 2), 3) for rank in range(2)]
    assert torch.equal(alone, torch.cat([batch for pair in zip(*shared, strict=True) for batch in pair]))
    assert torch.equal(alone, samples.fetch(*samples.train(40, 24)))
    assert alone.shape == (24, 2, 64) and (alone[:, 0] == 256).any()
    again, blocks = samples.order.train_size, samples.order.train(0, 1)
    assert not torch.equal(samples.fetch(blocks, np.array([0])), samples.fetch(blocks, np.array([again])))  # next epoch
    assert torch.equal(samples.fetch(blocks), samples.fetch(blocks))  # held out: always the same


def test_masking_depends_on_the_sample_only_and_has_the_shares_of_bert() -> None:
    masking = Masking(mask=999, vocabulary=900, seed=5)
    tokens = np.random.default_rng(0).integers(0, 900, (400, 200))
    keys = np.arange(400) + 7
    both = masking.apply(tokens, keys)
    assert (masking.apply(tokens[50:60], keys[50:60]) == both[50:60]).all()
    assert not (masking.apply(tokens[50:60], keys[:10]) == both[50:60]).all()
    assert not (Masking(999, 900, 6).apply(tokens, keys) == both).all()
    inputs, labels = both[:, 0], both[:, 1]
    guessed = labels != IGNORED
    assert (guessed.sum(axis=1) == 30).all()  # 15 % of 200, in every sample
    assert guessed.sum(axis=0).min() > 30  # and everywhere in it: 60 on average
    assert (labels[guessed] == tokens[guessed]).all() and (inputs[~guessed] == tokens[~guessed]).all()
    masked, kept = (inputs == 999)[guessed].mean(), (inputs == tokens)[guessed].mean()
    assert masked == pytest.approx(0.8, abs=0.015) and kept == pytest.approx(0.1, abs=0.01)
    other = inputs[guessed & (inputs != 999) & (inputs != tokens)]
    assert len(np.unique(other)) > 600 and other.max() < 900
