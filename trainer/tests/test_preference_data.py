"""Pairs of answers as data: what each form gives, what is refused with its line, and what a sample holds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from preferences import TALKS, TEXTS, answer, messages, write
from test_chat import MARKED, PLAIN, folder
from tokenizers import Tokenizer

from gaudi3_scale.config import Config, DataConfig
from gaudi3_scale.data import PackedDataset, collect, collect_all
from gaudi3_scale.data.masking import IGNORED
from gaudi3_scale.data.pair_samples import PairSamples
from gaudi3_scale.data.records import texts_of
from gaudi3_scale.data.sources import START, open_source
from gaudi3_scale.errors import ConfigError

PAIR = {"prompt": "ab", "chosen": "c", "rejected": "de"}
TURN = "<|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n"


def opened(tmp_path: Path, records: list[Any], length: int = 8, **settings: Any) -> PairSamples:
    config = DataConfig.model_validate(
        {"source": str(write(tmp_path / "a.jsonl", records)), "content": "preference", **settings}
    )
    corpus = collect_all(config, tmp_path / "data", context=length)
    return PairSamples(corpus, config, length, 0)


def in_order(samples: PairSamples) -> np.ndarray:
    return samples.fetch(np.argsort(samples._pairs[0]._documents)).numpy()


def refusal(tmp_path: Path, record: Any, length: int = 64, **settings: Any) -> str:
    """What is said of the record in line 2."""
    with pytest.raises(ConfigError) as error:
        opened(tmp_path, [PAIR, record], length, **settings)
    said = str(error.value)
    assert said.endswith(".") and "\n" not in said
    return said.replace(str(tmp_path / "a.jsonl"), "a.jsonl")


def test_a_sample_is_two_rows_and_the_number_of_the_pair(tmp_path: Path) -> None:
    samples = opened(tmp_path, [PAIR, {**PAIR, "rejected": "defghijk"}])
    first, second = in_order(samples)
    end, fill = ord("\n"), ord("\n")
    assert first[0].tolist() == [*b"abc", *[fill] * 5]
    assert first[1].tolist() == [IGNORED, ord("c"), end, *[IGNORED] * 5]
    assert first[2].tolist() == [*b"abde", *[fill] * 4]
    assert first[3].tolist() == [IGNORED, *b"de", end, *[IGNORED] * 4]
    assert second[2].tolist() == [*b"abdefghi"] and second[3].tolist() == [IGNORED, *b"defghij"]  # cut
    assert samples.cut() == 1
    assert sorted([first[4].tolist(), second[4].tolist()]) == [[0] * 8, [1] * 8]


def test_pairs_are_whole_over_the_borders_of_files_and_held_out_as_a_whole(tmp_path: Path) -> None:
    records = [{"prompt": f"{n:04}", "chosen": "+" * (1 + n % 9), "rejected": "-" * (1 + n % 7)} for n in range(400)]
    samples = opened(tmp_path, records, 16, shard_tokens=1024, validation_samples=10)
    assert len(samples._pairs[0].corpus.shards) > 5
    assert samples.order.train_size == 390 and len(samples.order.validation()) == 10
    rows = samples.fetch(np.concatenate([samples.order.train(0, 390), samples.order.validation()])).numpy()
    seen = {bytes(row[0, :4].astype(np.uint8)).decode() for row in rows}
    assert seen == {record["prompt"] for record in records}
    for row in rows:
        number = int(bytes(row[0, :4].astype(np.uint8)))
        for side, record in ((1, records[number]["chosen"]), (3, records[number]["rejected"])):
            assert bytes(row[side][row[side] != IGNORED].astype(np.uint8)).decode() == record + "\n"
    assert samples.cut() == 0


@pytest.mark.parametrize("template", [PLAIN, MARKED])
def test_of_messages_the_answer_alone_is_learnt(tmp_path: Path, template: str) -> None:
    home = folder(tmp_path / "tokenizer", template)
    tokenizer = Tokenizer.from_file(str(home / "tokenizer.json"))
    implicit = {"chosen": messages("x", "yes"), "rejected": messages("x", "no")}
    named = {"prompt": "x", **implicit}
    tools = {**TALKS[0], "system": "Be brief."}
    samples = opened(tmp_path, [*TALKS, implicit, named, tools], 128, tokenizer=str(home))
    end = "<|im_end|>\n" if template is PLAIN else "<|im_end|>"
    found = []
    for row in in_order(samples):
        learnt = [tokenizer.decode(row[s][row[s] != IGNORED].tolist(), skip_special_tokens=False) for s in (1, 3)]
        begin = int(np.argmax(row[1] != IGNORED)) + 1
        found.append((tokenizer.decode(row[0][:begin].tolist(), skip_special_tokens=False), *learnt))
    before = "<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\nb<|im_end|>\n"
    assert found == [
        (TURN.format("2?"), f"Two.{end}", f"No.{end}"),
        (before + TURN.format("c"), f"d{end}", f"Nothing.{end}"),
        (TURN.format("x"), f"yes{end}", f"no{end}"),
        (TURN.format("x"), f"yes{end}", f"no{end}"),
        ("<|im_start|>system\nBe brief.<|im_end|>\n" + TURN.format("2?"), f"Two.{end}", f"No.{end}"),
    ]


@pytest.mark.parametrize(
    ("record", "said"),
    [
        ({"prompt": "a", "chosen": "b"}, "Line 2 of a.jsonl has no field 'rejected', only 'prompt', 'chosen': a pair "),
        ({"chosen": "b", "rejected": "c"}, "Line 2 of a.jsonl has no field 'prompt', which the answers are to: "),
        ({**PAIR, "chosen": ""}, "Line 2 of a.jsonl has an empty 'chosen': delete the record."),
        ({**PAIR, "prompt": ""}, "Line 2 of a.jsonl has an empty 'prompt': delete the record."),
        ({**PAIR, "rejected": None}, "Line 2 of a.jsonl has null in 'rejected': give it a value, or leave the record "),
        ({**PAIR, "rejected": "c"}, "Line 2 of a.jsonl has the same in 'chosen' and 'rejected', so that none is "),
        ({**PAIR, "rejected": 3}, "Line 2 of a.jsonl has a string in 'chosen' and a number in 'rejected': they have "),
        ({**PAIR, "prompt": ["x"]}, "Line 2 of a.jsonl has an array in 'prompt' and strings in 'chosen': write all "),
        ({**PAIR, "prompt": "x" * 65}, "Line 2 of a.jsonl has a prompt of 65 bytes, and model.sequence_length is 64, "),
        ({**PAIR, "images": ["a.png"]}, "Line 2 of a.jsonl has 'images', which are not read: only text is trained on"),
        (
            TALKS[0],
            "Line 2 of a.jsonl has lists of messages: data.content is preference, and data.tokenizer is 'bytes'",
        ),
    ],
)
def test_what_is_no_pair_is_refused_with_its_line(tmp_path: Path, record: Any, said: str) -> None:
    assert refusal(tmp_path, record).startswith(said)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"chosen": answer("")}, "has an empty answer in 'chosen': delete the record."),
        ({"rejected": []}, "has an empty answer in 'rejected': delete the record."),
        ({"rejected": TALKS[0]["chosen"]}, "has the same in 'chosen' and 'rejected', so that none is preferred"),
        ({"rejected": messages("more")}, "has no message of the role 'assistant', so that there is nothing to learn"),
        ({"prompt": None}, "has no 'prompt', and 'chosen' and 'rejected' do not begin with the same message: "),
        (
            {"prompt": "2?"},
            "has a string in 'prompt', which is not the last message that 'chosen' and 'rejected' both ",
        ),
        ({"chosen": ["Two."]}, "has a string for message 2 of 'prompt + chosen': it has to be an object."),
        ({"prompt": messages("x" * 30)}, "has a prompt of 49 tokens, and model.sequence_length is 40, "),
    ],
)
def test_messages_that_are_no_pair_are_refused_with_their_line(tmp_path: Path, change: Any, said: str) -> None:
    home = folder(tmp_path / "tokenizer", PLAIN)
    found = refusal(tmp_path, {**TALKS[0], **change}, 40, tokenizer=str(home))
    assert found.startswith(f"Line 2 of a.jsonl {said}")


def test_a_smaller_context_is_checked_again(tmp_path: Path) -> None:
    records = [PAIR, {**PAIR, "prompt": "x" * 20}]
    opened(tmp_path, records, 20)
    with pytest.raises(ConfigError, match=r"a.jsonl has a prompt of 20 bytes, and model.sequence_length is 19"):
        opened(tmp_path, records, 19)


def test_sources_are_mixed_with_numbers_of_their_own(tmp_path: Path) -> None:
    for name, size in (("a", 30), ("b", 20)):
        write(tmp_path / f"{name}.jsonl", [{**PAIR, "prompt": f"{name}{n}"} for n in range(size)])
    mixture = [{"source": str(tmp_path / f"{name}.jsonl"), "weight": 1, "content": "preference"} for name in "ab"]
    config = DataConfig.model_validate({"mixture": mixture, "validation_samples": 4})
    samples = PairSamples(collect_all(config, tmp_path / "data", context=8), config, 8, 0)
    blocks = samples.order.train(0, 20)
    rows = samples.fetch(blocks).numpy()
    assert rows[:, 4, 0].tolist() == blocks.tolist() and len(set(blocks.tolist())) == 20
    assert sorted(chr(row[0, 0]) for row in rows) == ["a"] * 10 + ["b"] * 10


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"data": {"content": "preference", "documents": True}}, "documents is true, and content is preference, where"),
        (
            {
                "data": {
                    "mixture": [{"source": "a", "weight": 1, "content": "preference"}, {"source": "b", "weight": 1}]
                }
            },
            "content is preference for a source of the mixture and text for another one",
        ),
        ({"preference": {"beta": 0.2}}, "preference.beta is for data.content preference, and that is text"),
        ({"data": {"content": "preference"}, "preference": {"beta": 0}}, "greater than 0"),
    ],
)
def test_settings_that_go_with_nothing_are_refused(settings: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Config.model_validate(settings)


def test_one_pair_cannot_be_held_out_and_learnt_from(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"has 1 pair, and one has to be held out: give two or more"):
        opened(tmp_path, [PAIR])


def test_the_loader_alone_has_no_pairs(tmp_path: Path) -> None:
    source = write(tmp_path / "a.jsonl", TEXTS)
    with pytest.raises(ConfigError, match="whose samples gaudi3-train fit alone makes"):
        PackedDataset(source, tmp_path / "data", sequence_length=8, batch_size=1, content="preference")


def test_a_tokenizer_is_trained_on_all_three_texts(tmp_path: Path) -> None:
    config = DataConfig(source=str(write(tmp_path / "a.jsonl", [PAIR, TALKS[0]])), content="preference")
    pieces = list(open_source(config).pieces(START))
    assert [list(texts_of(piece.text, config)) for piece in pieces] == [["ab", "c", "de"], ["2?", "Two.", "2?", "No."]]


def test_rows_of_a_table_are_pairs_as_well(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    datasets.Dataset.from_list([PAIR, {**PAIR, "prompt": "xy"}]).to_parquet(str(tmp_path / "a.parquet"))
    config = DataConfig(source=str(tmp_path / "a.parquet"), content="preference")
    assert collect(config, tmp_path / "data").documents == 2
    assert json.loads(next(open_source(config).pieces(START)).text)[0] == f"Row 0 of {tmp_path / 'a.parquet'}"
