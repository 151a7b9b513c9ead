"""What the configuration accepts, and the one sentence for what it does not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from conftest import PACKAGES, SOURCE

from gaudi3_scale import __version__
from gaudi3_scale.config import Config, Section, dump_default, keys, load
from gaudi3_scale.cost.inputs import load as load_inputs
from gaudi3_scale.errors import ConfigError
from gaudi3_scale.planning.text import settings
from gaudi3_scale.tuning.space import Space
from gaudi3_scale.yaml_file import TwiceError, read


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command line."""
    environment = {**os.environ, "PYTHONPATH": PACKAGES}
    return subprocess.run(
        [sys.executable, "-m", "gaudi3_scale", *arguments], env=environment, text=True, capture_output=True
    )


@pytest.mark.parametrize(
    ("override", "sentence"),
    [
        (
            "train.learning_rat=1",
            "Unknown key 'train.learning_rat' on the command line: did you mean 'train.learning_rate'?",
        ),
        ("max_steps=3", "Unknown key 'max_steps' on the command line: did you mean 'train.max_steps'?"),
        ("zzz=3", "Unknown key 'zzz' on the command line: `gaudi3-train config` prints all keys."),
        ("device=tpu", "On the command line, device is 'tpu', but it should be 'auto', 'cpu', 'cuda' or 'hpu'."),
        (
            "train.max_steps=0",
            "On the command line, train.max_steps is 0, but it should be greater than or equal to 1.",
        ),
        (
            "model.heads=5",
            "On the command line, model: hidden_size is 128, which is no multiple of 2 x heads = 10; "
            "change one of them.",
        ),
        (
            "model.kv_heads=3",
            "On the command line, model: kv_heads is 3, which does not divide heads = 4; change one of them.",
        ),
        ("train=3", "On the command line, train is 3: it must be a mapping of keys to values."),
        (
            "train.seed",
            "The override 'train.seed' is not of the form KEY=VALUE: write for example train.max_steps=100.",
        ),
    ],
)
def test_an_error_is_one_sentence_that_says_what_to_do(override: str, sentence: str) -> None:
    with pytest.raises(ConfigError) as error:
        load(None, [override])
    assert str(error.value) == sentence
    assert error.value.exit_code == 2


@pytest.mark.parametrize("precision", ["32-true", "bf16-mixed"])
def test_what_lazy_mode_cannot_shard_is_refused_when_it_is_read(precision: str) -> None:
    with pytest.raises(ConfigError) as error:
        load(None, ["train.mode=lazy", "train.strategy=habana_fsdp", f"train.precision={precision}"])
    assert str(error.value) == (
        "On the command line, train: mode is lazy, in which nothing can be sharded, and strategy is habana_fsdp; "
        "change one of them."
    )
    for mode, strategy in (
        ("lazy", "habana_ddp"),
        ("lazy", "auto"),
        ("eager", "habana_fsdp"),
        ("compile", "habana_fsdp"),
    ):
        assert load(None, [f"train.mode={mode}", f"train.strategy={strategy}"]).train.mode == mode


def test_the_file_is_named_and_a_misspelt_key_goes_before_other_errors(tmp_path: Path) -> None:
    path = tmp_path / "job.yml"
    path.write_text("device: tpu\ncheckpoint: {evry: 3}\n")
    with pytest.raises(ConfigError) as error:
        load(path)
    assert str(error.value) == f"Unknown key 'checkpoint.evry' in {path}: did you mean 'checkpoint.every'?"


FILE = "train: {warmup_steps: 50, precision: 32-true}\nmodel: {heads: 4}\n"


