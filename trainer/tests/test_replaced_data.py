"""A job that is started again with other data."""

from __future__ import annotations

from pathlib import Path

from conftest import Job

SMALL = (
    "model.hidden_size=8",
    "model.layers=1",
    "model.heads=2",
    "model.kv_heads=1",
    "model.sequence_length=32",
    "train.micro_batch_size=2",
    "data.validation_samples=4",
)


def test_other_data_is_refused_unless_it_is_meant(text: Path, tmp_path: Path) -> None:
    job = Job(tmp_path / "job", text)
    job.run(*SMALL, "train.max_steps=2", "train.warmup_steps=1", "checkpoint.every=2")
    refused = job.run(*SMALL, "train.max_steps=3", "train.warmup_steps=1", "data.validation_samples=8", code=2)
    assert "with another part of the data held out, and now there is data.validation_samples 8 instead of 4" in refused
    other = tmp_path / "other.txt"
    other.write_bytes(text.read_bytes().swapcase())
    changed = (*SMALL, f"data.source={other}", "train.max_steps=3", "train.warmup_steps=1")
    refused = job.run(*changed, code=2)
    assert " was trained on other data (SHA-256 " in refused
    assert "data.replace=true to go on with this data at the same sample number." in refused
    assert job.steps() == [2]
    mixed = [f"data.mixture=[{{source: {text}, weight: 3}}, {{source: {other}, weight: 1}}]", "data.documents=true"]
    went_on = job.run(*changed, *mixed, "data.replace=true")
    assert "resuming from step 2" in went_on and "finished 3 steps" in went_on
    assert f"75 % {text}, 25 % {other}" in went_on
