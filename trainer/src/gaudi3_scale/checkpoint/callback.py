"""The same for a Trainer of one's own: `Trainer(callbacks=[GaudiCheckpoint("checkpoints", every_n_steps=100)])`.

What is kept: model, optimizers, schedules, the loops' counters, the other callbacks, every rank's random state, and
every rank's position in the data if the loader has `state_dict` and `load_state_dict` (as torchdata's
StatefulDataLoader).
"""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import Any, Literal

import lightning.pytorch as pl

from gaudi3_scale import job as jobs
from gaudi3_scale.callbacks.status import Contributor, join
from gaudi3_scale.checkpoint import hyperparameters
from gaudi3_scale.checkpoint.fetch import load
from gaudi3_scale.checkpoint.job import remember, settle
from gaudi3_scale.checkpoint.manifest import STATE
from gaudi3_scale.checkpoint.peers import Peers
from gaudi3_scale.checkpoint.restore import capture
from gaudi3_scale.checkpoint.saver import Saver, Snapshot
from gaudi3_scale.checkpoint.store import Checkpoint, CheckpointStore
from gaudi3_scale.checkpoint.target import open_target
from gaudi3_scale.checkpoint.upload import Uploader
from gaudi3_scale.device import Device
from gaudi3_scale.errors import TrainerError
from gaudi3_scale.finite import FiniteLosses, NotFiniteError
from gaudi3_scale.randomness import capture as capture_random
from gaudi3_scale.randomness import restore as restore_random
from gaudi3_scale.resume import agree

TIMEOUT = 300.0
"""Seconds to wait for another rank where no files are involved."""