@pytest.mark.parametrize(
    ("text", "overrides", "sentence"),
    [
        (
            FILE,
            ["train.max_step=5"],
            "Unknown key 'train.max_step' on the command line: did you mean 'train.max_steps'?",
        ),
        (FILE, ["trian.max_steps=5"], "Unknown key 'trian' on the command line: "),
        ("trian: {seed: 1}", ["trian.max_steps=5"], "Unknown key 'trian' in {path}: "),
        ("trian: {seed: 1}", ["train.max_steps=5"], "Unknown key 'trian' in {path}: "),
        (
            FILE,
            ["model.name.size=5"],
            "On the command line, model.name is {'size': 5}, but it should be a valid string.",
        ),
        ("model: {name: gpt}", ["model.name.size=5"], "Unknown key 'model.name.size' on the command line: "),
        (FILE, ["train.precision=bf16"], "On the command line, train.precision is 'bf16', but it should be "),
        ("train: {precision: bf16}", ["train.max_steps=5"], "In {path}, train.precision is 'bf16', but it should be "),
        (
            "train: {precision: bf16}",
            ["train.precision=fp16"],
            "On the command line, train.precision is 'fp16', but it ",
        ),
        (FILE, ["train={precision: bf16}"], "On the command line, train.precision is 'bf16', but it should be "),
        (FILE, ["interruption.sources=[signal,ibm]"], "On the command line, interruption"),
        ("interruption: {sources: [signal, ibm]}", [], "In {path}, interruption"),
        (FILE, ["train=3"], "On the command line, train is 3: it must be a mapping of keys to values."),
        (
            "train: {max_steps: true}",
            [],
            "In {path}, train.max_steps is True, but it should be a number, not true or false.",
        ),
        (FILE, ["train.betas=[true, 0.9]"], "On the command line, train.betas is [True, 0.9], but it should have "),
        (FILE, ["train.betas=true"], "On the command line, train.betas is True, but it should be a valid tuple."),
        ("train: 3", ["train.max_steps=5"], "In {path}, train is 3: it must be a mapping of keys to values."),
        ("model: {}", ["train=3", "train.seed=5"], "On the command line, train is 3: it must be a mapping of keys"),
        ("train: 3", [], "In {path}, train is 3: it must be a mapping of keys to values."),
        ("train: {warmup_steps: 50, max_steps: 20}", ["train.seed=5"], "In {path}, train: warmup_steps is 50 and max_"),
        (FILE, ["train.max_steps=20"], "In {path} and on the command line, train: warmup_steps is 50 and max_steps is"),
        (FILE, ["train.warmup_steps=60", "train.max_steps=20"], "On the command line, train: warmup_steps is 60 and "),
        (FILE, ["model.hidden_size=36"], "In {path} and on the command line, model: hidden_size is 36, which is no "),
        ("model: {hidden_size: 36}", ["train.seed=1"], "In {path}, model: hidden_size is 36, which is no multiple"),
        ("ddp: {compression: int8}", [], "In {path}: ddp.compression is for train.strategy optimized_ddp"),
        (
            "train: {strategy: habana_ddp}",
            ["ddp.compression=int8"],
            "In {path} and on the command line: ddp.compression is for train.strategy optimized_ddp",
        ),
    ],
)
def test_a_sentence_names_where_the_key_was_given(
    tmp_path: Path, text: str, overrides: list[str], sentence: str
) -> None:
    path = tmp_path / "job.yml"
    path.write_text(text)
    with pytest.raises(ConfigError) as error:
        load(path, overrides)
    assert str(error.value).startswith(sentence.replace("{path}", str(path)))


def test_overrides_go_over_the_file(tmp_path: Path) -> None:
    path = tmp_path / "job.yml"
    path.write_text("train: {max_steps: 7, learning_rate: 1e-2}\n")
    config = load(path, ["train.max_steps=9", "data.source=/srv/text"])
    assert (config.train.max_steps, config.train.learning_rate, config.data.source) == (9, 0.01, "/srv/text")


def test_the_printed_default_is_the_default_and_explains_every_key() -> None:
    printed = dump_default()
    assert Config.model_validate(yaml.safe_load(printed)) == Config()
    lines = printed.splitlines()[1:]
    assert len(lines) == len(list(keys()))
    assert all("  # " in line and len(line.split("  # ")[1]) > 5 for line in lines)


@pytest.mark.parametrize(
    "change",
    [
        ["model.name=llama-3.1-8b"], ["model.name=bert-base"], ["model.name=llama-tiny"], ["train.max_steps=5"],
        ["train.max_steps=5", "train.schedule=wsd"], ["train.micro_batch_size=auto"], ["train.strategy=habana_fsdp"],
        ["memory.activation_checkpointing=budget"], ["train.precision=bf16-mixed"], ["device=hpu"],
    ],
)  # fmt: skip
def test_a_change_means_the_same_in_the_printed_default_as_without_a_file(change: list[str], tmp_path: Path) -> None:
    path = tmp_path / "job.yml"
    path.write_text(dump_default())
    with_file, without = load(path, change), load(None, change)
    assert with_file == without and settings(with_file) == settings(without)
    assert with_file.model.length_words == without.model.length_words


def test_a_key_that_counts_where_it_is_given_is_printed_as_a_comment() -> None:
    printed = yaml.safe_load(dump_default())
    for name, section in Config():
        assert not (section.FOLLOWS if isinstance(section, Section) else set()) & set(printed[name] or ()), name
    asking = [path.name for path in SOURCE.rglob("*.py") if "model_fields_set" in path.read_text()]
    assert sorted(asking) == ["section.py", "text.py"], "ask Section.gives"
    with pytest.raises(ValueError, match=r"add it to TrainConfig\.FOLLOWS"):
        Config().train.gives("seed")


def test_a_length_that_is_the_default_of_toys_stays_where_it_was_given() -> None:
    given = load(None, ["model.name=llama-3.1-8b", "model.sequence_length=128"])
    assert settings(given)["model"] == {"name": "llama-3.1-8b", "sequence_length": 128}


def test_the_command_line_says_one_sentence_and_exits_with_2(tmp_path: Path) -> None:
    missing = tmp_path / "missing.yml"
    result = run("fit", "--config", str(missing))
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == (
        f"gaudi3-train: The configuration {missing} cannot be read (No such file or directory): give the path of a "
        "YAML file, which `gaudi3-train config` prints to start from.\n"
    )
    assert run("--version").stdout == f"gaudi3-train {__version__}\n"


