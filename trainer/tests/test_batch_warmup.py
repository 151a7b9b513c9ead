"""Critical batches measured by branches, the schedule that follows, and what training by it gains."""

from __future__ import annotations

import gc
import json
import math
import shutil
import statistics
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from conftest import Job, assert_same

from gaudi3_scale.batch_warmup import Branch, CriticalPoint, schedule_of
from gaudi3_scale.batch_warmup import record as records
from gaudi3_scale.batch_warmup.measurement import Measurement, Plan
from gaudi3_scale.config import Config, load
from gaudi3_scale.errors import ConfigError, TrainerError
from tests.suite.proof import ROOT, Proof

MODEL = (
    "device=cpu",
    "model.layers=2",
    "train.micro_batch_size=4",
    "train.threads=1",
    "train.schedule=cosine",
    "checkpoint.every=1000000",
    "metrics.enabled=false",
)
TINY = (
    *MODEL,
    "model.hidden_size=32",
    "model.intermediate_size=64",
    "model.sequence_length=32",
    "train.max_steps=32",
    "train.warmup_steps=2",
    "train.log_every=1000",
    "data.validation_samples=16",
)
LARGE = (
    *MODEL,
    "model.hidden_size=64",
    "model.intermediate_size=128",
    "model.sequence_length=64",
    "train.max_steps=1500",
    "train.warmup_steps=60",
    "train.learning_rate=4e-3",
    "train.log_every=100",
    "data.validation_samples=512",
)
SEEDS = (1, 2, 3)
PROOF = Proof(
    "batch-warmup",
    {"measurement": ["measured"], "arms": [f"seed {seed}" for seed in SEEDS], "kill": ["killed"]},
    sample=["measured"],
)
FOLDER = ROOT / ".cache" / "proofs" / "batch-warmup"
TEXT = """
A Llama of 2 layers and width 64 learns bytes of Python's standard library on the CPU, in samples of 64. The critical
batch is measured by `gaudi3-train batch-warmup`'s branches with a seed of its own; the job that it writes is then
trained with three other seeds, beside the same job with the first batch throughout, and with the last batch throughout,
whose learning rate is larger by the square root of the batch as well. All arms learn from the same number of tokens.
Loss is that of 512 held-out samples, in nats per byte. In the last case the job is killed with `kill -9` in each stage
of its schedule, and ends with the losses, weights and optimizer of the job that was not, to the bit. These are figures
of this model and text: a larger model on more text has other critical batches, which have to be measured.

![Critical batches and schedule](batch-warmup.png)
"""


def in_process(file: Path, processes: int) -> None:
    """As a process of its own would train, in a second less."""
    from gaudi3_scale.job.fit import fit

    fit(load(file))
    gc.unfreeze()


def test_the_largest_batch_that_is_no_worse_is_critical() -> None:
    point = CriticalPoint(10, 40, 400, branches=[Branch(1, 4, (2.00, 2.02, 2.04)), Branch(2, 8, (2.01, 2.03, 2.07))])
    assert point.tolerance == pytest.approx(2 * 0.02 / math.sqrt(3))
    assert point.critical == 8
    point.branches.append(Branch(4, 16, (2.05, 2.05, 2.05)))
    assert (point.critical, point.record()["branches"][2]["no_worse"]) == (8, False)
    point.branches.append(Branch(8, 32, (1.9, 1.9, 1.9)))
    assert point.critical == 8, "what is beyond a worse batch does not count"
    point.least = 0.031
    assert point.critical == 32
    assert CriticalPoint(0, 0, 0, branches=[Branch(1, 4, (2.0,)), Branch(2, 8, (2.001,))]).critical == 4
    assert schedule_of(4, []) == [{"from_tokens": 0, "samples_per_step": 4}]


def test_a_measurement_leaves_a_job_and_a_picture(tmp_path: Path) -> None:
    points = [
        CriticalPoint(8, 32, 1024, branches=[Branch(1, 4, (2.0, 2.02)), Branch(2, 8, (2.01, 2.0))]),
        CriticalPoint(16, 64, 2048, branches=[Branch(1, 4, (1.8, 1.82)), Branch(2, 8, (1.9, 1.92))]),
    ]
    record = records.leave(load(None, TINY), points, tmp_path, 1)
    assert record["batch_warmup"] == [{"from_tokens": 0, "samples_per_step": 4}], "at the second point 8 are too many"
    assert json.loads((tmp_path / "batch-warmup.json").read_text())["batch_warmup"] == record["batch_warmup"]
    assert load(tmp_path / "job.yml").train.max_steps == record["steps"] == 32
    records.draw(record, tmp_path / "picture.png")
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("settings", "plan", "sentence"),
    [
        (["train.batch_warmup=[{from_tokens: 0, samples_per_step: 4}]"], Plan(), "is what is to be measured"),
        ([], Plan(at=(0.5, 1.5)), r"--at is \(0.5, 1.5\): give shares"),
        ([], Plan(most=6), "--most is 6: give 2, 4, 8"),
        ([], Plan(branch=0), "--branch is 0: give a share"),
        ([], Plan(seeds=1), "With --seeds 1 no noise is known: give --tolerance"),
    ],
)
def test_a_plan_that_cannot_be_carried_out_is_refused(
    settings: list[str], plan: Plan, sentence: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=sentence):
        Measurement(load(None, settings), plan, tmp_path / "new", 1, print)
    assert not (tmp_path / "new").exists()


