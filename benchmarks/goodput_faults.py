"""How much of a job's time is lost to faults, against a plain Lightning script with `ModelCheckpoint`.

    python benchmarks/goodput_faults.py                    # two SIGTERM and two SIGKILL in 300 steps
    python benchmarks/goodput_faults.py --seed 7 --steps 600

Both train the same model on the same batches with one CPU thread, save every 25 steps, meet the same signals at the
same steps, and are started again at once. Each also runs without a fault. The share printed is the time without faults
over the time with them: 1.0 would be a fault that costs nothing. Most of the loss is start-up, as steps are short here:
`redone` says how many steps were trained twice, which does not depend on the machine.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "trainer" / "src"))

EVERY = 25  # steps between two checkpoints
SETTINGS = [
    "device=cpu",
    "train.threads=1",
    "train.micro_batch_size=8",
    "train.log_every=1",
    f"checkpoint.every={EVERY}",
    "data.validation_samples=1",
    "metrics.enabled=false",
]


@dataclass
class Outcome:
    """One job from its first start to its last end."""

    seconds: float
    redone: int
    """Steps that were trained twice."""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--steps", type=int, default=300, help="optimizer steps of the job")
    parser.add_argument("--seed", type=int, default=1, help="chooses the steps at which a signal is sent")
    parser.add_argument("--plain", metavar="FOLDER", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.plain:
        train_plainly(Path(arguments.plain), arguments.steps)
        return
    places = sorted(random.Random(arguments.seed).sample(range(EVERY, arguments.steps - EVERY), 4))
    faults = list(zip(places, (signal.SIGTERM, signal.SIGKILL, signal.SIGKILL, signal.SIGTERM), strict=True))
    print(f"{arguments.steps} steps; " + ", ".join(f"{number.name} at step {step}" for step, number in faults))
    with tempfile.TemporaryDirectory() as name:
        for kind in ("gaudi3-train", "ModelCheckpoint"):
            calm = run(kind, Path(name) / f"{kind}-calm", arguments.steps, [])
            hit = run(kind, Path(name) / f"{kind}-hit", arguments.steps, faults)
            print(
                f"{kind:16} {calm.seconds:6.1f} s without faults, {hit.seconds:6.1f} s with them, share "
                f"{calm.seconds / hit.seconds:.3f}, redone {hit.redone} steps"
            )


def run(kind: str, folder: Path, steps: int, faults: list[tuple[int, signal.Signals]]) -> Outcome:
    """Run one job to its end, started again after each fault."""
    folder.mkdir()
    pending, redone, reached, began = list(faults), 0, 0, time.monotonic()
    while True:
        started, counted = time.time(), False
        process = start(kind, folder, steps)
        while process.poll() is None:
            time.sleep(0.005)
            seen = progress(folder, started)
            if seen is None:
                continue
            resumed_from, step = seen
            if not counted:
                redone, counted = redone + max(0, reached - resumed_from), True
            reached = step
            if pending and step >= pending[0][0]:
                process.send_signal(pending.pop(0)[1])
                break
        code = process.wait()
        reached = max(reached, (progress(folder, started) or (0, 0))[1])
        if reached >= steps and code == 0:
            return Outcome(time.monotonic() - began, redone)
        if not faults or code == 1:
            sys.exit(f"{kind} ended with {code}: {(folder / 'output').read_text()[-2000:]}")


def start(kind: str, folder: Path, steps: int) -> subprocess.Popen[bytes]:
    """Start a job, or go on with it."""
    command = [sys.executable, __file__, "--plain", str(folder), "--steps", str(steps)]
    if kind == "gaudi3-train":
        command = [sys.executable, "-m", "gaudi3_scale", "fit", *SETTINGS, f"output_dir={folder}"]
        command.append(f"train.max_steps={steps}")
    with (folder / "output").open("ab") as output:
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "trainer" / "src")}
        return subprocess.Popen(command, env=environment, stdout=output, stderr=subprocess.STDOUT)


def progress(folder: Path, started: float) -> tuple[int, int] | None:
    """The step that the process started then went on from, and the last that it has logged; None before that."""
    try:
        status = json.loads((folder / "status.json").read_text())
        if status["started_at"] < started or status["state"] == "starting":
            return None
        return status["resumed_from_step"] or 0, json.loads((folder / "metrics.jsonl").read_text().splitlines()[-1])[
            "step"
        ]
    except (FileNotFoundError, ValueError, IndexError):
        return None


def train_plainly(folder: Path, steps: int) -> None:
    """What one would write with Lightning alone: the same model, batches and optimizer, and `ModelCheckpoint`."""
    import lightning.pytorch as pl
    import torch
    from lightning.pytorch.callbacks import ModelCheckpoint

    from gaudi3_scale.config import load
    from gaudi3_scale.data import RankBatches, Samples, collect
    from gaudi3_scale.models.adamw import build_optimizer
    from gaudi3_scale.models.build import build
    from gaudi3_scale.models.learning_rate import learning_rate_scale
    from gaudi3_scale.models.objectives import sample_loss

    config = load(None, [*SETTINGS, f"output_dir={folder}", f"train.max_steps={steps}"])
    torch.set_num_threads(1)
    pl.seed_everything(config.train.seed, verbose=False)
    corpus = collect(config.data, folder / "data")
    samples = Samples(corpus, config.data, config.model.sequence_length, config.train.seed)
    last = folder / "checkpoints" / "last.ckpt"
    done = torch.load(last, weights_only=True)["global_step"] if last.exists() else 0
    began = {"started_at": time.time(), "state": "running", "resumed_from_step": done}

    class Module(pl.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.model = build(config.model)

        def training_step(self, batch: torch.Tensor, index: int) -> torch.Tensor:
            return sample_loss(self.model, batch)

        def on_train_batch_end(self, outputs: object, batch: object, batch_idx: int) -> None:
            with (folder / "metrics.jsonl").open("a") as lines:
                lines.write(json.dumps({"step": self.global_step, "loss": outputs["loss"].item()}) + "\n")  # type: ignore[index]
            if batch_idx == 0:
                (folder / "status.json").write_text(json.dumps(began))

        def configure_optimizers(self) -> dict[str, object]:
            optimizer = build_optimizer(self.model, config.train)
            schedule = torch.optim.lr_scheduler.LambdaLR(
                optimizer, lambda step: learning_rate_scale(step, config.train)
            )
            return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}

    batches = RankBatches(samples, done * config.train.micro_batch_size, config.train.micro_batch_size, 0, 1)
    trainer = pl.Trainer(
        accelerator="cpu",
        max_steps=steps,
        gradient_clip_val=config.train.gradient_clip,
        callbacks=[ModelCheckpoint(last.parent, every_n_train_steps=EVERY, save_top_k=0, save_last=True)],
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(Module(), batches, ckpt_path=last if last.exists() else None, weights_only=False)


if __name__ == "__main__":
    main()
