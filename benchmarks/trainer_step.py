"""What `gaudi3-train` costs per step over a plain PyTorch loop, on CPU with all reports switched on.

    python benchmarks/trainer_step.py                      # the default model: the ratio a user sees
    python benchmarks/trainer_step.py --model 10m          # ten million parameters: aim, a ratio of at most 1.02
    python benchmarks/trainer_step.py --model tiny         # costs almost nothing: at most 1.0 ms of CPU per step
    torchrun --nproc-per-node=2 benchmarks/trainer_step.py --model tiny       # the same against a plain DDP loop
    python benchmarks/trainer_step.py --model 10m --batch 4 --features        # both with what a long job switches on

Both loops run the same model, data order, optimizer, clipping and schedule in one process, in alternating rounds (the
order within a round alternates too); both read the loss from the device every `log_every` steps. Ours is the job with
all it does between two checkpoints: it reads batches ahead, watches for interruptions, measures the wait for data,
keeps Prometheus metrics and the ledger of goodput, writes status.json and metrics.jsonl. The loops must end with the
same loss, or the comparison is refused.

With `--features` both recompute all blocks in backward, compute the loss in four parts, write TensorBoard's events at
each logged step and save every 20 steps in the background: the plain loop with DCP's `async_save`.

How to read it: `wall` is time per step, `cpu` the CPU time of all processes per step, which a busy machine disturbs
less. Each figure is the lower quartile over the rounds (what else the machine does only adds), with the distance to the
upper quartile behind it. They are figures of this CPU and say nothing of others.
"""

from __future__ import annotations

import argparse
import functools
import gc
import json
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "trainer" / "src"))

SKIPPED = 5  # steps before the clock starts
EVERY = 20  # steps between two checkpoints, with --features
MODELS = {
    "tiny": ["hidden_size=16", "layers=1", "intermediate_size=32", "sequence_length=16"],
    "default": [],
    "10m": ["hidden_size=320", "layers=9", "intermediate_size=864", "heads=5", "kv_heads=5"],
}

Times = tuple[float, float]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9, help="rounds of each loop")
    parser.add_argument("--steps", type=int, default=60, help="timed steps per round")
    parser.add_argument("--model", choices=MODELS, default="default", help="size of the model")
    parser.add_argument("--batch", type=int, default=8, help="samples per process and step")
    parser.add_argument("--features", action="store_true", help="recompute, chunked loss, TensorBoard, checkpoints")
    parser.add_argument("--json", action="store_true", help="print one JSON object only")
    arguments = parser.parse_args()
    overrides = [f"model.{setting}" for setting in MODELS[arguments.model]]
    overrides.append(f"train.micro_batch_size={arguments.batch}")
    if arguments.features:
        overrides += ["memory.activation_checkpointing=full", "memory.loss_chunks=4", f"checkpoint.every={EVERY}"]
        overrides.append("tracking.trackers=[tensorboard]")
    runs: dict[str, list[Times]] = {"plain": [], "ours": []}
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder), arguments.steps, overrides)
        bench.plain()  # whoever runs first pays for what both need
        for number in range(arguments.rounds):
            pair = [("plain", bench.plain), ("ours", bench.ours)]
            for name, loop in pair if number % 2 else reversed(pair):
                runs[name].append(bench.all_processes(loop()))
        if bench.losses["plain"] != bench.losses["ours"]:
            sys.exit(f"The loops do not compute the same: {bench.losses}.")
    if bench.topology.rank:
        return
    result = summarise(runs) | {"parameters": bench.parameters, "processes": bench.topology.world_size}
    if arguments.json:
        print(json.dumps(result))
        return
    print(f"{bench.parameters:,} parameters, {bench.topology.world_size} process(es), {arguments.rounds} rounds")
    for kind in ("wall", "cpu"):
        each = result[kind]
        print(
            f"{kind:4}  plain {each['plain_ms']:8.3f} ms (+{each['plain_spread_ms']:.3f})  "
            f"ours {each['ours_ms']:8.3f} ms (+{each['ours_spread_ms']:.3f})  "
            f"ratio {each['ratio']:.3f}  {each['extra_ms']:+.3f} ms/step"
        )


def summarise(runs: dict[str, list[Times]]) -> dict[str, Any]:
    """Lower quartiles, interquartile ranges and ratios, per step in milliseconds."""
    result: dict[str, Any] = {}
    for index, kind in enumerate(("wall", "cpu")):
        figures = {}
        for name, times in runs.items():
            low, _, high = statistics.quantiles([1000 * time[index] for time in times], n=4, method="inclusive")
            figures[f"{name}_ms"], figures[f"{name}_spread_ms"] = low, high - low
        plain, ours = figures["plain_ms"], figures["ours_ms"]
        result[kind] = figures | {"ratio": ours / plain, "extra_ms": ours - plain}
    return result


