"""The search of a job's settings: what is tried, what is recorded, what is recommended, and what survives a kill."""

from __future__ import annotations

import doctest
import importlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from conftest import PACKAGES, SMALL
from tuner_search import TRIALS, speed, tuner

from gaudi3_scale.config import Config, load
from gaudi3_scale.errors import ConfigError, TrainerError
from gaudi3_scale.tuning import AutoTuner, Limits, Options, Outcome, Result, Space, Trial
from gaudi3_scale.tuning.fit_runner import FitRunner, _failure
from gaudi3_scale.tuning.study_options import Objective, Pruner, StudyStorage
from gaudi3_scale.tuning.trial import Report, Runner
from gaudi3_scale.tuning.trial_ratio import ratio

SCRIPT = Path(__file__).with_name("tuner_search.py")
TEXT: dict[str, Any] = {"capture_output": True, "text": True, "check": True}
PRICE = ("cost.node_price_per_hour=36", "cost.price_source=a contract", "cost.price_date=2026-11-01")


def records(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "trials.jsonl").read_text().splitlines()]


def search(folder: Path, runner: Runner, space: dict[str, Any], config: Config | None = None, **given: Any) -> Result:
    options = Options(folder, **{"trials": 6, "repeats": 2, **given})
    return AutoTuner(config or load(None), space, options, runner).tune(lambda line: None)


@pytest.mark.parametrize("name", ["tuner", "space", "trial_ratio", "fit_runner"])
def test_the_examples_of_a_module_run(name: str) -> None:
    ran = doctest.testmod(importlib.import_module(f"gaudi3_scale.tuning.{name}"))
    assert ran.failed == 0 and ran.attempted > 0


def test_importing_it_imports_neither_optuna_nor_torch() -> None:
    code = "import sys, gaudi3_scale.tuning as t; t.AutoTuner, t.Space; print({'optuna', 'torch'} & set(sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": PACKAGES}, **TEXT)
    assert run.stdout == "set()\n"


def test_without_optuna_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(TrainerError, match=r"needs the package optuna.*pip install 'optuna>=5,<6'"):
        search(tmp_path / "study", lambda trial, report: Outcome(), {"data.prefetch": [0]})
    assert not (tmp_path / "study").exists()


def test_the_known_optimum_is_found(tmp_path: Path) -> None:
    space = {
        "data.prefetch": [0, 1, 2, 4, 8, 16],
        "memory.loss_chunks": [0, 1, 2, 4],
        "train.micro_batch_size": [1, 2, 4, 8],
        "train.weight_decay": {"low": 0.0, "high": 1.0},
    }

    def run(trial: Trial, report: Report) -> Outcome:
        train = trial.config.train
        assert train.micro_batch_size * train.accumulation_steps == 8  # whatever is tried
        near = speed(trial.config.data.prefetch, trial.config.memory.loss_chunks)
        near -= 4 * abs(train.micro_batch_size - 4) + 20 * (train.weight_decay - 0.7) ** 2
        return Outcome(tokens_per_second=near, loss=3.0)

    # 96 combinations, each with any weight decay; the optimum is 116 tokens/s.
    found = search(tmp_path, run, space, trials=50)
    assert found.best["value"] > 115 and found.values["data.prefetch"] == 16
    assert (found.values["memory.loss_chunks"], found.values["train.micro_batch_size"]) == (1, 4)
    assert 0.5 < found.values["train.weight_decay"] < 0.9
    first = records(tmp_path)[0]
    assert first["number"] == 0
    assert first["values"] == Space(space, load(None)).default()
    best = load(found.config)  # as `fit --config` does
    assert (best.train.micro_batch_size, best.train.accumulation_steps, best.data.prefetch) == (4, 2, 16)


