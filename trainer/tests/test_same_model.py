"""Which changes of `model` a job resumes with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from forked import ForkedJob
from zygote import Client

from gaudi3_scale.checkpoint.architecture import require_same
from gaudi3_scale.config import ModelConfig
from gaudi3_scale.errors import ConfigError

TINY = ("model.hidden_size=32", "model.intermediate_size=64", "train.micro_batch_size=2", "train.warmup_steps=0")


def test_a_job_resumes_with_another_context_and_from_a_manifest_that_knows_fewer_keys(
    warm: Client, text: Path, tmp_path: Path
) -> None:
    job = ForkedJob(warm, tmp_path / "job", text)
    job.fit(*TINY, "train.max_steps=2", "model.sequence_length=32")
    manifest = job.node() / "checkpoints" / "step-00000002" / "manifest.json"
    values = json.loads(manifest.read_text())
    del values["model"]["deferred"]
    manifest.write_text(json.dumps(values))
    said = job.fit(*TINY, "train.max_steps=4", "model.sequence_length=64").splitlines()
    assert "resuming from step 2" in said
    assert "resuming with another model.sequence_length than before: the run is not repeated exactly" in said


def model(**values: Any) -> dict[str, Any]:
    """As a manifest has it."""
    return ModelConfig.model_validate(values).model_dump()


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"hidden_size": 256}, "model.hidden_size is 256, and was 128"),
        ({"heads": 2}, "model.heads is 2, and was 4"),  # the shapes of its matrices are the same
        ({"lora": {"rank": 4}}, "model.lora.rank is 4, and was 0"),
        ({"name": "llama-3.1-8b"}, "model.name is 'llama-3.1-8b', and was 'llama'"),
    ],
)
def test_another_model_is_refused_by_what_differs(change: dict[str, Any], reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        require_same("there", model(), model(**change))


def test_what_has_no_tensors_may_change(tmp_path: Path) -> None:
    now = model(sequence_length=64, deferred=True, lora={"dropout": 0.5})
    assert set(require_same("there", model(), now)) == {"sequence_length", "deferred", "lora.dropout"}
    assert require_same("there", {**model(), "name": "/old/place"}, {**model(), "name": "/new/place"}) == ["name"]
    assert require_same("there", {"hidden_size": 128}, model()) == []
