"""Adapters beside a folder's weights: checkpoints hold what is trained, and know the base they belong to."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from conftest import SMALL, Job
from safetensors.torch import load_file, save_file
from test_export import job, losses, set_back
from test_weights import folder_of

from gaudi3_scale.checkpoint.fetch import read_all
from gaudi3_scale.checkpoint.frozen import frozen_identity
from gaudi3_scale.config import load
from gaudi3_scale.errors import ConfigError
from gaudi3_scale.hpu.device import Device
from gaudi3_scale.job.export import export
from gaudi3_scale.step.module import LanguageModule

pytest.importorskip("peft")
LORA = ("model.lora.rank=4", "train.learning_rate=1e-2", "train.precision=bf16-mixed")


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with weights."""
    return folder_of(tmp_path_factory.mktemp("base") / "model", "llama-tiny")


def test_a_checkpoint_holds_the_adapters_and_resumes_beside_its_own_base_only(
    base: Path, text: Path, tmp_path: Path
) -> None:
    from transformers import AutoModelForCausalLM

    folder = folder_of(tmp_path / "model", "llama-tiny", "1GB")
    settings = (f"model.name={folder}", *LORA)
    config = job(tmp_path / "job", text, *settings)
    whole = losses(tmp_path / "job")
    step = tmp_path / "job" / "checkpoints" / "step-00000008"
    tensors: dict[str, torch.Tensor] = read_all(step)["tensors"]
    assert {name for name in tensors if "lora_" not in name} == set()
    adapters = sum(value.nbytes for name, value in tensors.items() if name.startswith("model."))
    widths = 2 * (64 + 64) + 2 * (64 + 32) + 3 * (64 + 128)  # inputs and outputs of a block's seven matrices
    assert adapters == 4 * 2 * 4 * widths
    frozen = sum(path.stat().st_size for path in folder.glob("*.safetensors"))
    assert sum(path.stat().st_size for path in step.iterdir()) < frozen

    set_back(tmp_path / "job", 8)
    job(tmp_path / "job", text, *settings)
    assert losses(tmp_path / "job") == whole and whole[-1] < whole[0] - 0.2

    export(config, tmp_path / "adapters", None, merge=False, precision="float32")
    export(config, tmp_path / "merged", None, merge=True, precision="float32")
    import peft

    samples = torch.arange(64).reshape(2, 32)
    with torch.no_grad():
        original = AutoModelForCausalLM.from_pretrained(folder, local_files_only=True)
        adapted = peft.PeftModel.from_pretrained(original, tmp_path / "adapters").eval()(samples).logits
        merged = AutoModelForCausalLM.from_pretrained(tmp_path / "merged", local_files_only=True)(samples).logits
    torch.testing.assert_close(adapted, merged, atol=1e-5, rtol=1e-5)

    set_back(tmp_path / "job", 8)
    weights = load_file(folder / "model.safetensors")
    save_file({name: value * 1.01 for name, value in weights.items()}, folder / "model.safetensors", {"format": "pt"})
    sentence = (
        f"The checkpoint {step} holds only what was trained beside other frozen weights than this model's: give the "
        "base that it was trained with, or another output_dir."
    )
    with pytest.raises(ConfigError) as error:
        job(tmp_path / "job", text, *settings)
    assert str(error.value) == sentence
    with pytest.raises(ConfigError) as error:
        export(config, tmp_path / "other", None, merge=True, precision="float32")
    assert str(error.value) == sentence and not (tmp_path / "other").exists()


def test_the_base_is_bfloat16_where_products_are(base: Path) -> None:
    def dtypes(*overrides: str) -> tuple[set[torch.dtype], set[torch.dtype], str]:
        module = LanguageModule(
            load(None, [f"model.name={base}", "model.lora.rank=2", *overrides]), Device("cpu", 0, "")
        )
        frozen = {p.dtype for p in module.model.parameters() if not p.requires_grad}
        return frozen, {p.dtype for p in module.model.parameters() if p.requires_grad}, frozen_identity(module.model)

    wide, narrow = {torch.float32}, {torch.bfloat16}
    full, mixed = dtypes(), dtypes("train.precision=bf16-mixed")
    assert full[:2] == (wide, wide) and mixed[:2] == (narrow, wide)
    assert dtypes("model.frozen_dtype=bfloat16")[:2] == (narrow, wide)
    assert dtypes("model.frozen_dtype=float32", "train.precision=bf16-mixed")[:2] == (wide, wide)
    assert full[2] == mixed[2]  # the same base


def test_adapters_beside_a_base_that_no_process_holds_whole(base: Path, text: Path, tmp_path: Path) -> None:
    sizes = [name for name in SMALL if name.startswith("model.") and "sequence" not in name]
    defaults = load(None).model
    settings = [f"{name.partition('=')[0]}={getattr(defaults, name[6:].partition('=')[0])}" for name in sizes]
    settings += [f"model.name={base}", *LORA, "train.strategy=habana_fsdp", "model.deferred=true"]
    settings += ["train.max_steps=8", "train.log_every=1", "train.collective_timeout=60", "checkpoint.keep=4"]
    split = Job(tmp_path / "job", text, processes=2)
    split.run(*settings)
    whole = split.losses()
    assert len(whole) == 8 and whole[-1][1] < whole[0][1] - 0.1
    assert all("lora_" in name for name in split.state(5)["tensors"])
    set_back(split.node(), 5)
    assert "resuming from step 5\n" in split.run(*settings) and split.losses() == whole
    config = load(None, [f"output_dir={split.node()}"])
    export(config, tmp_path / "merged", None, merge=True, precision="float32")
    assert "model.layers.0.mlp.up_proj.weight" in load_file(tmp_path / "merged" / "model.safetensors")


def manifest_without(path: Path, key: str) -> None:
    """As a version wrote it that did not know a setting of the model."""
    values: dict[str, Any] = json.loads(path.read_text())
    del values["model"][key]
    path.write_text(json.dumps(values))


def test_a_setting_that_came_later_does_not_orphan_a_checkpoint(text: Path, tmp_path: Path) -> None:
    job(tmp_path, text, "model.name=llama-tiny", "train.max_steps=4")
    manifest_without(tmp_path / "checkpoints" / "step-00000004" / "manifest.json", "frozen_dtype")
    (tmp_path / "status.json").unlink()
    job(tmp_path, text, "model.name=llama-tiny", "train.max_steps=5")
    assert json.loads((tmp_path / "status.json").read_text())["resumed_from_step"] == 4
