"""What the search of settings promises: a known optimum, kills that cost nothing, a faster demo."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import PACKAGES
from tuner_search import SPACE, TRIALS, speed, tuner

from gaudi3_scale.config import load
from gaudi3_scale.tuning import AutoTuner, Options, Outcome, Trial
from gaudi3_scale.tuning.trial import Report
from tests.suite.proof import Proof

PROOF = Proof(
    "tuner",
    {"made up": ["known optimum"], "killed": ["kill -9"], "real": ["the demo's model"]},
    sample=["known optimum"],
)
TEXT = """
`gaudi3-train tune`, held to what it promises. *Known optimum*: made-up trials whose best settings are known, with
another seed each time. *kill -9*: a search is killed at random instants and started again until it is done; no result
may be lost, and none made twice. *The demo's model*: the trainer's default job, which the demo trains, on the CPU of
this machine, with the default search space and real trials; then the best and the default in turn. The ratio is that
of tokens per second, the interval Student's of the logarithms of the pairs' ratios. The load average tells what else
the machine did. It is a figure of this machine, and says nothing about a Gaudi.
"""
SEEDS = range(10)
KILLS = 6


def optimum(folder: Path) -> tuple[str, str]:
    """96 combinations of which one is the best."""
    space: dict[str, Any] = {**SPACE, "train.micro_batch_size": [1, 2, 4, 8]}
    needed = []

    def run(trial: Trial, report: Report) -> Outcome:
        found = speed(trial.config.data.prefetch, trial.config.memory.loss_chunks)
        return Outcome(tokens_per_second=found - 4 * abs(trial.config.train.micro_batch_size - 4), loss=3.0)

    for seed in SEEDS if PROOF.is_running else (0,):
        options = Options(folder / str(seed), trials=60, repeats=2, seed=seed)
        found = AutoTuner(load(None), space, options, run).tune(lambda line: None)
        best = {"data.prefetch": 16, "memory.loss_chunks": 1, "train.micro_batch_size": 4}
        assert found.values == best and found.best["value"] == 116.0
        tried = [json.loads(line) for line in (options.folder / "trials.jsonl").read_text().splitlines()]
        needed.append(1 + next(number for number, record in enumerate(tried) if record["values"] == best))
    found_after = sorted(needed)
    return f"{len(needed)} of {len(needed)} seeds", f"after {found_after[0]} to {found_after[-1]} of 60 trials"


def kills(folder: Path) -> tuple[str, str]:
    """A search that is killed again and again."""
    draw, instants = random.Random(PROOF.seed), []
    for _ in range(KILLS):
        process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("tuner_search.py")), str(folder / "study"), "0.2"],
            env={**os.environ, "PYTHONPATH": PACKAGES},
            stdout=subprocess.DEVNULL,
        )
        time.sleep(instant := draw.uniform(1.5, 4.0))
        instants.append(instant)
        process.send_signal(signal.SIGKILL)
        process.wait()
    tuner(folder / "study", 0).tune(lambda line: None)
    tried = [json.loads(line) for line in (folder / "study" / "trials.jsonl").read_text().splitlines()]
    kept = [json.dumps(record["values"]) for record in tried if record["state"] == "complete"]
    killed = [record for record in tried if record["state"] == "killed"]
    assert len(kept) == len(set(kept)) == TRIALS
    assert all(json.dumps(record["values"]) in kept for record in killed if record["values"])  # each was made again
    return f"{TRIALS} of {TRIALS} trials", f"{KILLS} kills, {len(killed)} trials made again, none twice"


def demo(folder: Path) -> tuple[str, str]:
    """The job that the trainer has by default, whose model is the demo's."""
    config = load(None, ["device=cpu", f"output_dir={folder}"])
    keep = os.environ.get("GAUDI3_TUNER_STUDY")  # to look at afterwards, or to go on with
    options = Options(Path(keep) if keep else folder / "study", trials=12, steps=96, repeats=9, time_limit=240)
    found = AutoTuner(config, None, options).tune()
    assert found.ratio is not None and found.ratio.low > 1 and found.ratio.ratio >= 1.10, found.verdict
    changed = {k: v for k, v in found.values.items() if v != AutoTuner(config, None, options).space.default()[k]}
    words = " ".join(f"{key}={value}" for key, value in changed.items())
    lines = [json.loads(line) for line in (options.folder / "comparison.jsonl").read_text().splitlines()]
    loads = sorted(line["environment"]["load"] for line in lines)
    load_words = f"load average {loads[0]:.1f} to {loads[-1]:.1f} on {lines[0]['environment']['cores']} cores"
    return f"{found.ratio} times the default's tokens/s", f"{words}; {load_words}"


CASES: dict[str, Callable[[Path], tuple[str, str]]] = {
    "known optimum": optimum,
    "kill -9": kills,
    "the demo's model": demo,
}


@pytest.mark.parametrize("case", PROOF.parameters({name: name for name in CASES}))
def test_the_search_keeps_what_it_promises(case: str, tmp_path: Path) -> None:
    PROOF.skip_if_held(case)
    held, how = CASES[case](tmp_path)
    if PROOF.is_running:
        PROOF.note(case, {"held": held, "how": how})
        PROOF.write_table("The search of a job's settings", TEXT, ["held", "how"])
