"""`profile` of the configuration: chosen steps of a job, by every rank."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from forked import ForkedJob
from zygote import Client

from gaudi3_scale.callbacks.profile_callback import ProfileCallback
from gaudi3_scale.config import load
from gaudi3_scale.errors import ConfigError

TINY = ("model.hidden_size=32", "model.intermediate_size=64", "train.micro_batch_size=2", "model.sequence_length=32")


def test_a_job_traces_the_chosen_steps_of_every_rank(warm: Client, text: Path, tmp_path: Path) -> None:
    job = ForkedJob(warm, tmp_path / "job", text, processes=2)
    job.fit(*TINY, "train.max_steps=7", "profile.steps=2", "profile.first_step=4", "train.accumulation_steps=2")
    folder = job.node() / "profile"
    assert {path.name for path in folder.iterdir()} == {
        f"{name}-{rank}.{ending}" for rank in (0, 1) for name, ending in (("trace", "json.gz"), ("summary", "txt"))
    }
    for rank in (0, 1):
        with gzip.open(folder / f"trace-{rank}.json.gz", "rt") as file:
            trace = json.load(file)
        steps = {each["name"] for each in trace["traceEvents"] if each["name"].startswith("ProfilerStep#")}
        assert steps == {"ProfilerStep#1", "ProfilerStep#2"}
        optimizer = [each for each in trace["traceEvents"] if each["name"].startswith("Optimizer.step#")]
        assert len(optimizer) == 2  # of the optimizer, not of micro-batches
        assert (folder / f"summary-{rank}.txt").read_text().startswith("2 step(s) recorded on cpu\n")


def profile(*settings: str, device: str = "cpu", step: int = 0) -> tuple[ProfileCallback, Any, list[str]]:
    """The callback of a job, its progress, and what it says."""
    config = load(None, list(settings))
    said: list[str] = []
    kind = SimpleNamespace(type=device, keeps_memory_history=device == "cuda")
    progress = SimpleNamespace(step=step)
    return ProfileCallback(config, kind, progress, said.append, 0), progress, said  # type: ignore[arg-type]


@pytest.mark.parametrize(("resumed", "recorded"), [(0, 3), (2, 3), (3, 2), (4, 1), (5, 0)])
def test_a_job_that_resumes_records_what_is_left_of_the_steps(resumed: int, recorded: int, tmp_path: Path) -> None:
    settings = (f"output_dir={tmp_path}", "profile.steps=3", "profile.first_step=3", "train.max_steps=8")
    callback, progress, said = profile(*settings, "train.warmup_steps=0", step=resumed)
    trainer: Any = None
    callback.on_train_start(trainer, trainer)
    for step in range(resumed + 1, 9):
        progress.step = step
        callback.on_train_batch_end(trainer, trainer, None, None, step - 1)
    callback.on_train_end(trainer, trainer)
    assert [line.split(":")[0] for line in said] == [f"profiled {recorded} step(s)"] * bool(recorded)


def test_a_history_of_memory_is_refused_where_the_device_keeps_none() -> None:
    with pytest.raises(ConfigError, match=r"profile\.memory_steps is 2, but torch keeps .* and the device is cpu"):
        profile("profile.memory_steps=2")


def test_a_history_of_memory_covers_its_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from torch.cuda import memory

    calls: list[Any] = []
    monkeypatch.setattr(memory, "_record_memory_history", lambda enabled="all", *args, **kwargs: calls.append(enabled))
    monkeypatch.setattr(
        memory, "_dump_snapshot", lambda filename="", augment_with_fx_traces=False: calls.append(filename)
    )
    callback, progress, _ = profile(
        f"output_dir={tmp_path}", "profile.memory_steps=2", "profile.first_step=3", device="cuda"
    )
    trainer: Any = None
    callback.on_train_start(trainer, trainer)
    for step in range(1, 6):
        progress.step = step
        calls.append(step)
        callback.on_train_batch_end(trainer, trainer, None, None, step - 1)
    assert calls == [1, 2, "all", 3, 4, str(tmp_path / "profile" / "memory-0.pickle"), None, 5]
