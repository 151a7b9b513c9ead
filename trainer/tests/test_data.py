"""Which bytes are learnt, in which order, by whom."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import numpy as np
import pytest
import torch

from gaudi3_scale.config import DataConfig
from gaudi3_scale.data import Corpus, RankBatches, Samples, collect
from gaudi3_scale.data.order import SampleOrder, permute
from gaudi3_scale.errors import ConfigError


def shard(corpus: Corpus) -> Path:
    """The file of a corpus that has one."""
    assert len(corpus.shards) == 1
    return corpus.folder / corpus.shards[0].file


def samples(path: Path, directory: Path, length: int = 16, seed: int = 1) -> Samples:
    """The samples of a text."""
    config = DataConfig(source=str(path))
    return Samples(collect(config, directory), config, length, seed)


@pytest.mark.parametrize("size", [2, 3, 16, 17, 1000])
def test_a_permutation_sends_every_index_somewhere_else_and_depends_on_its_key(size: int) -> None:
    first, second = (permute(np.arange(size), size, key) for key in (1, 2))
    assert sorted(first.tolist()) == sorted(second.tolist()) == list(range(size))
    assert size < 16 or first.tolist() != second.tolist()


def test_the_order_is_the_same_on_every_platform_and_version() -> None:
    order = SampleOrder(950, 50, seed=1234)
    assert order.train(0, 6).tolist() == [944, 445, 619, 709, 696, 267]
    assert order.validation(4).tolist() == [950, 951, 952, 953]


def test_every_epoch_sees_every_training_block_once_and_no_held_out_one() -> None:
    order = SampleOrder(183, 20, seed=5)
    held_out = set(order.validation().tolist())
    assert len(held_out) == 20
    two = order.train(0, 2 * 183).tolist()
    assert set(two[:183]) == set(two[183:]) == set(range(203)) - held_out
    assert two[:183] != two[183:]
    assert order.train(100, 120).tolist() == two[100:220]  # across the epochs' border


def test_the_held_out_blocks_do_not_depend_on_the_seed() -> None:
    assert SampleOrder(450, 50, 1).validation().tolist() == SampleOrder(450, 50, 2).validation().tolist()


def test_ranks_share_the_order_of_a_single_process(text: Path, tmp_path: Path) -> None:
    data = samples(text, tmp_path)
    alone = torch.cat(list(itertools.islice(RankBatches(data, 0, 8, 0, 1), 6)))
    shared = [itertools.islice(RankBatches(data, 0, 4, rank, 2), 6) for rank in range(2)]
    assert torch.equal(alone, torch.cat([batch for pair in zip(*shared, strict=True) for batch in pair]))


def test_batches_continue_at_any_position(text: Path, tmp_path: Path) -> None:
    data = samples(text, tmp_path)
    whole = list(itertools.islice(RankBatches(data, 0, 4, 1, 2), 9))
    resumed = list(itertools.islice(RankBatches(data, 5 * 8, 4, 1, 2), 4))
    assert torch.equal(torch.cat(whole[5:]), torch.cat(resumed))


def test_a_sample_is_the_text_with_one_byte_more_than_the_sequence(tmp_path: Path) -> None:
    path = tmp_path / "alphabet"
    path.write_text("abcdefghijklmnop")
    data = samples(path, tmp_path / "data", length=8)
    assert data.order.blocks == 2
    assert bytes(data.fetch(np.array([1]))[0].tolist()) == b"ijklmnop\n"


def test_a_folder_is_read_in_the_order_of_names_without_hidden_files(tmp_path: Path) -> None:
    for folder, names in (("one", ["b.txt", "a/z.txt", ".git/x"]), ("two", [".git/x", "a/z.txt", "b.txt"])):
        for name in names:
            path = tmp_path / folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(path.name)
    one, two = (collect(DataConfig(source=str(tmp_path / name)), tmp_path / "data") for name in ("one", "two"))
    assert shard(one).read_bytes() == b"z.txt\nb.txt\n"
    assert one.sha256 == two.sha256


def test_the_standard_library_is_the_default_and_is_collected_once(tmp_path: Path) -> None:
    first = collect(DataConfig(), tmp_path)
    assert first.size > 5_000_000
    written = shard(first).stat().st_mtime_ns
    assert collect(DataConfig(), tmp_path) == first
    assert shard(first).stat().st_mtime_ns == written
    shard(first).write_bytes(b"torn")
    assert collect(DataConfig(), tmp_path) == first


def test_the_baseline_is_the_entropy_of_the_bytes(tmp_path: Path) -> None:
    path = tmp_path / "two"
    path.write_bytes(b"ab" * 4000)
    shares = (200 / 400, 199 / 400, 1 / 400)  # the last of 25 samples of 16 targets ends with the newline
    assert samples(path, tmp_path / "data").baseline() == pytest.approx(
        -sum(s * math.log(s) for s in shares), abs=1e-12
    )


def test_missing_and_too_short_texts_are_refused_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"^data.source is '/nowhere', which does not exist on this node: give .*\.$"):
        collect(DataConfig(source="/nowhere"), tmp_path)
    short = tmp_path / "short"
    short.write_text("abc")
    with pytest.raises(ConfigError, match=r"has 4 bytes, fewer than two samples of 17: give more text or .*\.$"):
        samples(short, tmp_path / "data")
