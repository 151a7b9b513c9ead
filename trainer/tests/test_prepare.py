"""Tokenising and packing: what is on disk, and that a kill at any instant loses at most a shard."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from conftest import PACKAGES
from tokenizers.processors import TemplateProcessing

from gaudi3_scale.config import DataConfig, load
from gaudi3_scale.console import Console
from gaudi3_scale.data import Corpus, Samples, collect
from gaudi3_scale.data.prepare import collect_all
from gaudi3_scale.data.progress import PreparationProgress
from gaudi3_scale.data.shards import width
from gaudi3_scale.data.sources import START, open_source
from gaudi3_scale.data.tokenizer import ByteTokenizer, load_tokenizer, train_tokenizer
from gaudi3_scale.distributed.process_group import ProcessGroup, Topology
from gaudi3_scale.errors import ConfigError, TrainerError
from gaudi3_scale.hpu.device import Device
from gaudi3_scale.job import data as job_data
from gaudi3_scale.job import meanwhile
from gaudi3_scale.job.data import prepare


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three documents as JSONL."""
    path = tmp_path_factory.mktemp("documents") / "three.jsonl"
    path.write_text('{"text": "the cat"}\n{"text": "and the hat"}\n{"text": "the end"}\n')
    return path


@pytest.fixture(scope="module")
def bpe(tmp_path_factory: pytest.TempPathFactory, text: Path) -> Path:
    """A tokenizer.json, trained on the text."""
    path = tmp_path_factory.mktemp("tokenizer") / "tokenizer.json"
    source = open_source(DataConfig(source=str(text)))
    tokenizer = train_tokenizer((piece.text for piece in source.pieces(START)), 300)
    tokenizer.post_processor = TemplateProcessing(single="<|mask|> $A", special_tokens=[("<|mask|>", 1)])
    tokenizer.save(str(path))
    return path


def content(corpus: Corpus) -> list[int]:
    """All tokens."""
    return [int(token) for array in corpus.arrays() for token in array]


def test_bytes_are_joined_with_newlines(documents: Path, tmp_path: Path) -> None:
    corpus = collect(DataConfig(source=str(documents)), tmp_path)
    assert bytes(content(corpus)) == b"the cat\nand the hat\nthe end\n"
    assert (corpus.dtype, corpus.documents, corpus.unit, corpus.vocabulary) == ("uint8", 3, "byte", 256)


def test_tokens_are_joined_with_the_end_of_text(documents: Path, bpe: Path, tmp_path: Path) -> None:
    from tokenizers import Tokenizer

    corpus = collect(DataConfig(source=str(documents), tokenizer=str(bpe)), tmp_path)
    library = Tokenizer.from_file(str(bpe))
    expected = []
    for line in ("the cat", "and the hat", "the end"):
        expected += [*library.encode(line, add_special_tokens=False).ids, library.token_to_id("<|endoftext|>")]
    assert content(corpus) == expected
    assert (corpus.dtype, corpus.documents, corpus.unit, corpus.vocabulary) == ("uint16", 3, "token", 300)
    other = collect(DataConfig(source=str(documents), tokenizer=str(bpe), end_of_text="<|mask|>"), tmp_path)
    assert content(other)[-1] == library.token_to_id("<|mask|>")


def test_ids_are_stored_as_narrow_as_the_vocabulary_allows() -> None:
    assert [width(size) for size in (256, 257, 65536, 65537)] == ["uint8", "uint16", "uint16", "uint32"]


def test_a_byte_tokenizer_is_one_elsewhere_too(tmp_path: Path) -> None:
    from transformers import AutoTokenizer

    ByteTokenizer().save(tmp_path)
    tokenizer = AutoTokenizer.from_pretrained(tmp_path, local_files_only=True)
    text = "né 1\n\t\x7f ~"
    assert tokenizer(text)["input_ids"] == list(text.encode())
    assert tokenizer.decode(list(text.encode())) == text
    assert tokenizer.mask_token_id == ByteTokenizer.mask


