"""Tokenizers whose ids have gaps: there are larger ids than the number of tokens tells."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from conftest import Job
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from gaudi3_scale.config import load
from gaudi3_scale.data.prepare import collect
from gaudi3_scale.data.shards import Shard, read_index, width
from gaudi3_scale.data.tokenizer import FileTokenizer
from gaudi3_scale.data.writer import ShardWriter
from gaudi3_scale.errors import ConfigError, TrainerError
from gaudi3_scale.job.data import check

FAR = 70000


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The bytes, of which the letter e has an id that does not fit into 16 bits, and an end of text."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    ids = {char: FAR if char == "e" else number for number, char in enumerate(alphabet)}
    tokenizer = Tokenizer(models.BPE({**ids, "<|endoftext|>": 256}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken("<|endoftext|>", normalized=False)])
    path = tmp_path / "tokenizer"
    path.mkdir()
    tokenizer.save(str(path / "tokenizer.json"))
    return path


def test_every_id_is_stored_as_it_is(folder: Path, text: Path, tmp_path: Path) -> None:
    tokenizer = FileTokenizer(folder, "")
    config = load(None, [f"data.source={text}", f"data.tokenizer={folder}"]).data
    corpus = collect(config, tmp_path / "data")
    stored = np.concatenate(corpus.arrays())
    (wanted,) = tokenizer.encode([text.read_text()])
    assert np.array_equal(stored[: len(wanted)], wanted), "the ids were changed"
    assert (stored == FAR).any() and corpus.vocabulary == FAR + 1 and corpus.dtype == "uint32"


def test_data_that_was_prepared_with_a_smaller_bound_is_prepared_anew(folder: Path, text: Path, tmp_path: Path) -> None:
    config = load(None, [f"data.source={text}", f"data.tokenizer={folder}"]).data
    corpus = collect(config, tmp_path / "data")
    index = corpus.folder / "index.json"
    index.write_text(index.read_text().replace(f'"vocabulary": {FAR + 1}', '"vocabulary": 257'))
    assert collect(config, tmp_path / "data") == corpus and read_index(corpus.folder) == corpus


def test_an_id_beyond_the_bound_is_refused_instead_of_changed(tmp_path: Path) -> None:
    writer = ShardWriter(tmp_path, width(1000), 100, list[Shard](), 1000)
    writer.write(np.array([999], dtype=np.uint32))
    with pytest.raises(TrainerError, match="id 70000, and its vocabulary ends at 999"):
        writer.write(np.array([5, 70000], dtype=np.uint32))
    writer.abandon()


def test_a_model_whose_vocabulary_ends_before_the_largest_id_is_refused(folder: Path, text: Path) -> None:
    data = [f"data.source={text}", f"data.tokenizer={folder}"]
    with pytest.raises(ConfigError, match=r"has ids up to 70000, .*: set model.vocab_size to 70001 or more"):
        check(load(None, [*data, "model.vocab_size=257"]))
    check(load(None, [*data, f"model.vocab_size={FAR + 1}"]))


def test_a_job_trains_on_them(folder: Path, text: Path, tmp_path: Path) -> None:
    job = Job(tmp_path / "job", text)
    sizes: tuple[str, ...] = (
        "model.hidden_size=8",
        "model.layers=1",
        "model.heads=2",
        "model.kv_heads=1",
        "train.micro_batch_size=2",
    )
    sizes += ("train.warmup_steps=2",)
    said = job.run(f"data.tokenizer={folder}", f"model.vocab_size={FAR + 1}", "train.max_steps=2", *sizes)
    assert "finished 2 steps" in said
