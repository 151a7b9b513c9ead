"""Other models than the default one: they learn, resume to the bit, and leave as folders that transformers loads."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path

import pytest
import torch
from conftest import Job, assert_same
from safetensors.torch import load_file

from gaudi3_scale.config import Config, load
from gaudi3_scale.errors import ConfigError
from gaudi3_scale.job.export import export
from gaudi3_scale.job.fit import fit

STEPS = 12


def job(output_dir: Path, text: Path, *overrides: str) -> Config:
    """Run a small job in this process."""
    config = load(
        None,
        [
            f"output_dir={output_dir}",
            f"data.source={text}",
            "device=cpu",
            "model.sequence_length=32",
            f"train.max_steps={STEPS}",
            "train.warmup_steps=2",
            "train.log_every=1",
            "train.threads=1",
            "checkpoint.every=4",
            "checkpoint.keep=4",
            "data.validation_samples=8",
            "metrics.enabled=false",
            *overrides,
        ],
    )
    fit(config)
    return config


def losses(output_dir: Path) -> list[float]:
    """The loss of every step."""
    return [json.loads(line)["loss"] for line in (output_dir / "metrics.jsonl").read_text().splitlines()]


def set_back(output_dir: Path, steps: int) -> None:
    """As if the job had been killed after its first checkpoints."""
    for path in (output_dir / "checkpoints").glob("step-*"):
        if int(path.name.removeprefix("step-")) > steps:
            shutil.rmtree(path)
    (output_dir / "status.json").unlink()


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory, text: Path) -> Path:
    """A model that was trained and exported."""
    folder = tmp_path_factory.mktemp("base")
    config = job(folder / "job", text, "model.name=llama-tiny", "train.learning_rate=1e-2")
    assert export(config, folder / "model", None, merge=False, precision="float32") == (STEPS, True)
    return folder / "model"


@pytest.mark.parametrize("name", ["mixtral-tiny", "bert-tiny"])
def test_it_learns_and_repeats_itself_after_a_kill(name: str, text: Path, tmp_path: Path) -> None:
    job(tmp_path, text, f"model.name={name}", "train.learning_rate=1e-2")
    whole = losses(tmp_path)
    assert len(whole) == STEPS and whole[-1] < whole[0] - 0.5
    set_back(tmp_path, 4)
    job(tmp_path, text, f"model.name={name}", "train.learning_rate=1e-2")
    assert losses(tmp_path) == whole
    status = json.loads((tmp_path / "status.json").read_text())
    assert status["resumed_from_step"] == 4 and status["validation_loss"] < whole[0]


def test_a_model_that_no_process_holds_whole_learns_and_repeats_itself(text: Path, tmp_path: Path) -> None:
    job = Job(tmp_path / "job", text, processes=2)
    settings = ("train.strategy=habana_fsdp", "model.deferred=true", "train.max_steps=12", "checkpoint.keep=4")
    job.run(*settings, "train.collective_timeout=60", "train.learning_rate=1e-2")
    whole = job.losses()
    assert whole[0][1] == pytest.approx(math.log(256), abs=0.15) and whole[-1][1] < whole[0][1] - 1
    set_back(job.node(), 5)
    output = job.run(*settings, "train.collective_timeout=60", "train.learning_rate=1e-2")
    assert "resuming from step 5\n" in output and job.losses() == whole


def test_an_export_is_the_model_that_was_trained(base: Path, text: Path) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from gaudi3_scale.checkpoint.fetch import read_all

    assert {path.name for path in base.iterdir()} == {
        "config.json",
        "gaudi3_lineage.json",
        "generation_config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
    }
    model = AutoModelForCausalLM.from_pretrained(base, local_files_only=True).eval()
    trained = read_all(base.parent / "job" / "checkpoints" / f"step-{STEPS:08d}")["tensors"]
    assert_same(
        {f"model.{name}": value for name, value in sorted(model.state_dict().items())},
        {name: trained[name] for name in sorted(trained) if name.startswith("model.")},
    )
    tokens = AutoTokenizer.from_pretrained(base, local_files_only=True)("12 squared is", return_tensors="pt")
    assert tokens["input_ids"].tolist() == [list(b"12 squared is")]
    assert model.generate(**tokens, max_new_tokens=4, do_sample=False).shape == (1, 17)


def test_a_chosen_step_and_narrower_weights(base: Path, text: Path, tmp_path: Path) -> None:
    config = load(None, [f"output_dir={base.parent / 'job'}"])
    assert export(config, tmp_path / "four", 4, merge=False, precision="bfloat16") == (4, True)
    early, late = load_file(tmp_path / "four" / "model.safetensors"), load_file(base / "model.safetensors")
    assert {value.dtype for value in early.values()} == {torch.bfloat16}
    assert early.keys() == late.keys() and not torch.equal(early["lm_head.weight"].float(), late["lm_head.weight"])


def test_what_cannot_be_exported_is_refused_in_a_sentence(base: Path, tmp_path: Path) -> None:
    def refusal(config: Config, to: Path, step: int | None = None) -> str:
        with pytest.raises(ConfigError) as error:
            export(config, to, step, merge=False, precision="float32")
        return str(error.value)

    config = load(None, [f"output_dir={base.parent / 'job'}"])
    assert refusal(config, base) == f"{base} is there and not empty: give the path of a folder to make."
    assert refusal(config, tmp_path / "x", 5).endswith("choose one of the steps 4, 8, 12.")
    assert refusal(load(None, [f"output_dir={tmp_path}"]), tmp_path / "x").startswith("There is no whole checkpoint in")
    assert list(tmp_path.iterdir()) == []


def test_the_target_gives_the_newest_step_of_a_job_whose_settings_changed(text: Path, tmp_path: Path) -> None:
    """Also to a machine without the job's id, and with another device than the job trained on."""
    folder, target = tmp_path / "job", f"checkpoint.target={tmp_path / 'target'}"
    first = ("model.name=llama-tiny", target)
    job(folder, text, *first, "train.max_steps=4", "train.precision=bf16-mixed")
    job(folder, text, *first, "train.max_steps=8", "train.precision=bf16-mixed", "train.learning_rate=1e-4")
    other = job(tmp_path / "other", text, *first, "train.max_steps=12", "train.seed=5", "checkpoint.adopt=true")
    shutil.rmtree(folder / "checkpoints")
    # As of a job with train.precision auto on a card, asked for on a CPU.
    config = load(None, [f"output_dir={folder}", f"data.source={text}", "device=cpu", "model.sequence_length=32",
                         "train.warmup_steps=2", *first])  # fmt: skip
    assert export(config, tmp_path / "a", None, merge=False, precision="float32") == (8, True)
    (folder / "job-id").unlink()
    assert export(config, tmp_path / "b", None, merge=False, precision="float32") == (8, True)
    assert export(config, tmp_path / "c", 4, merge=False, precision="float32") == (4, True)
    assert_same(*(load_file(tmp_path / name / "model.safetensors") for name in ("a", "b")))
    # The newest of another job, which went on from there, lies in its own folder.
    assert export(other, tmp_path / "d", None, merge=False, precision="float32") == (12, True)