class Bench:
    """The two loops over the same job."""

    def __init__(self, folder: Path, steps: int, overrides: list[str]) -> None:
        import torch

        from gaudi3_scale.config import load
        from gaudi3_scale.data import Samples, collect
        from gaudi3_scale.distributed.process_group import ProcessGroup, Topology
        from gaudi3_scale.hpu.device import Device

        self.topology, self.device = Topology.from_environment(), Device("cpu", 0, "gloo")
        self.process_group = ProcessGroup(self.topology, self.device, 60)
        self.parameters = 0
        self.folder = folder
        self.steps = steps
        self.losses: dict[str, float] = {}
        settings = [f"output_dir={folder}", f"train.max_steps={SKIPPED + steps + 1}", "train.threads=1"]
        settings += ["checkpoint.every=1000000", "data.validation_samples=1", "metrics.port=0"]
        self.config = load(None, [*settings, "device=cpu", *overrides])
        torch.set_num_threads(1)
        corpus = collect(self.config.data, folder / "data")
        self.samples = Samples(corpus, self.config.data, self.config.model.sequence_length, self.config.train.seed)

    def batches(self) -> Any:
        """The same micro-batches for both."""
        from gaudi3_scale.data import RankBatches

        rank, size = self.topology.rank, self.topology.world_size
        return RankBatches(self.samples, 0, self.config.train.micro_batch_size, rank, size)

    def now(self) -> Times:
        """The clocks."""
        return now()

    def all_processes(self, mine: Times) -> Times:
        """The slowest wall time and the sum of the CPU times."""
        everyone = self.process_group.gather(mine)
        return max(wall for wall, _ in everyone), sum(cpu for _, cpu in everyone)

    def plain(self) -> Times:
        """The loop one would write by hand."""
        import torch

        from gaudi3_scale.distributed.randomness import seed_all
        from gaudi3_scale.models.adamw import build_optimizer
        from gaudi3_scale.models.build import build
        from gaudi3_scale.models.learning_rate import learning_rate_scale
        from gaudi3_scale.models.objectives import sample_loss

        train = self.config.train
        seed_all(train.seed)
        model = build(self.config.model).train()
        step_loss: Callable[[Any], Any] = functools.partial(sample_loss, model, chunks=self.config.memory.loss_chunks)
        after = self.features(model) if self.config.tracking.trackers else None
        self.parameters = sum(parameter.numel() for parameter in model.parameters())
        optimizer = build_optimizer(model, train)
        if self.topology.world_size > 1:

            class Whole(torch.nn.Module):
                def __init__(self) -> None:
                    super().__init__()
                    self.model = model

                def forward(self, batch: torch.Tensor) -> torch.Tensor:
                    return sample_loss(self.model, batch)

            step_loss = torch.nn.parallel.DistributedDataParallel(
                Whole(), broadcast_buffers=False, gradient_as_bucket_view=True
            )
        parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: learning_rate_scale(step, train))
        began = now()
        for step, batch in enumerate(self.batches(), 1):
            loss = step_loss(batch)
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(parameters, train.gradient_clip)
            optimizer.step()
            schedule.step()
            if step % train.log_every == 0:
                loss.item()
            if after is not None:
                after(step, loss, optimizer)
            if step == SKIPPED:
                began = now()
            if step == SKIPPED + self.steps:
                break
        self.losses["plain"] = loss.item()
        return per_step(began, now(), self.steps)

    def features(self, model: Any) -> Callable[[int, Any, Any], None]:
        """What a long job switches on, by hand; what it returns is called after each step."""
        from torch.distributed.checkpoint.state_dict_saver import async_save
        from torch.utils.tensorboard import SummaryWriter

        from gaudi3_scale.memory.checkpointing import checkpoint_all

        checkpoint_all(model, "full")
        writer = SummaryWriter(self.folder / "events")
        saved: list[Any] = []

        def after(step: int, loss: Any, optimizer: Any) -> None:
            if step == 1 or step % self.config.train.log_every == 0:
                writer.add_scalar("loss", loss.item(), step)
            if step % EVERY == 0:
                if saved:
                    saved.pop().result()
                state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
                folder = self.folder / "saved"
                shutil.rmtree(folder, ignore_errors=True)
                saved.append(async_save(state, checkpoint_id=folder, no_dist=True))

        return after

    def ours(self) -> Times:
        """What `gaudi3-train fit` runs, with a clock behind its callbacks."""
        import lightning.pytorch as pl

        from gaudi3_scale.console import Console
        from gaudi3_scale.interruption import Notices
        from gaudi3_scale.interruption.leaving import Interruption
        from gaudi3_scale.job.fit import train
        from gaudi3_scale.run import Run
        from gaudi3_scale.status import Progress, StatusFile
        from gaudi3_scale.throughput.ledger import Ledger, use

        last, clocks = SKIPPED + self.steps, self.now

        class Clock(pl.Callback):
            began = ended = (0.0, 0.0)
            loss = 0.0

            def on_train_batch_end(self, trainer: Any, module: Any, outputs: Any, batch: Any, index: int) -> None:
                if index + 1 == SKIPPED:
                    self.began = clocks()
                if index + 1 == last:
                    self.ended = clocks()
                    self.loss = outputs["loss"].item()

        clock = Clock()
        config, topology = self.config, self.topology
        shutil.rmtree(self.folder / "checkpoints", ignore_errors=True)
        progress = Progress(
            max_steps=config.train.max_steps,
            world_size=topology.world_size,
            device=self.device.type,
            tokens_per_sample=config.tokens_per_sample,
            samples_per_step=config.train.micro_batch_size * topology.world_size,
        )
        status = StatusFile(self.folder / "status.json")
        status.write("starting", progress)
        notices = Notices(config.interruption, topology.local_rank == 0)
        interruption = Interruption.of_job(notices, self.process_group, progress, status)
        console = Console(speaks=False, bar=False)
        run = Run(config, self.device, self.process_group, progress, console, status, interruption, use(Ledger()))
        try:
            train(run, clock)
        finally:
            gc.unfreeze()  # a job freezes what there is, and has its process to itself
        self.losses["ours"] = clock.loss
        gc.collect()
        return per_step(clock.began, clock.ended, self.steps)


def now() -> Times:
    """Wall clock and this process's CPU time."""
    return time.perf_counter(), time.process_time()


def per_step(began: Times, ended: Times, steps: int) -> Times:
    """Seconds per step."""
    return (ended[0] - began[0]) / steps, (ended[1] - began[1]) / steps


if __name__ == "__main__":
    main()
