"""Checkpoints of a Trainer: `Trainer(callbacks=[GaudiCheckpoint("checkpoints", every_n_steps=100)])`.

What is kept: model, optimizers, schedules, the loops' counters, the other callbacks, every rank's random state, and
every rank's position in the data if the loader has `state_dict` and `load_state_dict` (as torchdata's
StatefulDataLoader).
"""

from __future__ import annotations

import contextlib
import sys
import time
from pathlib import Path
from typing import Any, Literal

import lightning.pytorch as pl

from gaudi3_scale import own_script as jobs
from gaudi3_scale.callbacks.base import CheckpointListener
from gaudi3_scale.callbacks.status_callback import Contributor, join
from gaudi3_scale.checkpoint.fit_state import Contents, FitState
from gaudi3_scale.checkpoint.pace import Pace
from gaudi3_scale.checkpoint.saver import Saver
from gaudi3_scale.checkpoint.session import CheckpointSession
from gaudi3_scale.config.checkpoint import CheckpointConfig
from gaudi3_scale.distributed.watchdog import Watchdog
from gaudi3_scale.errors import TrainerError
from gaudi3_scale.finite import NotFiniteError
from gaudi3_scale.integration.trainer import step_of
from gaudi3_scale.throughput.ledger import CHECKPOINT, accounted, current

TIMEOUT = 300.0
"""Seconds to wait for another rank where no files are involved."""
TOGETHER = 5.0
"""Seconds after which ranks that wait for uploads ask each other whether all are done."""


