"""Programs that cannot be read, one sentence each; and jobs made of programs."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from gaudi3_migration import (
    Finding,
    Migrated,
    MigrationError,
    difference,
    job,
    migrate,
    migrate_json_file,
    record,
    text,
)

PLAIN = (
    "from transformers import AutoModelForCausalLM\nfrom optimum.habana import GaudiTrainer\nGaudiTrainer(model=m)\n"
)
COMMAND = [
    "run.py",
    "--model_name_or_path",
    "M",
    "--train_file",
    "T",
    "--output_dir",
    "O",
    "--max_steps",
    "5",
    "--block_size",
    "64",
    "--learning_rate",
    "1e-3",
]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"def (:\n", "line 1: this is no Python"),
        (b"\xff\xfe", "is not UTF-8 at byte 0"),
        (None, "does not exist"),
        (b"(" * 3000, "no Python"),
        (b"x = " + b"-" * 2000 + b"1", "nested too deep"),
        (b"x = " + b"+".join([b"a"] * 3000), "nested too deep"),
        (b"x = 1\0", "no Python|cannot be read"),
        (b"# -*- coding: latin-1 -*-\nx = '\xe9'\n", "is not UTF-8 at byte 31: save the program as UTF-8"),
    ],
)
def test_what_is_no_program_is_one_sentence(content: bytes | None, sentence: str, tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(MigrationError, match=sentence):
        migrate(path)


@pytest.mark.parametrize(
    ("content", "sentence"), [("[1]", "has no keys"), ("{", "is not JSON"), (None, "cannot be read")]
)
def test_a_wrong_gaudi_config_is_one_sentence(content: str | None, sentence: str, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PLAIN)
    if content is not None:
        (tmp_path / "gaudi_config.json").write_text(content)
    with pytest.raises(MigrationError, match=sentence):
        migrate(tmp_path / "program.py", tmp_path)


def test_the_difference_and_the_report_name_file_and_line(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PLAIN)
    files = migrate(tmp_path / "program.py")
    assert "-GaudiTrainer(model=m)\n" in difference(files) and "+++ b/program.py\n" in difference(files)
    assert "line 3" in text(files)
    assert record(files)["left"] == 0 and record(files)["files"][0]["changed"]


@pytest.mark.parametrize(
    ("then", "successor"),
    [
        ("transformers.Trainer; gaudi_config= goes", "transformers.Trainer"),
        ("processing_class=", "processing_class"),
        ("--warmup_steps 0.1", "--warmup_steps"),
        ("--use_cpu", "--use_cpu"),
        ("bf16=True (the key alone turned bf16 on)", "bf16"),
        ("accelerate launch --use_deepspeed", "accelerate launch"),
        (".to('hpu')", ".to('hpu')"),
        ("'sdpa'", "'sdpa'"),
        ("train.max_steps: 5", "train.max_steps"),
        ("drop; start with PT_HPU_LAZY_MODE=0", None),
        ("removed: there is no version to check", None),
        ("no successor: train in bf16", None),
        ("the last batch of an epoch may be short: optimum-habana filled it up", None),
    ],
)
def test_the_report_names_the_successor(then: str, successor: str | None, tmp_path: Path) -> None:
    assert Finding(1, "x", then).successor == successor
    made = record([Migrated(tmp_path, "", "", [Finding(1, "x", then)])])
    assert made["files"][0]["findings"][0]["successor"] == successor


def test_a_file_of_arguments_is_migrated_alone(tmp_path: Path) -> None:
    path = tmp_path / "args.json"
    path.write_text('{"use_habana": true, "seed": 1}')
    assert migrate_json_file(path).after == '{\n    "seed": 1\n}\n'
    for no_object in ("[", "", "3", "null", '"zero_optimization"', "[" * 100_000):
        path.write_text(no_object)
        with pytest.raises(MigrationError, match="is no JSON object"):
            migrate_json_file(path)


def test_a_mark_at_the_beginning_of_a_file_stays(tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text("\ufefffrom optimum.habana import GaudiTrainer\n")
    assert migrate(path)[0].after == "\ufefffrom transformers import Trainer\n"


def test_a_notebook_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "train.ipynb"
    path.write_text('{"cells": [{"source": ["from optimum.habana import GaudiTrainer"]}]}')
    with pytest.raises(MigrationError, match="is a notebook: give the program that jupyter nbconvert"):
        migrate(path)


def test_a_plain_fine_tuning_is_a_job(tmp_path: Path) -> None:
    (tmp_path / "run.py").write_text(PLAIN)
    files = migrate(tmp_path / "run.py")
    made = yaml.safe_load(job(files, [*COMMAND, "--deepspeed", "x"]))
    assert made["model"] == {"name": "M", "sequence_length": 64} and made["data"] == {"source": "T", "tokenizer": "M"}
    assert made["train"]["max_steps"] == 5 and made["train"]["epsilon"] == 1e-6 and made["output_dir"] == "O"
    assert [each.what for each in files[0].left] == ["--deepspeed"]


@pytest.mark.parametrize(
    ("more", "words", "sentence"),
    [
        ("import peft\n", COMMAND, "adapters of peft"),
        ("from trl import X\n", COMMAND, "a method of trl"),
        ("class A(GaudiTrainer):\n    pass\n", COMMAND, "a trainer class of its own"),
        ("", COMMAND[:-4], "a job needs --block_size"),
        ("", [*COMMAND, "--seed", "x"], "--seed is 'x'"),
    ],
)
def test_what_is_no_plain_fine_tuning_is_no_job(more: str, words: list[str], sentence: str, tmp_path: Path) -> None:
    (tmp_path / "run.py").write_text(PLAIN + more)
    with pytest.raises(MigrationError, match=sentence):
        job(migrate(tmp_path / "run.py"), words)


def test_another_model_is_no_job(tmp_path: Path) -> None:
    (tmp_path / "run.py").write_text("from optimum.habana import GaudiTrainer\n")
    with pytest.raises(MigrationError, match="no causal language model"):
        job(migrate(tmp_path / "run.py"), COMMAND)


def test_a_helper_that_imports_only_what_moved_is_rewritten(tmp_path: Path) -> None:
    (tmp_path / "run.py").write_text("from optimum.habana import GaudiTrainer\nfrom first import load\n")
    (tmp_path / "first.py").write_text("from second import logger\n\n\ndef load():\n    logger.info('x')\n")
    (tmp_path / "second.py").write_text("from optimum.utils import logging\n\nlogger = logging.get_logger(__name__)\n")
    [_program, helper] = migrate(tmp_path / "run.py")
    assert helper.path.name == "second.py"
    assert helper.after == "from transformers.utils import logging\n\nlogger = logging.get_logger(__name__)\n"
    [only] = migrate(tmp_path / "second.py")
    assert only.after == helper.after


def test_a_plain_program_that_imports_what_moved_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "run.py").write_text("from transformers.utils import send_example_telemetry\n")
    [made] = migrate(tmp_path / "run.py")
    assert made.after == made.before and made.findings == []