def test_two_measurements_keep_out_of_each_others_way(tmp_path: Path) -> None:
    config = load(None, [*TINY])
    one = Measurement(config, Plan(), tmp_path, 1, print)
    with one._locked(), pytest.raises(TrainerError, match=r"A measurement in .* is running"):
        one.run(in_process)
    with pytest.raises(ConfigError, match="measurement of another job, or with other options"):
        Measurement(config, Plan(most=4), tmp_path, 1, print)


@pytest.fixture
def sizes(text: Path, tmp_path: Path) -> tuple[list[str], Plan, Path]:
    """Of the proof, or of its sample: settings, plan and folder."""
    if PROOF.is_running:
        return [*LARGE, f"output_dir={FOLDER / 'job'}"], Plan(at=(0.1, 0.25, 0.5), branch=0.1, most=4), FOLDER
    return [*TINY, f"data.source={text}", f"output_dir={tmp_path / 'job'}"], Plan((0.25,), 0.25, 2, 2), tmp_path


@pytest.mark.parametrize("case", PROOF.parameters({"measured": "measured"} | {c: c for c in PROOF.cases[1:]}))
def test_warm_up(case: str, sizes: tuple[list[str], Plan, Path]) -> None:
    PROOF.skip_if_held(case)
    settings, plan, folder = sizes
    config = load(None, settings)
    if case == "measured":
        row = measured(config, plan, folder)
    elif case == "killed":
        row = killed(folder)
    else:
        row = arms(config, folder, int(case.split()[1]))
    if PROOF.is_running:
        compare({**PROOF.held(), case: row})
        print(case, row)
        PROOF.note(case, row)
        columns = ["steps, first batch", "steps, warm-up", "steps, last batch"]
        columns += ["loss, first batch", "loss, warm-up", "loss, last batch", "result"]
        PROOF.write_table("Batch-size warm-up", TEXT, columns)


def measured(config: Config, plan: Plan, folder: Path) -> dict[str, Any]:
    """Measure, and see that what is finished is not measured again."""
    said: list[str] = []
    measurement = Measurement(config, plan, folder / "measured", 1, said.append)
    began = time.monotonic()
    points = measurement.run(in_process)
    seconds = time.monotonic() - began
    record = records.leave(config, points, folder / "measured", 1)
    length, first = config.model.sequence_length, config.train.first_batch(1)
    for share, point in zip(plan.at, points, strict=True):
        assert point.tokens == round(share * config.train.max_steps) * first * length
        for branch in point.branches:
            assert len(branch.losses) == plan.seeds and all(0.5 < loss < 6 for loss in branch.losses)
            name = f"branches/step-{point.step:08d}/times-{branch.factor}-seed-0"
            result = json.loads((folder / "measured" / name / "result.json").read_text())
            assert result["tokens"] == point.tokens + measurement.branch_samples * length, "each learns from as many"
    written = load(folder / "measured" / "job.yml")
    tokens = first * config.train.max_steps * length
    assert tokens <= record["steps"] * record["batch_warmup"][-1]["samples_per_step"] * length
    assert [stage.model_dump() for stage in written.train.batch_warmup] == record["batch_warmup"]
    if not PROOF.is_running:
        known = {path: path.stat().st_mtime_ns for path in (folder / "measured").rglob("result.json")}
        lost = sorted(known)[0]
        shutil.rmtree(lost.parent)  # as if it had been killed before this branch
        again = Measurement(config, plan, folder / "measured", 1, said.append).run(in_process)
        assert [point.record() for point in again] == record["points"]
        assert [p for p in known if p.stat().st_mtime_ns != known[p]] == [lost]
        assert not list((folder / "measured" / "branches").rglob("checkpoints")), "what is measured is not kept twice"
        return {}
    records.draw(record, ROOT / "proofs" / "batch-warmup.png")
    stages = ", ".join(f"{s['samples_per_step']} from {s['from_tokens']:,}" for s in record["batch_warmup"])
    return {
        "steps, first batch": f"{config.train.max_steps:,}",
        "steps, warm-up": f"{record['steps']:,}",
        "result": f"samples per step by tokens: {stages}; measured in {seconds:,.0f} s",
    }


