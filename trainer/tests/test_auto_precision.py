"""The precision of a job follows from its device, once, unless it is named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from test_export import job
from test_planning import TINY
from typer.testing import CliRunner

from gaudi3_scale.checkpoint.identity import key_of
from gaudi3_scale.cli import app
from gaudi3_scale.config import auto_precision, load
from gaudi3_scale.errors import ConfigError
from gaudi3_scale.hpu.device import BACKENDS, Device
from gaudi3_scale.planning.accelerators import ACCELERATORS
from gaudi3_scale.planning.peak import predict_peak
from gaudi3_scale.precision import build_precision
from gaudi3_scale.step.module import LanguageModule

EXPECTED = {"hpu": "bf16-mixed", "cuda": "bf16-mixed", "cpu": "32-true"}


@pytest.mark.parametrize("kind", list(BACKENDS))
def test_auto_is_the_precision_of_the_device_and_a_named_one_is_taken(kind: str) -> None:
    config = load(None, [])
    assert config.train.precision == "auto"
    assert auto_precision.with_precision(config, kind).train.precision == EXPECTED[kind]
    for named in ("32-true", "bf16-mixed"):
        job = load(None, [f"train.precision={named}"])
        assert auto_precision.with_precision(job, kind) is job
    assert build_precision("auto", Device(kind, 0, BACKENDS[kind])).precision == EXPECTED[kind]


@pytest.mark.parametrize("kind", list(BACKENDS))
def test_a_job_with_auto_is_the_job_with_the_value_written_out(kind: str) -> None:
    written = load(None, [f"train.precision={EXPECTED[kind]}"])
    assert key_of(auto_precision.with_precision(load(None, []), kind)) == key_of(written)


def test_frozen_weights_have_the_type_of_the_precision_that_was_taken() -> None:
    config = load(None, [*TINY[:1], "model.layers=1", "model.lora.rank=4"])
    module = LanguageModule(config, Device("cpu", 0, "gloo"))
    assert {parameter.dtype for parameter in module.model.parameters()} == {torch.float32}


def test_a_prediction_with_auto_is_that_of_the_devices_precision() -> None:
    settings = [*TINY, "model.layers=1"]
    auto, named = load(None, settings), load(None, [*settings, "train.precision=bf16-mixed"])
    assert predict_peak(auto, 2, device="hpu") == predict_peak(named, 2, device="hpu")


def test_each_row_of_a_plan_has_the_precision_of_its_accelerator(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    done = CliRunner().invoke(app, ["plan", *TINY, "model.layers=1", "--devices=1", "--tokens=1M", f"--json={path}"])
    assert done.exit_code == 0, done.output
    assert "bf16-mixed (auto)" in done.output
    rows = json.loads(path.read_text())["rows"]
    assert [row["precision"] for row in rows] == [EXPECTED[each.kind] for each in ACCELERATORS.values()]


def test_the_line_at_the_start_says_whence_the_precision_is() -> None:
    assert auto_precision.precision_text("auto", "bf16-mixed", "hpu") == "precision bf16-mixed (auto, device hpu)"
    assert auto_precision.precision_text("32-true", "32-true", "hpu") == "precision 32-true"


def test_a_checkpoint_without_its_precision_goes_on_only_in_one_that_is_named(text: Path, tmp_path: Path) -> None:
    job(tmp_path, text, "model.name=llama-tiny", "train.max_steps=4")
    manifest = tmp_path / "checkpoints" / "step-00000004" / "manifest.json"
    values = json.loads(manifest.read_text())
    assert values.pop("precision") == "32-true"
    manifest.write_text(json.dumps(values))
    (tmp_path / "status.json").unlink()
    with pytest.raises(ConfigError) as error:
        job(tmp_path, text, "model.name=llama-tiny", "train.max_steps=5")
    assert str(error.value) == (
        f"The checkpoint {manifest.parent} does not say in which precision it was trained, and train.precision is "
        "auto, which is 32-true here: set train.precision to the one it was trained in, 32-true or bf16-mixed."
    )
    job(tmp_path, text, "model.name=llama-tiny", "train.max_steps=5", "train.precision=32-true")
    assert json.loads((tmp_path / "status.json").read_text())["resumed_from_step"] == 4
