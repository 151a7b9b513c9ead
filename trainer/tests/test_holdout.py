"""Which documents are held out, and that training never sees them."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import pytest
import torch

from gaudi3_scale.config import DataConfig
from gaudi3_scale.data import Corpus, RankBatches, Samples, collect

LENGTH = 32
DOCUMENTS = 3000


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    """Documents of 40 to 60 bytes, each of one number only, in several shards."""
    folder = tmp_path_factory.mktemp("many")
    lines = (json.dumps({"text": f"{n:05d} " * (7 + n % 4)}) + "\n" for n in range(DOCUMENTS))
    (folder / "many.jsonl").write_text("".join(lines))
    return collect(DataConfig(source=str(folder / "many.jsonl"), shard_tokens=20_000), folder / "data")


def numbers(rows: torch.Tensor) -> set[int]:
    """Of the documents that a sample has a whole number of."""
    texts = [bytes(row.tolist()).decode() for row in rows]
    return {int(word) for text in texts for word in text.split() if len(word) == 5}


def test_no_more_than_the_evaluation_reads_is_held_out(corpus: Corpus) -> None:
    held_out = [
        Samples(corpus, DataConfig(validation_samples=wanted), LENGTH, 1).order.validation_size for wanted in (5, 20)
    ]
    assert held_out == [5, 20]
    order = Samples(corpus, DataConfig(validation_samples=20), LENGTH, 1).order
    lost = (corpus.size - 1) // LENGTH - order.train_size
    assert 20 <= lost <= 23  # whole documents: the last one may be longer than what was missing
    assert Samples(corpus, DataConfig(validation_fraction=0.001), LENGTH, 1).order.validation_size == 5


def test_no_document_is_in_both_sets_and_none_is_lost(corpus: Corpus) -> None:
    samples = Samples(corpus, DataConfig(validation_samples=20), LENGTH, 1)
    order = samples.order
    held_out = numbers(samples.fetch(order.validation()))
    trained = numbers(samples.fetch(order.train(0, order.train_size)))
    assert len(held_out) >= 10 and not held_out & trained
    assert len(held_out | trained) >= DOCUMENTS - 3  # at the ends of the two streams a window is not filled


def test_the_choice_does_not_depend_on_the_seed(corpus: Corpus) -> None:
    first, second = (Samples(corpus, DataConfig(), LENGTH, seed) for seed in (1, 2))
    assert torch.equal(first.fetch(first.order.validation()), second.fetch(second.order.validation()))
    assert not torch.equal(first.fetch(first.order.train(0, 9)), second.fetch(second.order.train(0, 9)))


def test_a_sample_is_a_function_of_its_number(corpus: Corpus) -> None:
    samples = Samples(corpus, DataConfig(validation_samples=20), LENGTH, 1)
    whole = torch.cat(list(itertools.islice(RankBatches(samples, 0, 4, 0, 1), 10)))
    resumed = [list(itertools.islice(RankBatches(samples, 24, 2, rank, 2), 4)) for rank in (0, 1)]
    assert torch.equal(whole[24:], torch.cat([batch for pair in zip(*resumed, strict=True) for batch in pair]))


def test_of_one_long_document_the_end_is_held_out(tmp_path: Path, text: Path) -> None:
    corpus = collect(DataConfig(source=str(text)), tmp_path)
    samples = Samples(corpus, DataConfig(validation_samples=8), LENGTH, 1)
    held_out = samples.fetch(samples.order.validation())
    content = np.concatenate(corpus.arrays())
    assert bytes(held_out[0].tolist()) == bytes(content[-8 * LENGTH - 1 :][: LENGTH + 1].tolist())
    assert samples.order.blocks == (corpus.size - 1) // LENGTH