def test_samples_do_not_depend_on_how_the_tokens_are_divided(text: Path, bpe: Path, tmp_path: Path) -> None:
    whole, divided = (DataConfig(source=str(text), tokenizer=str(bpe), shard_tokens=size) for size in (2**26, 1024))
    one, many = collect(whole, tmp_path), collect(divided, tmp_path)
    assert len(one.shards) == 1 and len(many.shards) > 40
    assert all(shard.tokens == 1024 for shard in many.shards[:-1])
    assert content(one) == content(many)
    for length in (50, 1000, 3000):  # samples across one border and across several
        first, second = (Samples(c, whole, length, 1) for c in (one, many))
        blocks = np.random.default_rng(0).permutation(first.order.blocks)
        assert (first.fetch(blocks) == second.fetch(blocks)).all()


def test_a_preparation_killed_at_any_instant_goes_on(text: Path, bpe: Path, tmp_path: Path) -> None:
    source = tmp_path / "lines.jsonl"
    source.write_text("".join(json.dumps({"text": line}) + "\n" for line in text.read_text().splitlines()))
    settings = {"source": str(source), "tokenizer": str(bpe), "shard_tokens": 2048}
    fresh = collect(DataConfig.model_validate(settings), tmp_path / "fresh")
    code = (
        "import sys; from pathlib import Path; from gaudi3_scale.config import DataConfig;"
        "from gaudi3_scale.data import part, prepare, writer; finish = writer.ShardWriter.finish;"
        "part.BATCH_PIECES = 10;"  # many batches, so that there are many instants
        "writer.ShardWriter.finish = lambda self: (finish(self), print(len(self.shards), flush=True));"
        f"print('done', prepare.collect(DataConfig(**{settings!r}), Path(sys.argv[1]), print))"
    )
    seen, generator = 0, random.Random(7)
    for goal in (2, 5, 9):
        process = subprocess.Popen(
            [sys.executable, "-c", code, str(tmp_path / "killed")],
            env={**os.environ, "PYTHONPATH": PACKAGES},
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        if seen:
            first = process.stdout.readline()
            assert first.startswith("preparing data goes on after shard ")
            assert int(first.split()[-1]) >= seen - 1  # the last one may not have been recorded yet
        while seen < goal:
            seen = int(process.stdout.readline())
        time.sleep(generator.random() / 500)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert process.returncode == -signal.SIGKILL
    said: list[str] = []
    resumed = collect(DataConfig.model_validate(settings), tmp_path / "killed", said.append)
    assert int(said[0].removeprefix("preparing data goes on after shard ")) >= 8
    assert (resumed.shards, resumed.documents) == (fresh.shards, 4000)
    assert len(fresh.shards) > 20 and fresh.documents == 4000
    assert {path.name for path in resumed.folder.iterdir()} == {path.name for path in fresh.folder.iterdir()}


def test_a_job_asks_while_it_prepares_whether_to_give_up(
    text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = load(None, [f"data.source={text}", f"output_dir={tmp_path}"])
    process_group, console = ProcessGroup(Topology(), Device("cpu", 0, "gloo"), 5), Console(speaks=False, bar=False)
    monkeypatch.setattr(meanwhile, "FIRST_SECONDS", 0.01)
    monkeypatch.setattr(meanwhile, "POLL_SECONDS", 0.01)
    released = threading.Event()
    monkeypatch.setattr(job_data, "collect_all", lambda *a, **k: (released.wait(30), collect_all(*a, **k))[1])
    asked: list[int] = []

    def give_up() -> None:
        asked.append(len(asked))
        if len(asked) == 5:
            raise TrainerError("told to")

    with pytest.raises(TrainerError, match="told to"):
        prepare(config, process_group, console, give_up)

    def release() -> None:
        asked.append(len(asked))
        if len(asked) == 10:
            released.set()

    assert prepare(config, process_group, console, release).size == text.stat().st_size + 1
    assert len(asked) >= 10
    monkeypatch.setattr(job_data, "collect_all", collect_all)
    with pytest.raises(ConfigError, match=r"^data.source is ./nowhere., which does not exist on this node: "):
        prepare(load(None, ["data.source=/nowhere", f"output_dir={tmp_path}"]), process_group, console, lambda: None)


def test_a_changed_source_starts_a_partial_preparation_anew(
    text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "text"
    path.write_bytes(text.read_bytes())
    config = DataConfig(source=str(path), shard_tokens=1024)

    def die(*_: object) -> Corpus:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr("gaudi3_scale.data.prepare._finish", die)
        collect(config, tmp_path / "data")
    path.write_bytes(text.read_bytes().swapcase())
    assert bytes(content(collect(config, tmp_path / "data"))) == text.read_bytes().swapcase() + b"\n"


def test_long_preparations_say_how_long_they_will_take() -> None:
    said: list[str] = []
    now = [100.0]
    progress = PreparationProgress(1000, 200, said.append, False, clock=lambda: now[0])
    progress.tokens = 500
    progress.update(300)
    assert said == []
    now[0] = 110.0
    progress.update(400)
    progress.update(401)
    assert said == ["preparing data: 40 %, 500 tokens, 50 tokens/s, about 30 s left"]


def test_what_cannot_be_tokenised_is_refused_in_a_sentence(documents: Path, bpe: Path, tmp_path: Path) -> None:
    def refusal(**settings: str) -> str:
        with pytest.raises(ConfigError) as error:
            collect(DataConfig(source=str(documents), **settings), tmp_path)
        return str(error.value)

    assert refusal(tokenizer="/nowhere").startswith("data.tokenizer is '/nowhere', where there is no tokenizer.json: ")
    assert " is no tokenizer (" in refusal(tokenizer=str(documents))
    assert refusal(tokenizer=str(bpe), end_of_text="</x>").endswith(
        " has no token '</x>': set data.end_of_text to the token that goes after each document."
    )
    assert refusal(end_of_text="x").startswith("data.end_of_text is set, but bytes have no such token: ")
    empty = tmp_path / "empty.jsonl"
    empty.write_text("\n")
    with pytest.raises(ConfigError, match=r"has no text in it: give a file or folder that has some\.$"):
        collect(DataConfig(source=str(empty)), tmp_path)


def test_the_end_of_text_of_a_transformers_folder_is_its_own(bpe: Path, tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_bytes(bpe.read_bytes())
    (tmp_path / "tokenizer_config.json").write_text('{"eos_token": {"content": "a"}}')
    loaded = load_tokenizer(DataConfig(tokenizer=str(tmp_path)))
    assert loaded.separator == loaded.encode(["a"])[0][0]
    assert load_tokenizer(DataConfig(tokenizer=str(bpe))).separator == 0  # <|endoftext|>


def test_a_tokenizer_is_trained_and_used_from_the_command_line(text: Path, tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from gaudi3_scale.cli import app

    settings = [f"data.source={text}", f"data.tokenizer={tmp_path / 'tokenizer.json'}", f"output_dir={tmp_path}"]
    made = CliRunner().invoke(app, ["tokenizer", "--vocab-size", "300", "--to", settings[1].split("=")[1], settings[0]])
    assert (made.exit_code, made.output) == (0, f"{tmp_path}/tokenizer.json: 300 tokens; set data.tokenizer to it\n")
    done = CliRunner().invoke(app, ["prepare", *settings])
    corpus = collect(load(None, settings).data, tmp_path / "data")
    assert done.output == f"{corpus.size:,} tokens of 1 documents of {text} in {corpus.folder}: 1 shard(s) of uint16\n"
    assert corpus.size < text.stat().st_size / 2
