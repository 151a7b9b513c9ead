"""What a checkpoint of `gaudi3-train fit` says of its job, what it keeps, and how a job goes on from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from gaudi3_scale.checkpoint.architecture import require_same
from gaudi3_scale.checkpoint.fetch import load
from gaudi3_scale.checkpoint.frozen import frozen_identity
from gaudi3_scale.checkpoint.hyperparameters import advance
from gaudi3_scale.checkpoint.restore import capture as capture_training
from gaudi3_scale.checkpoint.saver import Snapshot
from gaudi3_scale.checkpoint.shape import OF_A_JOB
from gaudi3_scale.checkpoint.store import Checkpoint
from gaudi3_scale.config.auto_precision import AUTO
from gaudi3_scale.data.mixture import Mixture
from gaudi3_scale.data.shards import Corpus, identity
from gaudi3_scale.distributed.randomness import capture as capture_random
from gaudi3_scale.errors import ConfigError
from gaudi3_scale.job import lineage
from gaudi3_scale.job.data import check_same
from gaudi3_scale.job.reference import PREFERENCE, REFERENCE, check_reference
from gaudi3_scale.models.build import has_frozen_folder
from gaudi3_scale.run import Run
from gaudi3_scale.step.finite_check import FiniteCheck

if TYPE_CHECKING:
    import lightning.pytorch as pl

    from gaudi3_scale.checkpoint.peers import CheckpointPeers

HYPERPARAMETERS = (
    "learning_rate",
    "schedule",
    "warmup_steps",
    "final_learning_rate",
    "decay_fraction",
    "batch_learning_rate",
    "betas",
    "epsilon",
    "weight_decay",
    "gradient_clip",
)
"""Settings of `train` that may change over a restart, which says so."""


HELD_OUT = ("validation_fraction", "validation_samples")
"""Settings of `data` that choose what is held out, and with it what is trained on."""

STAGES = "batch_warmup"
"""Key of the manifest; left out where the batch does not grow."""

PRECISION = "precision"
"""Key of the manifest."""


def describe(run: Run, corpus: Corpus | Mixture) -> dict[str, Any]:
    """What a checkpoint's manifest says of the run. Collective."""
    config = run.plan.config
    stages = [stage.model_dump() for stage in config.train.batch_warmup]
    preferred = {PREFERENCE: config.preference.model_dump()} if config.data.prefers else {}
    return (
        ({STAGES: stages} if stages else {})
        | preferred
        | {
            "model": config.model.model_dump(),
            "data": identity(corpus),
            "held_out": {name: getattr(config.data, name) for name in HELD_OUT},
            "seed": config.train.seed,
            "world_size": run.world_size,
            "samples_per_step": run.progress.samples_per_step,
            "batch": dict(run.plan.configured),
            "hyperparameters": {name: getattr(config.train, name) for name in HYPERPARAMETERS},
            "device": run.device.type,
            PRECISION: config.train.precision,
            "torch": str(torch.__version__),
            lineage.KEY: lineage.made_with(run),
        }
    )


def go_on(run: Run, checkpoint: Checkpoint, about: dict[str, Any]) -> dict[str, Any]:
    """Set the progress back to a checkpoint, say what is configured otherwise now, and return the checkpoint's state.

    Raises ConfigError if it is of another model, or does not say its precision while none is named.
    """
    manifest, progress, log = checkpoint.manifest.about, run.progress, run.console.log
    others = [f"model.{key}" for key in require_same(str(checkpoint.path), manifest["model"], about["model"])]
    check_same(manifest.get("data"), about["data"], checkpoint.path, run.config.data.replace)
    check_reference(run.plan.config, checkpoint, manifest.get("data") == about["data"])
    _same_held_out(run, checkpoint, manifest.get("held_out"), about["held_out"])
    if PRECISION not in manifest and not run.precision_named:
        raise ConfigError(
            f"The checkpoint {checkpoint.path} does not say in which precision it was trained, and train.precision is "
            f"{AUTO}, which is {about[PRECISION]} here: set train.precision to the one it was trained in, 32-true or "
            "bf16-mixed."
        )
    _say_hyperparameters(run, manifest.get("hyperparameters", {}), about["hyperparameters"])
    apart = ["held_out", "hyperparameters", "model", lineage.KEY, *({PRECISION} - manifest.keys())]
    names = [*about, *({STAGES} & manifest.keys() - about.keys())]
    others += [name for name in names if name not in apart and manifest.get(name) != about.get(name)]
    if others:
        log(f"resuming with another {', '.join(others)} than before: the run is not repeated exactly")
    state = checkpoint.state(OF_A_JOB)
    progress.step, progress.samples = state["step"], state["samples"]
    progress.loss, progress.first_loss = state["loss"], state["first_loss"]
    progress.skipped_steps = state.get("skipped_steps", 0)
    progress.checkpoint, progress.checkpoint_step = checkpoint.path, checkpoint.step
    progress.resumed_from_step = checkpoint.step
    log(f"resuming from step {checkpoint.step}")
    return state