class GaudiCheckpoint(Contributor, pl.Callback):
    """Saves every `every_n_steps` optimizer steps, asynchronously, and resumes from the newest that is whole.

    Any strategy will do: replicated models are saved by one process of each node, sharded ones by all. `dirpath` is
    local to each node, or shared; left out, it is `checkpoints`, in a job below its folder. An error in the
    background is raised after the next batch.
    """

    def __init__(
        self,
        dirpath: str | Path | None = None,
        every_n_steps: int = 100,
        keep: int = 2,
        keep_every: int | None = None,
        asynchronous: bool = True,
        copies: int = 2,
        target: str | None = None,
        endpoint_url: str | None = None,
        resume: Literal["auto"] | None = "auto",
        job: str | None = None,
        adopt: bool = False,
        check_finite: bool = True,
    ) -> None:
        """As in the section `checkpoint` of `gaudi3-train config`.

        Without `job`, a name, a training whose nodes all lost their disks does not know its checkpoints in `target`.

        `resume` None starts anew, whatever is there; a `ckpt_path` given to the Trainer goes before `auto`.

        `check_finite` ends the fit with a NotFiniteError on all ranks, before a checkpoint is begun, if a loss since
        the one before, the weights that are trained or the optimizers' state are NaN or infinite.
        """
        self._directory = Path(dirpath or (jobs.directory() or Path()) / "checkpoints").absolute()
        self._every = every_n_steps
        self._keep = (keep, keep_every)
        self._asynchronous = asynchronous
        self._copies = copies
        self._target = (target, endpoint_url)
        self._resume = resume
        self._finite = FiniteLosses() if check_finite else None
        self._job = job or ""
        self._adopt = adopt
        self._random: dict[str, Any] | None = None
        self._new_epoch = False
        self._last = -1
        self._seen = -1
        self._configured: dict[str, Any] = {}
        self._resumed: Checkpoint | None = None
        self.saver: Saver | None = None
        """The saver, while `fit` runs: `last_stall`, `committed`, `uploader`."""

    def setup(self, trainer: pl.Trainer, pl_module: pl.LightningModule, stage: str) -> None:
        """A job is told of its checkpoints."""
        if stage == "fit":
            join(trainer)

    def on_fit_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Model and optimizers are on their devices, sharded if they are to be; the loops have not begun."""
        self._directory.mkdir(parents=True, exist_ok=True)
        peers = Peers.meet(self._directory, TIMEOUT)

        def say(text: str) -> None:
            if trainer.local_rank == 0:
                print(text, file=sys.stderr, flush=True)

        store = CheckpointStore(self._directory, self._keep[0], say, self._keep[1])
        target = open_target(*self._target) if self._target[0] is not None else None  # type: ignore[arg-type]
        job, begun = settle(peers.patient, self._directory, store, self._job, target, self._adopt)
        uploader = Uploader(target, store, peers, say, job=job) if target is not None else None
        self._configured = hyperparameters.configured(trainer.optimizers, _schedulers(trainer))
        about = {"world_size": peers.size, "module": type(pl_module).__name__}
        self.saver = Saver(store, peers, about, self._asynchronous, self._copies, uploader, job)
        self.saver.bind(lambda step: self._snapshot(trainer, pl_module, step))
        if self._resume is None or trainer.ckpt_path is not None:
            remember(peers.patient, self._directory, job)
            return
        checkpoint = agree(peers.patient, store, None, say, target, job, begun, self._adopt)
        remember(peers.patient, self._directory, job)
        if checkpoint is None:
            return
        if uploader is not None:
            uploader.catch_up(peers, checkpoint)
        state = checkpoint.state()
        load(checkpoint, peers.patient, pl_module, trainer.optimizers, state)
        saved = {"groups": state["training"]["groups"], "schedulers": state["schedulers"]}
        changed = hyperparameters.resume(
            trainer.optimizers, _schedulers(trainer), self._configured, state.get("configured"), saved
        )
        if changed:
            say(f"resuming with {', '.join(changed)}")
        for callback in self._others(trainer):
            if callback.state_key in state["callbacks"]:
                callback.load_state_dict(state["callbacks"][callback.state_key])
        ranks, rank = state["ranks"], peers.rank
        loops = ranks[rank if len(ranks) == peers.size else 0]["loops"]
        if len(ranks) == peers.size:
            self._random = ranks[rank]["random"]
            self._new_epoch = bool(loops["epoch_loop.batch_progress"]["is_last_batch"])
        else:  # positions and random states were those of other ranks
            loops["state_dict"].pop("combined_loader", None)
            say(f"{peers.size} processes instead of {len(ranks)}: the order of samples is not continued")
        trainer.fit_loop.load_state_dict(loops)
        self._last = checkpoint.step
        self._resumed = checkpoint
        say(f"resuming from step {checkpoint.step} ({checkpoint.path / STATE})")

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """The steps that were made before."""
        self._seen = trainer.global_step

    def on_train_epoch_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """A new epoch's order is drawn from the generators once the epoch begins."""
        if self._random is not None and self._new_epoch:
            restore_random(self._random, _device(pl_module))

    def on_train_batch_start(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, batch: Any, batch_idx: int
    ) -> None:
        """In the middle of an epoch only now: making the loaders' iterators anew draws from the generators, too."""
        if self._random is not None and not self._new_epoch:
            restore_random(self._random, _device(pl_module))
        self._random = None

    def on_train_batch_end(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Save, if the optimizer made a step and it is one to save."""
        assert self.saver is not None
        self.saver.poll()
        step = trainer.global_step
        if self._finite is not None:
            self._finite.note(outputs, step if step != self._seen else step + 1)  # or the step is not done yet
            self._seen = step
        if step != self._last and step % self._every == 0:
            self._last = step
            self._begin(trainer)

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """What was begun is finished, uploads too."""
        if self.saver is not None:
            self.saver.close()
            if self._finite is not None:
                self._finite.require(trainer, self.saver.peers)

    def save(self, trainer: pl.Trainer) -> None:
        """Save now, and wait until it is durable: for `InterruptionCallback(save=...)`. Collective."""
        assert self.saver is not None
        self._begin(trainer, last=True)
        self.saver.wait()

    def contribute(self) -> dict[str, Any]:
        """The newest checkpoint, what could not be saved, and from where this fit went on."""
        saver = self.saver
        newest = (saver.committed if saver is not None else None) or self._resumed
        uploader = saver.uploader if saver is not None else None
        return {
            "checkpoint": str(newest.path) if newest is not None else None,
            "checkpoint_step": newest.step if newest is not None else None,
            "checkpoint_error": saver.error if saver is not None else None,
            "uploaded_step": uploader.uploaded if uploader is not None else None,
            "upload_error": uploader.error if uploader is not None else None,
            "resumed_from_step": self._resumed.step if self._resumed is not None else None,
        }

    def _begin(self, trainer: pl.Trainer, last: bool = False) -> None:
        assert self.saver is not None
        if self._finite is not None:
            try:
                self._finite.require(trainer, self.saver.peers)
            except NotFiniteError:
                with contextlib.suppress(TrainerError):  # what was begun is of finite steps, and is worth keeping
                    self.saver.close()
                raise
        self.saver.save(trainer.global_step, last=last)

    def _snapshot(self, trainer: pl.Trainer, module: pl.LightningModule, step: int) -> Snapshot:
        tensors, training = capture(module, trainer.optimizers)
        return Snapshot(
            tensors=tensors,
            training=training,
            shared={
                "step": step,
                "schedulers": [scheduler.state_dict() for scheduler in _schedulers(trainer)],
                "configured": self._configured,
                "callbacks": {c.state_key: state for c in self._others(trainer) if (state := c.state_dict())},
            },
            rank={"loops": trainer.fit_loop.state_dict(), "random": capture_random(_device(module))},
        )

    def _others(self, trainer: pl.Trainer) -> list[Any]:
        callbacks: list[Any] = trainer.callbacks
        return [callback for callback in callbacks if callback is not self]


def _schedulers(trainer: pl.Trainer) -> list[Any]:
    return [config.scheduler for config in trainer.lr_scheduler_configs]


def _device(module: pl.LightningModule) -> Device:
    return Device(module.device.type, module.device.index or 0, "")