class GaudiCheckpoint(Contributor, pl.Callback):
    """Saves every `every_n_steps` optimizer steps and after `max_steps`, and resumes from the newest that is whole.

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
        signing_key_file: str | Path | None = None,
        save_frozen: bool = True,
        every_seconds: float | None = None,
        upload_timeout: float = 1800,
    ) -> None:
        """As in the section `checkpoint` of `gaudi3-train config`.

        Without `job`, a name, a training whose nodes all lost their disks does not know its checkpoints in `target`.

        `resume` None starts from the beginning, whatever is there; a `ckpt_path` of the Trainer overrides `auto`.

        `check_finite` ends the fit with a NotFiniteError on all ranks, before a checkpoint is begun, if a loss since
        the one before, the weights that are trained or the optimizers' state are NaN or infinite.

        `save_frozen` False leaves out the parameters whose `requires_grad` is False when the fit begins, as those of a
        base under adapters: the module has to come with them, and with others the checkpoint is refused.
        """
        self._directory = Path(dirpath or (jobs.directory() or Path()) / "checkpoints").absolute()
        self._settings = CheckpointConfig(
            every=every_n_steps,
            every_seconds=every_seconds,
            keep=keep,
            keep_every=keep_every,
            asynchronous=asynchronous,
            copies=copies,
            target=target,
            endpoint_url=endpoint_url,
            upload_timeout=upload_timeout,
            job=job or None,
            adopt=adopt,
            signing_key_file=Path(signing_key_file) if signing_key_file is not None else None,
        )
        self._resume = resume
        self._check_finite = check_finite
        self._save_frozen = save_frozen
        self._given: tuple[CheckpointSession, Contents] | None = None
        self._watchdog = Watchdog.off()
        self._state: Contents | None = None
        self._session: CheckpointSession | None = None
        self._last = -1
        self._seen = -1
        self._asked = False
        self._published: tuple[Any, ...] = (None, None, None, 0)
        self._pace: Pace | None = None
        self.saver: Saver | None = None
        """The saver, while `fit` runs: `last_stall`, `committed`, `uploader`."""

    @classmethod
    def of_session(cls, session: CheckpointSession, contents: Contents, watchdog: Watchdog) -> GaudiCheckpoint:
        """For a training that has looked for its checkpoint itself, and knows what is in it."""
        made = cls(session.store.directory)
        made._settings, made._watchdog = session.settings, watchdog
        made._given = session, contents
        return made

    def setup(self, trainer: pl.Trainer, pl_module: pl.LightningModule, stage: str) -> None:
        if stage == "fit":
            join(trainer)

    def on_fit_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Model and optimizers are on their devices, sharded if they are to be; the loops have not begun."""
        session, state = self._given or self._open(trainer)
        about = state.begin(trainer, pl_module, session.peers)
        with self._watchdog.paused():
            saver = session.open_saver(about)
        saver.bind(lambda step: state.snapshot(trainer, pl_module, step))
        self._session, self._state, self.saver = session, state, saver
        self._published = (None, None, None, 0)
        if session.checkpoint is not None:
            with self._watchdog.paused():
                state.restore(trainer, pl_module, session.checkpoint, session.peers)
            self._last = session.checkpoint.step

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self._seen = step_of(trainer)
        assert self._session is not None
        self._pace = Pace(self._settings.every, self._settings.every_seconds, self._session.peers.gather)
        self._pace.start(self._seen)

    def on_train_epoch_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        assert self._state is not None
        self._state.epoch_starts(pl_module)

    def on_train_batch_start(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, batch: Any, batch_idx: int
    ) -> None:
        assert self._state is not None
        self._state.batch_starts(pl_module)

    def on_train_batch_end(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Save, if the optimizer made a step and it is one to save."""
        assert self.saver is not None and self._state is not None
        self.saver.poll()
        self._publish(trainer)
        step = step_of(trainer)
        made, self._seen = step != self._seen, step
        self._state.note(outputs, step if made else step + 1)  # or the step is not done yet
        last = 0 < trainer.max_steps <= trainer.global_step
        due = made and self._pace is not None and self._pace.is_due(step)
        if step != self._last and (due or last or (made and self._asked)):
            self._begin(trainer, step, last)
        self._asked = self._asked and not made

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """What was begun is finished, uploads too."""
        if self.saver is None:
            return
        assert self._state is not None
        self.at(trainer).wait(None)
        self._finish_uploads(trainer, together=True)
        if self.saver.last_step != step_of(trainer):
            self._state.require_finite(trainer, pl_module, self.saver.peers)

    def on_exception(self, trainer: pl.Trainer, pl_module: pl.LightningModule, exception: BaseException) -> None:
        """What was begun is of finite steps, and is worth keeping, if one that is not finite ends the training."""
        if self._state is not None:
            self._state.failed(trainer, exception)
        super().on_exception(trainer, pl_module, exception)
        if isinstance(exception, NotFiniteError) and self.saver is not None:
            with contextlib.suppress(TrainerError):
                self.at(trainer).wait(None)
                self._finish_uploads(trainer)

    def _finish_uploads(self, trainer: pl.Trainer, together: bool = False) -> None:
        """A target that hangs must not keep a training from ending.

        All ranks wait `together`: one that went on would give up on the others in its next collective.
        """
        assert self.saver is not None
        seconds = self._settings.upload_timeout
        until, over, last = time.monotonic() + seconds, False, self.at(trainer)
        while not over:
            done = last.close(min(until, time.monotonic() + TOGETHER))
            over = done or time.monotonic() >= until
            if together:
                over = all(self.saver.peers.gather(over))
        if not done and self.saver.uploader is not None:
            self.saver.uploader.give_up(seconds)
            self._publish(trainer)

    def save(self, trainer: pl.Trainer) -> None:
        """Save now, and wait until it is durable. Collective."""
        last = self.at(trainer)
        last.save(step_of(trainer), last=True)
        last.wait(None)

    def request(self) -> None:
        """Save after the step that is being made, too. To be asked for by all ranks in the same step."""
        self._asked = True

    def at(self, trainer: pl.Trainer) -> LastOfFit:
        """What saves the last state of this trainer's fit; see `interruption.last_checkpoint`."""
        return LastOfFit(self, trainer)

    @property
    def newest(self) -> int | None:
        """The newest step that was handed to the saver or resumed from; the same on all ranks."""
        if self.saver is not None and self.saver.last_step is not None:
            return self.saver.last_step
        checkpoint = self._session.checkpoint if self._session is not None else None
        return checkpoint.step if checkpoint is not None else None

    def contribute(self) -> dict[str, Any]:
        """The newest checkpoint, what could not be saved, and from where this fit went on."""
        saver = self.saver
        resumed = self._session.checkpoint if self._session is not None else None
        newest = (saver.committed if saver is not None else None) or resumed
        uploader = saver.uploader if saver is not None else None
        return {
            "checkpoint": str(newest.path) if newest is not None else None,
            "checkpoint_step": newest.step if newest is not None else None,
            "checkpoint_error": saver.error if saver is not None else None,
            "uploaded_step": uploader.uploaded if uploader is not None else None,
            "upload_error": uploader.error if uploader is not None else None,
            "resumed_from_step": resumed.step if resumed is not None else None,
        }

    def _open(self, trainer: pl.Trainer) -> tuple[CheckpointSession, Contents]:
        """Look for the checkpoint to resume from. Collective."""

        def log(text: str) -> None:
            if trainer.local_rank == 0:
                print(text, file=sys.stderr, flush=True)

        self._directory.mkdir(parents=True, exist_ok=True)
        session = CheckpointSession(self._directory, self._directory, self._settings, TIMEOUT, log)
        session.find(self._settings.job or "", resume=self._resume is not None and trainer.ckpt_path is None)
        return session, FitState(self._check_finite, log, self._save_frozen)

    @accounted(CHECKPOINT)
    def _begin(self, trainer: pl.Trainer, step: int, last: bool) -> None:
        """Save the state after this step, which is the last one that was made, if it is finite. Collective."""
        saver, state = self.saver, self._state
        assert saver is not None and state is not None
        self._last = step
        if step != saver.last_step:
            # Reads the weights, so that the device has finished all that it was given.
            state.require_finite(trainer, trainer.lightning_module, saver.peers)
            self._watchdog.seen()
        with self._watchdog.paused():  # a save waits for the one before it
            saver.save(step, last)
        for listener in _listeners(trainer):
            listener.checkpoint_begun(saver)
        self._publish(trainer)
        current().append(step, force=True)

    def _publish(self, trainer: pl.Trainer) -> None:
        """Say what was committed, uploaded or failed since the last call."""
        saver = self.saver
        assert saver is not None
        uploader = saver.uploader
        uploads = (None, 0) if uploader is None else (uploader.uploaded, uploader.failures)
        now = (saver.committed, saver.error, *uploads)
        if now != self._published:
            self._published = now
            values = self.contribute()
            for listener in _listeners(trainer):
                listener.checkpoint_changed(saver, values)


class LastOfFit:
    """The last checkpoint of a fit, for `interruption.last_checkpoint`."""

    def __init__(self, checkpoint: GaudiCheckpoint, trainer: pl.Trainer) -> None:
        self._checkpoint = checkpoint
        self._trainer = trainer

    @property
    def newest(self) -> int | None:
        """The newest step that was handed to the saver or resumed from; the same on all ranks."""
        return self._checkpoint.newest

    def save(self, step: int, last: bool = False) -> None:
        """Begin to save the state of this step; the `last` one is uploaded in any case."""
        self._checkpoint._begin(self._trainer, step, last)

    @accounted(CHECKPOINT)
    def wait(self, deadline: float | None) -> bool:
        """Wait until all that was begun is durable, or until a `time.monotonic()`; is it?"""
        return self._until(self._saver.wait, deadline)

    def close(self, deadline: float | None) -> bool:
        """Wait for uploads, too."""
        return self._until(self._saver.close, deadline)

    def estimate(self) -> float | None:
        """Seconds from `save` to durable."""
        return self._saver.estimate()

    @property
    def _saver(self) -> Saver:
        assert self._checkpoint.saver is not None
        return self._checkpoint.saver

    def _until(self, wait: Any, deadline: float | None) -> bool:
        with self._checkpoint._watchdog.paused():
            done: bool = wait(deadline)
        self._checkpoint._publish(self._trainer)
        return done


def _listeners(trainer: pl.Trainer) -> list[CheckpointListener]:
    return [callback for callback in trainer.callbacks if isinstance(callback, CheckpointListener)]