def test_what_fails_is_recorded_and_not_the_end(tmp_path: Path) -> None:
    def run(trial: Trial, report: Report) -> Outcome:
        count = trial.config.data.prefetch
        if count == 4:
            return Outcome(state="out of memory", reason="the device is full", environment={"device": "cpu"})
        if count == 8:
            return Outcome(tokens_per_second=500.0, loss=3.0, memory_gib=9.0)
        return Outcome(tokens_per_second=100.0 + count, loss=9.0 if count == 16 else 3.0, memory_gib=1.0)

    space = {"data.prefetch": [0, 1, 2, 4, 8, 16, 32], "train.micro_batch_size": [8, 3]}
    found = search(tmp_path, run, space, trials=14, limits=Limits(memory_gib=4, loss_tolerance=0.1))
    by = {(r["values"]["data.prefetch"], r["values"]["train.micro_batch_size"]): r for r in records(tmp_path)}
    assert len(by) == len(records(tmp_path)) == 14  # every combination, each once
    assert by[4, 8]["state"] == "out of memory" and by[4, 8]["reason"] == "the device is full"
    assert by[4, 8]["environment"] == {"device": "cpu"}
    assert by[8, 8]["state"] == "infeasible"
    assert by[8, 8]["reason"] == "it took 9.00 GiB, more than the limit of 4"
    assert by[16, 8]["reason"] == "its loss of 9.0 is more than what the default's and the tolerance allow, 3.3"
    assert by[2, 3]["state"] == "failed" and "global batch of 8 samples is no multiple of 3" in by[2, 3]["reason"]
    assert found.values == {"data.prefetch": 32, "train.micro_batch_size": 8} and found.best["value"] == 132


def test_without_one_good_trial_it_says_where_to_look(tmp_path: Path) -> None:
    with pytest.raises(TrainerError, match=r"Not one of 2 trials could be used: .*trials.jsonl says why"):
        search(tmp_path, lambda trial, report: Outcome(state="failed", reason="no"), {"data.prefetch": [1, 2]})


def test_no_better_than_the_default_keeps_the_default(tmp_path: Path) -> None:
    said: list[str] = []
    speeds = iter([100.0, 101.0, 100.0, 104.0, 103.0, 100.0])  # trials 0 and 1; then default, best, best, default

    def run(trial: Trial, report: Report) -> Outcome:
        return Outcome(tokens_per_second=next(speeds), loss=3.0)

    options = Options(tmp_path, trials=2, repeats=2)
    found = AutoTuner(load(None), {"data.prefetch": [2, 8]}, options, run).tune(said.append)
    assert found.best["values"] == {"data.prefetch": 8} and found.ratio is not None
    assert found.ratio.low < 1 < found.ratio.ratio
    assert said[-2].startswith("no better than the default: 1.035 (95 % interval ")
    assert found.values == {"data.prefetch": 2} and load(found.config) == load(None)


def test_a_trial_that_had_a_good_moment_does_not_win(tmp_path: Path) -> None:
    def run(trial: Trial, report: Report) -> Outcome:
        lucky = trial.config.data.prefetch == 4 and trial.number >= 0
        return Outcome(tokens_per_second=900.0 if lucky else 100.0 + trial.config.data.prefetch, loss=3.0)

    found = search(tmp_path, run, {"data.prefetch": [0, 1, 2, 4, 8, 16]})
    assert max(records(tmp_path), key=lambda record: record["value"])["values"] == {"data.prefetch": 4}
    assert found.values == {"data.prefetch": 16} and found.ratio is not None
    assert found.ratio.ratio == pytest.approx(116 / 102)
    lines = [json.loads(line) for line in (tmp_path / "comparison.jsonl").read_text().splitlines()]
    tried = [line["values"]["data.prefetch"] for line in lines]
    assert tried == [4, 16, 8, 8, 16, 4, 2, 16, 16, 2]  # finalists there and back, then default and best in turn


def test_the_interval_is_students() -> None:
    found = ratio([(110.0, 100.0), (121.0, 100.0), (133.1, 100.0)])
    assert found is not None and found.ratio == pytest.approx(1.21)
    assert (found.low, found.high) == (pytest.approx(0.9549, abs=1e-4), pytest.approx(1.5333, abs=1e-4))
    faster = ratio([(5.0, 10.0), (5.0, 10.0)], maximise=False)
    assert faster is not None and faster.ratio == pytest.approx(2.0)