def _same_held_out(run: Run, checkpoint: Checkpoint, before: Any, now: dict[str, Any]) -> None:
    """ConfigError if another part of the data is held out and data.replace does not say that this is meant.

    A checkpoint that no job wrote does not tell.
    """
    known = before if isinstance(before, dict) else now
    changed = [
        f"data.{name} {value} instead of {known.get(name)}" for name, value in now.items() if known.get(name) != value
    ]
    if changed and not run.config.data.replace:
        raise ConfigError(
            f"The checkpoint {checkpoint.path} was trained with another part of the data held out, and now there is "
            f"{', '.join(changed)}: use the values of then, another output_dir, or data.replace=true to train on what "
            "is not held out now, whose evaluations cannot be compared with those before."
        )
    if changed:
        run.console.log(f"resuming with {', '.join(changed)}")


def _say_hyperparameters(run: Run, before: dict[str, Any], now: dict[str, Any]) -> None:
    """What is configured counts, not what the checkpoint was trained with: say where they differ."""
    then = {name: type(value)(before[name]) for name, value in now.items() if name in before}  # JSON has no tuples
    changed = [f"train.{name} {now[name]} instead of {old}" for name, old in then.items() if now[name] != old]
    if changed:
        run.console.log(f"resuming with {', '.join(changed)}")


def of_rank(state: dict[str, Any] | None, rank: int, world_size: int) -> dict[str, Any] | None:
    """This rank's part of a checkpoint's state; None if there is none."""
    ranks = state["ranks"] if state else []
    if rank >= len(ranks):
        return None
    mine: dict[str, Any] = dict(ranks[rank])
    if rank == 0:  # what ranks that are no more had summed since the last logged step
        for gone in ranks[world_size:]:
            mine["loss_sum"] += gone["loss_sum"]
            mine["loss_count"] += gone["loss_count"]
            if "figures" in mine:
                mine["figures"] = [a + b for a, b in zip(mine["figures"], gone["figures"], strict=True)]
    return mine


class JobState:
    """What GaudiCheckpoint keeps of a job, as `checkpoint.fit_state.Contents`; its data's position is its progress."""

    def __init__(self, run: Run, finite: FiniteCheck, about: dict[str, Any], state: dict[str, Any] | None) -> None:
        """`state` is what the checkpoint to resume from has besides the tensors."""
        self._run = run
        self._finite = finite
        self._about = about
        self._state = state
        self._frozen: str | None = None

    def begin(self, trainer: pl.Trainer, module: pl.LightningModule, peers: CheckpointPeers) -> dict[str, Any]:
        if has_frozen_folder(self._run.plan.config.model):
            self._frozen = frozen_identity(module.model)
        return self._about

    def restore(
        self, trainer: pl.Trainer, module: pl.LightningModule, checkpoint: Checkpoint, peers: CheckpointPeers
    ) -> None:
        """The tensors and the position of the schedule; WarmUpCallback does the rest when training starts."""
        assert self._state is not None
        load(checkpoint, peers.patient, module.model, trainer.optimizers, self._state)
        advance(trainer.lr_scheduler_configs[0].scheduler, self._state["scheduler"]["last_epoch"])

    def epoch_starts(self, module: pl.LightningModule) -> None:
        """The epochs of a job are stages of its batch, and draw nothing."""

    def batch_starts(self, module: pl.LightningModule) -> None:
        """Nothing is drawn from the generators between the start of the training and its first batch."""

    def failed(self, trainer: pl.Trainer, exception: BaseException) -> None:
        """The job's own samples come by their number: nothing that was restored can fail."""

    def note(self, outputs: Any, step: int) -> None:
        """LanguageModule notes it on the device, with the gradient norm."""

    def require_finite(self, trainer: pl.Trainer, module: pl.LightningModule, peers: CheckpointPeers) -> None:
        self._finite.require(trainer, module)

    def snapshot(self, trainer: pl.Trainer, module: pl.LightningModule, step: int) -> Snapshot:
        progress = self._run.progress
        tensors, training = capture_training(module.model, trainer.optimizers, self._frozen)
        return Snapshot(
            tensors=tensors,
            training=training,
            shared={
                "step": step,
                "samples": progress.samples,
                "loss": progress.loss,
                "first_loss": progress.first_loss,
                "skipped_steps": progress.skipped_steps,
                # Its position alone: rates follow from the configuration of whoever resumes.
                "scheduler": {"last_epoch": trainer.lr_scheduler_configs[0].scheduler.state_dict()["last_epoch"]},
                **({} if module.reference is None else {REFERENCE: module.reference.cpu()}),
            },
            rank={
                "random": capture_random(self._run.device),
                "loss_sum": module.loss_sum.item(),
                "loss_count": module.loss_count,
                **({"figures": module.figure_sums.tolist()} if len(module.figure_sums) else {}),
                "cost": progress.cost,
            },
        )
