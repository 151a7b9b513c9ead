"""The batch-size warm-up of a job: exact samples, tokens and learning rates, through kills and other processes."""

from __future__ import annotations

import gc
import json
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from conftest import Job, assert_same

from gaudi3_scale.batch.schedule import BatchSchedule, check_stages, learning_rate_of, schedule_text
from gaudi3_scale.callbacks import GarbageCallback
from gaudi3_scale.config import Config, dump_default, load
from gaudi3_scale.errors import ConfigError
from gaudi3_scale.metrics import TrainingMetrics
from gaudi3_scale.status import Progress

STAGES = (
    "[{from_tokens: 0, samples_per_step: 4}, {from_tokens: 1600, samples_per_step: 8}, "
    "{from_tokens: 6000, samples_per_step: 16}]"
)
"""With 64 tokens per sample: from sample 25, which step 7 passes, and from sample 94, which step 16 passes."""
SIZES = [4] * 7 + [8] * 9 + [16] * 4
SETTINGS = (
    "train.micro_batch_size=4",
    "train.max_steps=20",
    "train.log_every=1",
    "train.schedule=linear",
    "checkpoint.every=3",
    f"train.batch_warmup={STAGES}",
)


def test_steps_and_samples_follow_from_each_other() -> None:
    schedule = BatchSchedule(((0, 4), (25, 8), (94, 16)))
    consumed = [0]
    for size in SIZES:
        consumed.append(consumed[-1] + size)
    assert [schedule.consumed(step) for step in range(21)] == consumed
    assert [schedule.per_step(samples) for samples in consumed[:-1]] == SIZES
    assert [schedule.left(samples) for samples in (0, 24, 28, 93, 100)] == [7, 1, 9, 1, None]
    assert [schedule.steps(samples) for samples in consumed] == list(range(21))
    assert schedule.steps(29) == 8
    resumed = BatchSchedule(schedule.stages, step=10, samples=consumed[10])
    assert [resumed.consumed(step) for step in range(21)] == consumed
    # A job that has trained on with the first batch goes on from where it is.
    assert [BatchSchedule(schedule.stages, 20, 80).consumed(step) for step in (20, 22, 23)] == [80, 96, 112]


@pytest.mark.parametrize(("rule", "growth"), [("square_root", math.sqrt(2)), ("linear", 2), ("none", 1)])
def test_the_learning_rate_follows_the_batch_and_the_tokens(rule: str, growth: float) -> None:
    config = load(
        None,
        [
            "model.sequence_length=10",
            "train.micro_batch_size=4",
            "train.max_steps=30",
            "train.warmup_steps=0",
            "train.schedule=linear",
            "train.final_learning_rate=0",
            f"train.batch_learning_rate={rule}",
            "train.batch_warmup=[{from_tokens: 0, samples_per_step: 4}, {from_tokens: 400, samples_per_step: 8}]",
        ],
    )
    schedule = BatchSchedule.of(config, 1)
    share = learning_rate_of(config.train, 10, schedule)
    # 10 steps of 4 samples and 20 of 8: 200 samples in all.
    assert [share(step) for step in (0, 9, 10, 20)] == pytest.approx([1, 0.82, 0.8 * growth, 0.4 * growth])
    longer = config.train.model_copy(update={"schedule_tokens": 4000})
    assert learning_rate_of(longer, 10, schedule)(20) == pytest.approx(0.7 * growth)
    assert schedule_text(config.train).startswith(
        "batch warm-up: 4 samples per step, 8 from 400 tokens; the learning rate "
    )


