"""Documents: the tokens around them, and attention that stays within them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from small_llama import small_llama
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from gaudi3_scale.config import DataConfig, load
from gaudi3_scale.data import Samples, collect
from gaudi3_scale.data.masking import IGNORED
from gaudi3_scale.errors import ConfigError
from gaudi3_scale.job.data import check
from gaudi3_scale.models.objectives import sample_loss

END, BEGIN = 256, 257


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tokenizer of bytes with an end and a beginning of text."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE({char: number for number, char in enumerate(alphabet)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(t, normalized=False) for t in ("<|endoftext|>", "<s>")])
    path = tmp_path_factory.mktemp("tokenizer")
    tokenizer.save(str(path / "tokenizer.json"))
    (path / "tokenizer_config.json").write_text(json.dumps({"bos_token": "<s>", "eos_token": "<|endoftext|>"}))
    return path


def jsonl(path: Path, texts: list[str]) -> Path:
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    return path


def tokens(config: DataConfig, directory: Path) -> list[int]:
    """All of them."""
    return [int(token) for array in collect(config, directory).arrays() for token in array]


def test_a_special_token_in_a_text_is_text(folder: Path, tmp_path: Path) -> None:
    source = jsonl(tmp_path / "a.jsonl", ["a<|endoftext|>b", "c"])
    found = tokens(DataConfig(source=str(source), tokenizer=str(folder)), tmp_path)
    assert found.count(END) == 2 and found[-1] == END  # one after each document, and none within
    assert len(found) == len("a<|endoftext|>b") + 1 + len("c") + 1


def test_a_document_begins_with_the_token_that_is_asked_for(folder: Path, tmp_path: Path) -> None:
    source = jsonl(tmp_path / "a.jsonl", ["ab", "c"])
    settings = {"source": str(source), "tokenizer": str(folder)}
    plain = tokens(DataConfig.model_validate(settings), tmp_path)
    for wanted in ("auto", "<s>"):
        found = tokens(DataConfig.model_validate(settings | {"begin_of_text": wanted}), tmp_path)
        assert found == [BEGIN, *plain[:3], BEGIN, *plain[3:]] and plain[2] == plain[4] == END
    with pytest.raises(ConfigError, match=r"has no token '<x>': set data.begin_of_text to the token that begins"):
        tokens(DataConfig.model_validate(settings | {"begin_of_text": "<x>"}), tmp_path)
    with pytest.raises(ConfigError, match=r"data.begin_of_text is set, but bytes have no such token"):
        tokens(DataConfig(source=str(source), begin_of_text="auto"), tmp_path)


def documents(tmp_path: Path, first: str, second: str) -> Any:
    """One sample of 32 tokens of two documents; another sample is held out."""
    source = jsonl(tmp_path / f"{abs(hash(first))}.jsonl", [first, second, "z" * 40])
    config = DataConfig(source=str(source), documents=True, validation_samples=1)
    samples = Samples(collect(config, tmp_path), config, 32, 0)
    return samples.fetch(np.array([0]))


def test_positions_restart_and_the_border_is_not_learnt(tmp_path: Path) -> None:
    (inputs, labels, positions) = documents(tmp_path, "a" * 11, "b" * 30)[0]
    assert bytes(inputs.tolist()) == b"a" * 11 + b"\n" + b"b" * 20
    assert positions.tolist() == [*range(12), *range(20)]
    assert labels.tolist() == [*b"a" * 10, 10, IGNORED, *b"b" * 20]


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
def test_the_loss_of_a_document_does_not_change_with_the_other_one(tmp_path: Path, attention: str) -> None:
    model = small_llama(attention, layers=2, width=32).eval()
    batches = [documents(tmp_path, letter * 11, "bcdefg" * 5) for letter in "ay"]
    for batch in batches:
        batch[:, 1, :12] = IGNORED
    assert not torch.equal(batches[0], batches[1])
    with torch.no_grad():
        one, other = (sample_loss(model, batch) for batch in batches)
        assert torch.equal(one, other)
        alone = batches[0][:, :, 12:]
        assert torch.allclose(sample_loss(model, alone), one, atol=1e-6)
        plain = [sample_loss(model, batch[:, :2]) for batch in batches]
        assert not torch.equal(*plain)  # without positions, the first document is seen


def test_documents_cross_shards(tmp_path: Path) -> None:
    source = jsonl(tmp_path / "a.jsonl", [chr(97 + n % 26) * (n % 90 + 1) for n in range(400)])
    whole, divided = (DataConfig(source=str(source), documents=True, shard_tokens=size) for size in (2**26, 1024))
    one, many = (Samples(collect(config, tmp_path), config, 50, 1) for config in (whole, divided))
    blocks = np.arange(one.order.blocks)
    assert one.order.blocks > 300 and torch.equal(one.fetch(blocks), many.fetch(blocks))
    inputs, _, positions = one.fetch(blocks).unbind(1)
    assert ((positions[:, 1:] == 0) == (inputs[:, :-1] == 10)).all()


def test_masked_models_have_no_documents() -> None:
    with pytest.raises(
        ConfigError, match=r"for which there is neither data.documents nor data.content chat, prompt or preference"
    ):
        check(load(None, ["model.name=bert-tiny", "data.documents=true"]))


def test_a_sliding_window_and_documents_do_not_go_together() -> None:
    settings = ["model.name=mixtral-tiny", "model.config.sliding_window=32", "data.documents=true"]
    check(load(None, [*settings, "model.sequence_length=32"]))
    with pytest.raises(
        ConfigError, match=r"attends within a window of 32 tokens, which the mask of documents would take"
    ):
        check(load(None, [*settings, "model.sequence_length=64"]))