def test_reading_a_configuration_does_not_import_torch() -> None:
    code = "import sys, gaudi3_scale.cli, gaudi3_scale.config; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": PACKAGES}).returncode == 0


def test_a_peak_of_the_rate_that_is_never_reached_is_refused() -> None:
    with pytest.raises(
        ConfigError, match=r"warmup_steps is 50 and max_steps is 20, so that the peak .* never be reached"
    ):
        load(None, ["train.warmup_steps=50", "train.max_steps=20"])
    assert load(None, ["train.max_steps=2"]).train.warmup_steps == 20  # the default asks for nothing
    assert load(None, ["train.warmup_steps=2", "train.max_steps=2"]).train.warmup_steps == 2


def test_a_notice_that_no_cloud_gives_is_refused_with_the_reason() -> None:
    with pytest.raises(
        ConfigError, match=r"no public page of IBM Cloud names a notice .* newest checkpoint, so take ibm out"
    ):
        load(None, ["interruption.sources=[signal,ibm]"])


def test_a_precision_that_the_job_does_not_take_names_who_does() -> None:
    with pytest.raises(ConfigError, match=r"bf16-true .* GaudiTrainer"):
        load(None, ["train.precision=bf16-true"])


def test_a_key_that_stands_twice_is_refused_in_every_file_that_people_write(tmp_path: Path) -> None:
    path = tmp_path / "job.yml"
    path.write_text("train:\n  max_steps: 5\n  seed: 1\n  max_steps: 6\n")
    said = "'max_steps' stands twice, in lines 2 and 4: keep one of them."
    with pytest.raises(ConfigError, match=f"^In the configuration {path}, {said}$"):
        load(path)
    with pytest.raises(ConfigError, match=f"^In the search space {path}, {said}$"):
        Space.read(path, load(None))
    with pytest.raises(ConfigError, match=f"^In the inputs {path}, {said}$"):
        load_inputs(path)
    # A merged mapping is there to be laid over.
    path.write_text("model: &m {layers: 2}\ntrain: {seed: 1}\ndata: {}\n")
    assert load(path).model.layers == 2
    assert read("a: &a {x: 1}\nb: {<<: *a, x: 2}\n") == {"a": {"x": 1}, "b": {"x": 2}}
    given = "model.config={vocab_size: 300, vocab_size: 400}"
    with pytest.raises(ConfigError, match=r"^In the override '.*', 'vocab_size' stands twice, in line 1: keep one of"):
        load(None, [given])


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("1: a\n'1': b", {1: "a", "1": "b"}),
        ("on: 1\n'on': 2", {True: 1, "on": 2}),
        ("~: 1\n'null': 2", {None: 1, "null": 2}),
        ("!!str 1: a\n1: b", {"1": "a", 1: "b"}),
        ("true: 1\nyes: 2", "'yes' stands twice, in lines 1 (as 'true') and 2: keep one of them"),
        ("16: a\n0x10: b", "'0x10' stands twice, in lines 1 (as '16') and 2: keep one of them"),
        ("1: a\n1.0: b", "'1.0' stands twice, in lines 1 (as '1') and 2: keep one of them"),
        ("a: 1\n'a': 2", "'a' stands twice, in lines 1 and 2: keep one of them"),
    ],
)
def test_keys_are_the_same_where_a_mapping_would_have_one_of_them(text: str, found: object) -> None:
    if not isinstance(found, str):
        assert read(text) == found
        return
    with pytest.raises(TwiceError) as error:
        read(text)
    assert str(error.value) == found


def test_a_key_that_is_no_text_is_an_unknown_one(tmp_path: Path) -> None:
    path = tmp_path / "job.yml"
    path.write_text("train: {1: 5}\n")
    with pytest.raises(ConfigError, match=f"^Unknown key 'train.1' in {path}: "):
        load(path)


@pytest.mark.parametrize(
    "value", ["2024-13-45", "!!int x", "!!bool maybe", "!!timestamp x", "[" * 3000, "1" * 5000, "{[a]: 1}", "{", "'"]
)
def test_a_value_that_is_no_yaml_is_refused_wherever_it_stands(value: str, tmp_path: Path) -> None:
    path = tmp_path / "job.yml"
    path.write_text(f"model: {value}\n")
    with pytest.raises(ConfigError, match=r"^The configuration .* is not valid YAML"):
        load(path)
    with pytest.raises(ConfigError, match=r"^The value of the override .* is not valid YAML: put it in quotes\.$"):
        load(None, [f"model.name={value}"])


def test_a_job_is_not_written_into_the_folder_where_one_stands() -> None:
    with pytest.raises(ConfigError) as error:
        load(None, ["output_dir="])
    assert str(error.value).endswith(", output_dir is empty: name a folder, or leave it out.")
    assert load(None, ["output_dir=."]).output_dir == Path()
