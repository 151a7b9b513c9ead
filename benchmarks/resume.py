"""What it costs to go on from a checkpoint, against starting the same job afresh.

    python benchmarks/resume.py                    # 11 million parameters, 130 MiB of weights and moments
    python benchmarks/resume.py --rounds 9

Both are whole runs of `gaudi3-train fit` on one CPU thread that do one step and save once: the interpreter, the
imports, the corpus, the model, and, for the one that goes on, the checkpoint's digests verified and its tensors loaded.
Rounds alternate; the figures are medians over the rounds, of wall time and of the CPU time of all that was started.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MODEL = ["hidden_size=320", "layers=9", "intermediate_size=864", "heads=5", "kv_heads=5"]
DONE = 2  # steps of the run that leaves the checkpoint


def fit(folder: Path, steps: int) -> tuple[float, float, int]:
    """Train to ``steps`` in ``folder``: seconds, CPU seconds, and the step it went on from (0 afresh)."""
    settings = ["device=cpu", f"output_dir={folder}", f"train.max_steps={steps}", "train.threads=1"]
    settings += ["train.micro_batch_size=1", "checkpoint.every=1000000", "data.validation_samples=1", "metrics.port=0"]
    settings += [f"model.{setting}" for setting in MODEL]
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    command = [sys.executable, "-m", "gaudi3_scale", "fit", *settings]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=ROOT / "trainer/src")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    status = json.loads((folder / "status.json").read_text())
    return time.perf_counter() - began, cpu, int(status["resumed_from_step"] or 0)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5, help="rounds of each")
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        fit(folder / "left", DONE)
        size = sum(path.stat().st_size for path in (folder / "left/checkpoints").rglob("*") if path.is_file())
        times: dict[str, list[tuple[float, float]]] = {"afresh": [], "going on": []}
        for number in range(rounds):
            shutil.copytree(folder / "left", folder / f"on-{number}")
            kinds = [("afresh", folder / f"new-{number}", 1), ("going on", folder / f"on-{number}", DONE + 1)]
            for kind, where, steps in kinds if number % 2 else reversed(kinds):
                wall, cpu, from_step = fit(where, steps)
                assert from_step == (0 if kind == "afresh" else DONE), (kind, from_step)
                times[kind].append((wall, cpu))
                shutil.rmtree(where)
    print(f"checkpoint of {size / 2**20:,.0f} MiB, medians of {rounds} rounds")
    for index, what in enumerate(("wall", "cpu")):
        new, on = (statistics.median(each[index] for each in times[kind]) for kind in ("afresh", "going on"))
        print(f"{what:4}  afresh {new:6.2f} s  going on {on:6.2f} s  ratio {on / new:.3f}")


if __name__ == "__main__":
    main()
