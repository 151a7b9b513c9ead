"""What `gaudi3-train` costs per step over a plain PyTorch loop, on one CPU process with all reports switched on.

    python benchmarks/trainer_step.py                 # the default model: the ratio a user sees
    python benchmarks/trainer_step.py --tiny          # a model that costs almost nothing: the overhead in ms per step
    python benchmarks/trainer_step.py --rounds 9 --steps 100 --json

Both loops run the same model, data order, optimizer, clipping and schedule in one process, in alternating rounds (the
order within a round alternates too); both read the loss from the device every `log_every` steps. Ours also writes
status.json and metrics.jsonl, keeps Prometheus metrics and formats the log line; checkpoints are outside the timed
steps. The loops must end with the same loss, or the comparison is refused.

How to read it: `wall` is time per step, `cpu` the process's CPU time per step, which a busy machine disturbs less.
`ratio` compares the medians, `ratio_min` the best rounds. The aim is a ratio of at most 1.05 with the default model
and about 0.5 ms of CPU time per step with --tiny. They are figures of this CPU and say nothing of others.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "trainer" / "src"))

SKIPPED = 5  # steps before the clock starts

Times = tuple[float, float]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5, help="rounds of each loop")
    parser.add_argument("--steps", type=int, default=60, help="timed steps per round")
    parser.add_argument("--tiny", action="store_true", help="a model that costs almost nothing")
    parser.add_argument("--json", action="store_true", help="print one JSON object only")
    arguments = parser.parse_args()
    overrides = ["model.hidden_size=16", "model.layers=1", "model.intermediate_size=32", "model.sequence_length=16"]
    runs: dict[str, list[Times]] = {"plain": [], "ours": []}
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder), arguments.steps, overrides if arguments.tiny else [])
        for number in range(arguments.rounds):
            pair = [("plain", bench.plain), ("ours", bench.ours)]
            for name, loop in pair if number % 2 else reversed(pair):
                runs[name].append(loop())
        if bench.losses["plain"] != bench.losses["ours"]:
            sys.exit(f"The loops do not compute the same: {bench.losses}.")
    result = summarise(runs)
    if arguments.json:
        print(json.dumps(result))
        return
    for kind in ("wall", "cpu"):
        each = result[kind]
        print(
            f"{kind:4}  plain {each['plain_ms']:8.3f} ms  ours {each['ours_ms']:8.3f} ms  "
            f"ratio {each['ratio']:.3f} (min {each['ratio_min']:.3f})  {each['extra_ms']:+.3f} ms/step"
        )


def summarise(runs: dict[str, list[Times]]) -> dict[str, dict[str, float]]:
    """Medians, best rounds and ratios, per step in milliseconds."""
    result = {}
    for index, kind in enumerate(("wall", "cpu")):
        plain, ours = ([1000 * times[index] for times in runs[name]] for name in ("plain", "ours"))
        plain_ms, ours_ms = statistics.median(plain), statistics.median(ours)
        result[kind] = {
            "plain_ms": plain_ms,
            "ours_ms": ours_ms,
            "ratio": ours_ms / plain_ms,
            "ratio_min": min(ours) / min(plain),
            "extra_ms": ours_ms - plain_ms,
        }
    return result


class Bench:
    """The two loops over the same job."""

    def __init__(self, folder: Path, steps: int, overrides: list[str]) -> None:
        import torch

        from gaudi3_scale.config import load
        from gaudi3_scale.data import Samples, collect

        self.folder = folder
        self.steps = steps
        self.losses: dict[str, float] = {}
        settings = [f"output_dir={folder}", f"train.max_steps={SKIPPED + steps}", "device=cpu", "train.threads=1"]
        self.config = load(None, [*settings, *overrides])
        torch.set_num_threads(1)
        corpus = collect(self.config.data, folder / "data")
        self.samples = Samples(corpus, self.config.data, self.config.model.sequence_length, 1)

    def batches(self) -> Any:
        """The same micro-batches for both."""
        from gaudi3_scale.data import RankBatches

        return RankBatches(self.samples, 0, self.config.train.micro_batch_size, 0, 1)

    def plain(self) -> Times:
        """The loop one would write by hand."""
        import torch

        from gaudi3_scale.models.build import build_llama
        from gaudi3_scale.models.objectives import sample_loss
        from gaudi3_scale.optimisation import build_optimizer, learning_rate_scale
        from gaudi3_scale.randomness import seed_all

        train = self.config.train
        seed_all(train.seed)
        model = build_llama(self.config.model).train()
        optimizer = build_optimizer(model, train)
        parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: learning_rate_scale(step, train))
        began = now()
        for step, batch in enumerate(self.batches(), 1):
            loss = sample_loss(model, batch)
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            torch.nn.utils.clip_grad_norm_(parameters, train.gradient_clip)
            optimizer.step()
            schedule.step()
            if step % train.log_every == 0:
                loss.item()
            if step == SKIPPED:
                began = now()
            if step == train.max_steps:
                break
        self.losses["plain"] = loss.item()
        return per_step(began, now(), self.steps)

    def ours(self) -> Times:
        """What `gaudi3-train fit` runs, minus the collection of data."""
        import lightning.pytorch as pl

        from gaudi3_scale.accelerator import build_trainer
        from gaudi3_scale.callbacks.report import Report
        from gaudi3_scale.callbacks.start import Start
        from gaudi3_scale.console import Console
        from gaudi3_scale.device import Device
        from gaudi3_scale.distributed import Team, Topology
        from gaudi3_scale.fit import quiet
        from gaudi3_scale.metrics import TrainingMetrics
        from gaudi3_scale.models.module import LanguageModule
        from gaudi3_scale.randomness import seed_all
        from gaudi3_scale.status import MetricsFile, Progress, StatusFile

        config, topology, device = self.config, Topology(), Device("cpu", 0, "gloo")
        progress = Progress(
            max_steps=config.train.max_steps,
            world_size=1,
            device="cpu",
            sequence_length=config.model.sequence_length,
            samples_per_step=config.train.micro_batch_size,
        )
        team = Team(topology, device, 60)
        report = Report(
            config,
            team,
            progress,
            Console(speaks=False, bar=False),
            StatusFile(self.folder / "status.json"),
            MetricsFile(self.folder / "metrics.jsonl"),
            TrainingMetrics(progress, 1),
        )

        class Clock(pl.Callback):
            began = ended = (0.0, 0.0)
            loss = 0.0

            def on_train_batch_end(self, trainer: Any, module: Any, outputs: Any, batch: Any, index: int) -> None:
                if index + 1 == SKIPPED:
                    self.began = now()
                if index + 1 == config.train.max_steps:
                    self.ended = now()
                    self.loss = outputs["loss"].item()

        clock = Clock()
        seed_all(config.train.seed)
        module = LanguageModule(config, device)
        quiet()
        callbacks = [Start(config, device, topology, None), report, clock]
        trainer = build_trainer(config, device, topology, config.train.max_steps, callbacks)
        trainer.fit(module, train_dataloaders=self.batches())
        self.losses["ours"] = clock.loss
        return per_step(clock.began, clock.ended, self.steps)


def now() -> Times:
    """Wall clock and this process's CPU time."""
    return time.perf_counter(), time.process_time()


def per_step(began: Times, ended: Times, steps: int) -> Times:
    """Seconds per step."""
    return (ended[0] - began[0]) / steps, (ended[1] - began[1]) / steps


if __name__ == "__main__":
    main()