def test_slow_trials_are_pruned_and_the_default_never_is(tmp_path: Path) -> None:
    def run(trial: Trial, report: Report) -> Outcome:
        value = 50.0 if trial.config.data.prefetch == 2 else 100.0 - trial.config.data.prefetch
        for step in (10, 20, 30):
            if report(step, value):
                return Outcome(state="pruned", reason=f"after {step}", tokens_per_second=value)
        return Outcome(tokens_per_second=value, loss=3.0)

    space = {"data.prefetch": [2, *range(10, 34, 2)]}
    found = search(tmp_path, run, space, trials=12, pruner=Pruner.median)
    states = {record["values"]["data.prefetch"]: record["state"] for record in records(tmp_path)}
    assert states[2] == "complete" and "pruned" in states.values()
    assert found.best["state"] == "complete"


def test_money_needs_a_price_and_time_a_loss(tmp_path: Path) -> None:
    def run(trial: Trial, report: Report) -> Outcome:
        reached = None if trial.config.data.prefetch == 0 else 8.0 - trial.config.data.prefetch
        return Outcome(tokens_per_second=10.0 + trial.config.data.prefetch, loss=3.0, seconds_to_loss=reached)

    with pytest.raises(ConfigError, match=r"set cost.node_price_per_hour, cost.price_source and cost.price_date"):
        search(tmp_path / "a", run, {"data.prefetch": [0, 4]}, objective=Objective.tokens_per_currency)
    assert not (tmp_path / "a").exists()
    priced = load(None, PRICE)
    found = search(tmp_path / "a", run, {"data.prefetch": [0, 4]}, priced, objective=Objective.tokens_per_currency)
    assert found.best["value"] == 14.0 * 3600 / 36
    with pytest.raises(ConfigError, match=r"--target-loss and --objective time_to_loss go together"):
        search(tmp_path / "b", run, {"data.prefetch": [0]}, objective=Objective.time_to_loss)
    goal = {"objective": Objective.time_to_loss, "target_loss": 2.5}
    found = search(tmp_path / "b", run, {"data.prefetch": [0, 2, 4]}, **goal)
    assert found.best["value"] == 4.0 and found.values == {"data.prefetch": 4}
    slow = next(record for record in records(tmp_path / "b") if record["values"] == {"data.prefetch": 0})
    assert slow["state"] == "infeasible" and slow["reason"] == "it did not reach the loss 2.5, but 3.0"


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "unknown": ({"train.thread": [1]}, r"unknown key 'train.thread': did you mean 'train.threads'\?"),
    "section": ({"train": [1]}, r"unknown key 'train'"),
    "own": ({"train.max_steps": [5]}, r"has 'train.max_steps', which trials set themselves or need alike: take it out"),
    "value": ({"train.threads": [1, -1]}, r"gives train.threads -1, but it should be greater than or equal to 0\."),
    "word": ({"memory.attention": ["sdpa", "best"]}, r"gives memory.attention 'best', but it should be 'auto', 'sdpa'"),
    "scalar": ({"train.threads": 3}, r"gives train.threads 3: give a list of values, or a mapping with low and high"),
    "order": ({"train.learning_rate": {"low": 1, "high": 0.1}}, r"give numbers low < high"),
    "misses": ({"train.learning_rate": {"low": 0.1, "high": 1}}, r"without the job's own value 0.003, .*: widen it"),
    "log": ({"train.weight_decay": {"low": 0, "high": 1, "log": True}}, r"give a low above 0"),
    "processes": ({"processes": [0]}, r"gives processes 0: give whole numbers from 1 on"),
    "empty": ({}, r"The search space is empty"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_space_is_refused_in_one_sentence(name: str) -> None:
    given, words = WRONG[name]
    with pytest.raises(ConfigError, match=words) as error:
        Space(given, load(None))
    assert "\n" not in str(error.value) and len(str(error.value)) < 250


def test_the_default_space_is_of_the_job_and_its_device() -> None:
    config = load(None, ["train.micro_batch_size=4", "train.accumulation_steps=3"])
    space = Space.of(config, "cpu")
    assert space.default()["train.threads"] == 0 and "train.threads" not in Space.of(config, "hpu").parameters
    assert space.describe()["train.micro_batch_size"] == [3, 4, 6, 12]
    stages = "[{from_tokens: 0, samples_per_step: 12}, {from_tokens: 99999, samples_per_step: 20}]"
    growing = load(None, ["train.micro_batch_size=2", f"train.batch_warmup={stages}"])
    assert Space.of(growing, "hpu").describe()["train.micro_batch_size"] == [1, 2, 4]
    assert Space.of(growing, "hpu").apply({"train.micro_batch_size": 4}, 1)[0].train.accumulation_steps == 1
    config = load(None, ["train.micro_batch_size=4", "train.accumulation_steps=4"])
    applied, processes = Space({"processes": [1, 2]}, config, 1).apply({"processes": 2}, 1)
    assert (processes, applied.train.micro_batch_size, applied.train.accumulation_steps) == (2, 4, 2)


def test_a_killed_search_goes_on_where_it_was(tmp_path: Path) -> None:
    folder = tmp_path / "study"
    process = subprocess.Popen([sys.executable, SCRIPT, folder, "0.3"], env={**os.environ, "PYTHONPATH": PACKAGES})
    wait(lambda: (tmp_path / "ran").exists() and len((tmp_path / "ran").read_text().splitlines()) == 3)
    process.send_signal(signal.SIGKILL)
    process.wait()
    with (folder / "study.journal").open("ab") as journal:
        journal.write(b'{"op_code":6,"worker_')  # as a kill amid a write leaves it
    found = tuner(folder, 0).tune(lambda line: None)

    tried = records(folder)
    killed = [record for record in tried if record["state"] == "killed"]
    assert [record["number"] for record in killed] == [2]
    assert [r["values"] for r in tried if r["number"] == 3] == [killed[0]["values"]]  # made again at once
    kept = [json.dumps(record["values"]) for record in tried if record["state"] == "complete"]
    assert len(kept) == len(set(kept)) == TRIALS
    ran = (tmp_path / "ran").read_text().splitlines()
    assert len(ran) == TRIALS + 1 + 6 + 4  # none that had ended was made again; then three finalists and two pairs
    assert found.best["value"] == max(record["value"] for record in tried if record["value"] is not None)
    again = tuner(folder, 0).tune(lambda line: None)  # nothing is left to do
    assert again.values == found.values and (tmp_path / "ran").read_text().splitlines() == ran


def test_several_processes_join_one_study(tmp_path: Path) -> None:
    command = [sys.executable, SCRIPT, tmp_path / "study", "0.1"]
    both = [
        subprocess.Popen([*command, "--join"], env={**os.environ, "PYTHONPATH": PACKAGES}, text=True, stdout=-1)
        for _ in range(2)
    ]
    wait(lambda: (tmp_path / "ran").exists())
    alone = subprocess.run(command, env={**os.environ, "PYTHONPATH": PACKAGES}, capture_output=True, text=True)
    assert "Another gaudi3-train tune works on the study" in alone.stderr and "give --join" in alone.stderr
    said = [process.communicate(timeout=60)[0] for process in both]
    tried = records(tmp_path / "study")
    assert len(tried) == TRIALS and len({json.dumps(record["values"]) for record in tried}) == TRIALS
    pids = {record["owner"]["pid"] for record in tried}
    assert pids == {process.pid for process in both}  # each made some
    assert said[0].splitlines()[-2:] == said[1].splitlines()[-2:]  # and both know the result
    assert len((tmp_path / "ran").read_text().splitlines()) == TRIALS + 6 + 4


def test_a_search_in_a_database_goes_on_too(tmp_path: Path) -> None:
    ran: list[int] = []

    def run(trial: Trial, report: Report) -> Outcome:
        ran.append(trial.number)
        if len(ran) == 2:
            raise KeyboardInterrupt
        return Outcome(tokens_per_second=10.0 + trial.config.data.prefetch, loss=3.0)

    space = {"data.prefetch": [0, 4]}
    with pytest.raises(KeyboardInterrupt):
        search(tmp_path, run, space, storage=StudyStorage.sqlite)
    found = search(tmp_path, run, space, storage=StudyStorage.sqlite)
    assert found.values == {"data.prefetch": 4} and (tmp_path / "study.sqlite").exists()
    assert [(r["number"], r["state"]) for r in records(tmp_path)][:3] == [
        (0, "complete"),
        (1, "killed"),
        (2, "complete"),
    ]
    assert ran[:3] == [0, 1, 2]


def test_another_space_is_another_study(tmp_path: Path) -> None:
    search(tmp_path, lambda trial, report: Outcome(tokens_per_second=1.0, loss=3.0), {"data.prefetch": [0, 2]})
    with pytest.raises(ConfigError, match=r"holds the study of another job, space, objective.*give another --study"):
        search(tmp_path, lambda trial, report: Outcome(), {"data.prefetch": [0, 4]})


def test_a_trial_is_a_real_job(text: Path, tmp_path: Path) -> None:
    small = [*SMALL, f"data.source={text}", "model.layers=2", "model.hidden_size=32", "train.micro_batch_size=2"]
    config = load(None, [*small, "train.max_steps=1000", "data.validation_samples=4", f"output_dir={tmp_path / 'job'}"])
    options = Options(tmp_path / "study", steps=12, time_limit=60)
    runner = FitRunner(options, tmp_path / "data")
    trial = Trial(7, tmp_path / "study" / "trials" / "0007", config, 1, {}, f"{tmp_path}:7")
    told: list[int] = []

    def report(step: int, value: float) -> bool:
        assert value > 0
        told.append(step)
        return False

    outcome = runner(trial, report)
    assert (outcome.state, outcome.reason) == ("complete", "")
    assert told and told == sorted(set(told)) and told[-1] <= 12
    lines = [json.loads(line) for line in (trial.folder / "metrics.jsonl").read_text().splitlines()]
    steps = [line for line in lines if "tokens" in line]
    assert steps[-1]["step"] == 12 and outcome.loss == steps[-1]["loss"]
    first, last = next(line for line in steps if line["step"] >= 3), steps[-1]
    speed = (last["tokens"] - first["tokens"]) / (last["time"] - first["time"])
    assert outcome.tokens_per_second == pytest.approx(speed)
    assert outcome.memory_gib is not None and 0.1 < outcome.memory_gib < 4  # of the process, as there is no device
    assert outcome.environment["device"] == "cpu" and "torch" in outcome.environment["software"]
    assert not (tmp_path / "job").exists() and not (trial.folder / "checkpoints").exists()
    assert yaml.safe_load((trial.folder / "config.yml").read_text())["train"]["max_steps"] == 12

    late = FitRunner(Options(tmp_path / "study", steps=12, time_limit=0.01), tmp_path / "data")(trial, report)
    assert late.state == "timed out" and late.reason == "not finished within 0.01 s, after step 0"


def test_a_trial_that_ended_badly_is_told_by_its_words(tmp_path: Path) -> None:
    trial = Trial(0, tmp_path, load(None), 1, {}, "")
    (tmp_path / "log").write_text("step 1\ngaudi3-train: data.source is gone.\n")
    assert _failure(trial, 2, {}) == ("failed", "exit code 2: data.source is gone.")
    (tmp_path / "log").write_text("torch.OutOfMemoryError: out of memory. Tried to allocate 20.00 MiB\n")
    assert _failure(trial, 1, {})[0] == "out of memory"
    (tmp_path / "log").write_text("")
    assert _failure(trial, -9, {})[0] == "out of memory"


def wait(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.02)