def test_what_another_job_left_in_the_folder_counts_only_where_the_job_has_nothing(text: Path, tmp_path: Path) -> None:
    for name, steps in (("job", 4), ("other", 8)):
        job(tmp_path / name, text, "model.name=llama-tiny", f"train.max_steps={steps}", f"train.seed={steps}")
    newest = "checkpoints/step-00000008"
    shutil.copytree(tmp_path / "other" / newest, tmp_path / "job" / newest)
    config = load(None, [f"output_dir={tmp_path / 'job'}"])
    assert export(config, tmp_path / "a", None, merge=False, precision="float32")[0] == 4
    assert export(config, tmp_path / "b", 8, merge=False, precision="float32")[0] == 8


def test_fine_tuning_goes_on_from_the_weights(base: Path, text: Path, tmp_path: Path) -> None:
    before = losses(base.parent / "job")
    job(tmp_path, text, f"model.name={base}", "train.learning_rate=1e-4")
    assert losses(tmp_path)[0] < before[0] - 1
    whole = losses(tmp_path)
    set_back(tmp_path, 8)
    job(tmp_path, text, f"model.name={base}", "train.learning_rate=1e-4")
    assert losses(tmp_path) == whole


def test_adapters_are_exported_alone_or_merged(base: Path, text: Path, tmp_path: Path) -> None:
    peft = pytest.importorskip("peft")
    from transformers import AutoModelForCausalLM

    lora = (f"model.name={base}", "model.lora.rank=4", "model.lora.dropout=0.1", "train.learning_rate=1e-2")
    config = job(tmp_path / "job", text, *lora)
    whole = losses(tmp_path / "job")
    set_back(tmp_path / "job", 8)
    job(tmp_path / "job", text, *lora)
    assert losses(tmp_path / "job") == whole and whole[-1] < whole[0]
    export(config, tmp_path / "adapters", None, merge=False, precision="float32")
    export(config, tmp_path / "merged", None, merge=True, precision="float32")
    saved = load_file(tmp_path / "adapters" / "adapter_model.safetensors")
    assert saved and all("lora_" in name for name in saved)
    assert not (tmp_path / "adapters" / "model.safetensors").exists()
    samples = torch.arange(64).reshape(2, 32)
    with torch.no_grad():
        original = AutoModelForCausalLM.from_pretrained(base, local_files_only=True)
        first = original(samples).logits
        adapted = peft.PeftModel.from_pretrained(original, tmp_path / "adapters").eval()(samples).logits
        merged = AutoModelForCausalLM.from_pretrained(tmp_path / "merged", local_files_only=True)(samples).logits
    assert not torch.allclose(adapted, first, atol=1e-2)
    torch.testing.assert_close(adapted, merged, atol=1e-4, rtol=1e-4)