@pytest.mark.parametrize(
    ("stages", "more", "sentence"),
    [
        ("[{from_tokens: 5, samples_per_step: 4}]", "1", r"begins at from_tokens 5, not with a stage from 0"),
        (
            "[{from_tokens: 0, samples_per_step: 4}, {from_tokens: 9, samples_per_step: 4}]",
            "1",
            r"samples_per_step in batch_warmup goes from 4 to 4, and it has to rise",
        ),
        ("[{from_tokens: 0, samples_per_step: 4}]", "2", r"accumulation_steps is 2, and follows from batch_warmup"),
    ],
)
def test_a_wrong_schedule_is_refused(stages: str, more: str, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        load(None, [f"train.batch_warmup={stages}", f"train.accumulation_steps={more}"])


def test_a_batch_that_the_processes_cannot_take_is_refused() -> None:
    train = load(None, ["train.micro_batch_size=4", f"train.batch_warmup={STAGES}"]).train
    check_stages(train, 1)
    with pytest.raises(ConfigError, match=r"wants 4 samples per step, which 2 process\(es\) with .*micro_batch_size=4"):
        check_stages(train, 2)
    assert Config().train.batch_warmup == () and "batch_warmup: []" in dump_default()


@pytest.fixture(scope="module")
def whole(text: Path, tmp_path_factory: pytest.TempPathFactory) -> Job:
    """A job that was not disturbed."""
    job = Job(tmp_path_factory.mktemp("warmup") / "whole", text)
    (job.folder / "said").write_text(job.run(*SETTINGS))
    return job


def lines(job: Job) -> list[dict[str, Any]]:
    """Those of metrics.jsonl."""
    return [json.loads(line) for line in (job.node() / "metrics.jsonl").read_text().splitlines()]


def test_a_job_takes_the_samples_of_its_schedule_and_counts_them(whole: Job) -> None:
    found, tokens = lines(whole), 0
    share = learning_rate_of(
        load(None, [*SETTINGS, "train.warmup_steps=4"]).train, 64, BatchSchedule(((0, 4), (25, 8), (94, 16)))
    )
    for step, (line, size) in enumerate(zip(found, SIZES, strict=True)):
        tokens += 64 * size
        assert (line["step"], line["tokens"]) == (step + 1, tokens)
        assert line["learning_rate"] == pytest.approx(3e-3 * share(step), rel=1e-6)
    assert whole.status()["tokens"] == 64 * sum(SIZES)
    ratios = [found[at]["learning_rate"] / found[at - 1]["learning_rate"] for at in (7, 16)]
    assert ratios == pytest.approx([math.sqrt(2)] * 2, rel=0.1), "the square root of the batch, less the fall"
    said = (whole.folder / "said").read_text()
    assert "8 from 1,600 tokens, 16 from 6,000 tokens; the learning rate grows with the square root" in said
    assert "step 8, 1,792 tokens: 8 samples per step, 2 micro-batch(es) accumulated, learning rate times 1.414" in said
    assert "step 17, 6,400 tokens: 16 samples per step, 4 micro-batch(es) accumulated, learning rate times 2" in said


def test_a_killed_job_goes_on_with_the_same_steps_to_the_bit(whole: Job, text: Path, tmp_path: Path) -> None:
    job = Job(tmp_path / "cut", text)
    with job.running(*SETTINGS, lines=9, saved=6):
        pass
    said = job.run(*SETTINGS)
    assert "resuming from step" in said and "another" not in said
    assert job.losses() == whole.losses()
    assert_same(job.state(20), whole.state(20))


def test_other_processes_take_the_same_samples_in_each_step(whole: Job, text: Path, tmp_path: Path) -> None:
    job = Job(tmp_path / "two", text, processes=2)
    job.run(*SETTINGS, "train.micro_batch_size=2")
    assert [line["tokens"] for line in lines(job)] == [line["tokens"] for line in lines(whole)]
    for (_, loss), (_, same) in zip(job.losses(), whole.losses(), strict=True):
        assert loss == pytest.approx(same, rel=1e-3)


def test_the_tokens_that_a_node_serves_follow_the_batch() -> None:
    job = Progress(max_steps=20, world_size=2, device="cpu", tokens_per_sample=64, samples_per_step=4)
    metrics = TrainingMetrics(job, local_world_size=1)
    metrics.stepped(1, 0.1)
    job.samples_per_step = 16
    metrics.stepped(2, 0.1)
    assert metrics.registry.get_sample_value("gaudi_training_tokens_total") == 64 * (4 + 16) / 2


def test_garbage_is_collected_by_steps_over_all_stages(monkeypatch: pytest.MonkeyPatch) -> None:
    collected: list[int] = []
    callback, trainer = GarbageCallback(every=3), SimpleNamespace(accumulate_grad_batches=1)
    batches = [(stage, index) for stage in (1, 2) for index in range(2 * stage)]
    for number, (accumulated, index) in enumerate(batches):
        trainer.accumulate_grad_batches = accumulated
        monkeypatch.setattr(gc, "collect", lambda at=number: collected.append(at))
        callback.on_train_batch_end(trainer, None, None, None, index)  # type: ignore[arg-type]
    assert collected == [3], "the second stage's first step is the third of all"
