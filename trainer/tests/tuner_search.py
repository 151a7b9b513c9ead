"""A search with made-up trials, as a process that can be killed: FOLDER SECONDS [--join]."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from gaudi3_scale.config import load
from gaudi3_scale.tuning import AutoTuner, Limits, Options, Outcome, Trial
from gaudi3_scale.tuning.trial import Report

SPACE = {"data.prefetch": [0, 1, 2, 4, 8, 16], "memory.loss_chunks": [0, 1, 2, 4]}
TRIALS = 9


def speed(prefetch: int, chunks: int) -> float:
    """Tokens per second; the best of all are 16 and 1."""
    return 100.0 + prefetch - 5 * abs(chunks - 1)


def tuner(folder: Path, seconds: float, join: bool = False) -> AutoTuner:
    """Whose trials take so long."""

    def run(trial: Trial, report: Report) -> Outcome:
        with (folder.parent / "ran").open("a") as file:
            file.write(f"{trial.number} {trial.config.data.prefetch} {trial.config.memory.loss_chunks}\n")
        time.sleep(seconds)
        found = speed(trial.config.data.prefetch, trial.config.memory.loss_chunks)
        return Outcome(tokens_per_second=found, loss=3.0)

    options = Options(folder, trials=TRIALS, repeats=2, limits=Limits(), join=join)
    return AutoTuner(load(None), SPACE, options, run)


if __name__ == "__main__":
    tuner(Path(sys.argv[1]), float(sys.argv[2]), "--join" in sys.argv).tune(lambda line: print(line, flush=True))