def trained(settings: dict[str, Any], folder: Path) -> float:
    """The held-out loss of a job; of one that is finished, what it was."""
    from gaudi3_scale.batch_warmup.jobs import run_job

    settings["output_dir"] = str(folder)
    settings["data"]["directory"] = str(FOLDER / "measured" / "data")
    return float(run_job(settings, 1, in_process)["validation_loss"])


def arms(config: Config, folder: Path, seed: int) -> dict[str, Any]:
    """The job by its schedule, and with its first and its last batch throughout."""
    warm = load(folder / "measured" / "job.yml")
    stages = warm.train.batch_warmup
    growth = stages[-1].samples_per_step // stages[0].samples_per_step
    dump = partial(warm.model_dump, mode="json")
    values = {name: dump() for name in ("first", "warm-up", "last")}
    for each in values.values():
        each["train"]["seed"] = seed
    whole = config.train.max_steps
    values["first"]["train"] |= {"batch_warmup": [], "max_steps": whole}
    values["last"]["train"] |= {
        "batch_warmup": [],
        "max_steps": whole // growth,
        "accumulation_steps": growth,
        "learning_rate": config.train.learning_rate * math.sqrt(growth),
        "warmup_steps": max(1, config.train.warmup_steps // growth),
    }
    row: dict[str, Any] = {}
    for name, label in (("first", "first batch"), ("warm-up", "warm-up"), ("last", "last batch")):
        row[f"steps, {label}"] = f"{values[name]['train']['max_steps']:,}"
        row[f"loss, {label}"] = f"{trained(values[name], folder / f'{name}-{seed}'):.4f}"
    return row


def compare(rows: dict[str, dict[str, Any]]) -> None:
    """Once all seeds are there: fewer steps, a loss that is no worse, and better than with the last batch."""
    found = [rows[f"seed {seed}"] for seed in SEEDS if f"seed {seed}" in rows]
    if len(found) < len(SEEDS):
        return
    first, warm, last = ([float(row[f"loss, {n}"]) for row in found] for n in ("first batch", "warm-up", "last batch"))
    steps = {name: int(found[0][f"steps, {name}"].replace(",", "")) for name in ("first batch", "warm-up")}
    assert steps["warm-up"] <= 0.7 * steps["first batch"]
    noise = 2 * statistics.stdev(first) / math.sqrt(len(first))
    assert statistics.fmean(warm) <= statistics.fmean(first) + noise, (first, warm, noise)
    assert statistics.fmean(warm) < statistics.fmean(last) - noise, (warm, last, noise)


def killed(folder: Path) -> dict[str, Any]:
    """The schedule through `kill -9` in every stage."""
    warm = load(folder / "measured" / "job.yml")
    values = warm.model_dump(mode="json")
    stages = values["train"]["batch_warmup"]
    every = max(1, warm.train.max_steps // 40)
    flat = [f"train.{k}={json.dumps(v)}" for k, v in values["train"].items() if k not in ("seed", "log_every")]
    flat += [f"{section}.{k}={json.dumps(v)}" for section in ("model", "data") for k, v in values[section].items()]
    flat += [f"data.directory={folder / 'measured' / 'data'}", f"data.source={warm.data.source}", "train.log_every=1"]
    flat += [f"checkpoint.every={every}", "train.collective_timeout=120"]
    shutil.rmtree(folder / "whole", ignore_errors=True)
    shutil.rmtree(folder / "cut", ignore_errors=True)
    whole, cut = (Job(folder / name, folder) for name in ("whole", "cut"))
    whole.run(*flat)
    from gaudi3_scale.batch.schedule import BatchSchedule

    schedule = BatchSchedule.of(warm, 1)
    length = warm.model.sequence_length
    ends = [schedule.steps(-(-stage["from_tokens"] // length)) for stage in stages[1:]] + [warm.train.max_steps]
    began = 0
    for end in ends:
        middle = (began + end) // 2
        with cut.running(*flat, lines=middle, saved=1):
            pass
        began = end
    said = cut.run(*flat)
    assert "resuming from step" in said
    assert cut.losses() == whole.losses()
    assert_same(cut.state(warm.train.max_steps), whole.state(warm.train.max_steps))
    return {"result": f"killed in {len(ends)} stages: {len(cut.losses()):,} losses and the last checkpoint to the bit"}
