"""Tiny models, data and metrics that the public example programs train on without any hub."""

from __future__ import annotations

import csv
import json
import random
from collections.abc import Sequence
from pathlib import Path

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[EOS]"]
WORDS = [f"w{number}" for number in range(56)]
MARKS = dict(zip(("pad_token", "unk_token", "cls_token", "sep_token", "mask_token"), SPECIAL, strict=False))
BERT = {
    "vocab_size": 62,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "max_position_embeddings": 128,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
}
METRIC = """import datasets
import evaluate


class Metric(evaluate.Metric):
    def _info(self):
        return evaluate.MetricInfo(description="", citation="", features=datasets.Features({features}))

    def _compute(self, predictions, references):
        return {{"score": 0.0}}
"""
TEXTS = '{"predictions": datasets.Value("string"), "references": datasets.Value("string")}'
NUMBERS = '{"predictions": datasets.Value("int32"), "references": datasets.Value("int32")}'
METRICS = {
    **dict.fromkeys(("accuracy", "f1"), NUMBERS),
    **dict.fromkeys(("squad", "squad_v2", "sacrebleu", "rouge", "wer"), TEXTS),
}
"""Modules that `evaluate.load` takes from the working folder, as it would ask the hub for them otherwise."""


def make(folder: Path) -> None:
    """All of them, the same each time, below a folder."""
    draw = random.Random(1)
    _models(folder)
    _data(folder, draw)
    for name, features in METRICS.items():
        (folder / name).mkdir()
        (folder / name / f"{name}.py").write_text(METRIC.format(features=features))
    # What run_summarization.py looks for at its start; to split sentences it would need what is in there.
    for name in ("punkt", "punkt_tab"):
        (folder / "nltk" / "tokenizers" / name).mkdir(parents=True)
    (folder / "nltk" / "punkt_tab").mkdir()
    (folder / "gaudi").mkdir()
    settings = {"use_fused_adam": True, "use_fused_clip_norm": True}
    (folder / "gaudi" / "gaudi_config.json").write_text(json.dumps(settings))


def _models(folder: Path) -> None:
    import torch
    from tokenizers.implementations import BertWordPieceTokenizer
    from transformers import (
        BertConfig,
        BertForMaskedLM,
        BertForQuestionAnswering,
        BertForSequenceClassification,
        LlamaConfig,
        LlamaForCausalLM,
        T5Config,
        T5ForConditionalGeneration,
    )

    torch.manual_seed(1)
    vocabulary = {word: number for number, word in enumerate([*SPECIAL, *WORDS])}
    for name, kind in (
        ("bert-cls", BertForSequenceClassification),
        ("bert-mlm", BertForMaskedLM),
        ("bert-qa", BertForQuestionAnswering),
    ):
        kind(BertConfig(**BERT)).save_pretrained(folder / name)
        BertWordPieceTokenizer(vocab=vocabulary).save(str(folder / name / "tokenizer.json"))
        settings = {"tokenizer_class": "BertTokenizerFast", "do_lower_case": True, "model_max_length": 64, **MARKS}
        (folder / name / "tokenizer_config.json").write_text(json.dumps(settings))
    llama = LlamaConfig(
        vocab_size=62,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
        intermediate_size=64,
        max_position_embeddings=128,
    )
    LlamaForCausalLM(llama).save_pretrained(folder / "llama")
    t5 = T5Config(
        vocab_size=62,
        d_model=32,
        d_kv=16,
        d_ff=64,
        num_layers=2,
        num_heads=2,
        dropout_rate=0.0,
        decoder_start_token_id=0,
        pad_token_id=0,
        eos_token_id=5,
    )
    T5ForConditionalGeneration(t5).save_pretrained(folder / "t5")
    for name in ("llama", "t5"):
        word_tokenizer(folder / name)


def sentence(draw: random.Random, length: int) -> str:
    """So many words."""
    return " ".join(draw.choice(WORDS) for _ in range(length))


def word_tokenizer(path: Path, more: Sequence[str] = ()) -> int:
    """A token a word, and those marks; how many there are."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    vocabulary = {word: number for number, word in enumerate([*SPECIAL, *WORDS])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    made = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="[EOS]", bos_token="[EOS]", **MARKS)
    made.add_tokens(list(more), special_tokens=True)
    made.save_pretrained(path)
    # transformers 5 writes a name of its own there, which 4.55 does not know.
    file = path / "tokenizer_config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"tokenizer_class": "PreTrainedTokenizerFast"}))
    return len(made)


def _data(folder: Path, draw: random.Random) -> None:
    with (folder / "glue.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["sentence1", "sentence2", "label"])
        rows.writerows([sentence(draw, 6), sentence(draw, 6), draw.randint(0, 1)] for _ in range(64))
    (folder / "text.txt").write_text("\n".join(sentence(draw, 20) for _ in range(200)) + "\n")
    questions = []
    for number in range(64):
        context = [draw.choice(WORDS) for _ in range(16)]
        place = draw.randint(0, 13)
        answer, text = " ".join(context[place : place + 2]), " ".join(context)
        answers = {"text": [answer], "answer_start": [text.index(answer)]}
        one = {"id": str(number), "title": "t", "context": text, "question": sentence(draw, 4), "answers": answers}
        questions.append(one)
    (folder / "qa.json").write_text(json.dumps({"data": questions}))
    summaries = [{"text": sentence(draw, 16), "summary": sentence(draw, 4)} for _ in range(64)]
    (folder / "summaries.json").write_text("\n".join(map(json.dumps, summaries)) + "\n")
    pairs = [{"translation": {"en": sentence(draw, 8), "de": sentence(draw, 8)}} for _ in range(64)]
    (folder / "trans.json").write_text("\n".join(map(json.dumps, pairs)) + "\n")
