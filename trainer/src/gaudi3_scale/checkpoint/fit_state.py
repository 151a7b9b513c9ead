"""What GaudiCheckpoint keeps of a Trainer, and how a fit goes on from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from gaudi3_scale.checkpoint import hyperparameters
from gaudi3_scale.checkpoint.fetch import load
from gaudi3_scale.checkpoint.frozen import frozen_identity
from gaudi3_scale.checkpoint.loader_workers import other_workers
from gaudi3_scale.checkpoint.manifest import STATE, DamagedCheckpointError
from gaudi3_scale.checkpoint.restore import capture
from gaudi3_scale.checkpoint.saver import Snapshot
from gaudi3_scale.checkpoint.shape import OF_A_FIT, restoring
from gaudi3_scale.distributed.randomness import capture as capture_random
from gaudi3_scale.distributed.randomness import restore as restore_random
from gaudi3_scale.errors import TrainerError
from gaudi3_scale.finite import FiniteLosses
from gaudi3_scale.hpu.device import Device

if TYPE_CHECKING:
    from collections.abc import Callable

    import lightning.pytorch as pl

    from gaudi3_scale.checkpoint.peers import CheckpointPeers
    from gaudi3_scale.checkpoint.store import Checkpoint


class Contents(Protocol):
    """What is in a checkpoint: of any fit (`FitState`), or of the job of `gaudi3-train fit` (`JobState`)."""

    def begin(self, trainer: pl.Trainer, module: pl.LightningModule, peers: CheckpointPeers) -> dict[str, Any]:
        """Before anything is restored; what every manifest says of the training."""

    def restore(
        self, trainer: pl.Trainer, module: pl.LightningModule, checkpoint: Checkpoint, peers: CheckpointPeers
    ) -> None:
        """Go on from a checkpoint. Collective."""

    def epoch_starts(self, module: pl.LightningModule) -> None:
        """An epoch of the loops begins."""

    def batch_starts(self, module: pl.LightningModule) -> None:
        """A batch is here."""

    def failed(self, trainer: pl.Trainer, exception: BaseException) -> None:
        """The training ends by an exception; TrainerError where what was restored explains it."""

    def note(self, outputs: Any, step: int) -> None:
        """What `training_step` gave for a batch of this step."""

    def require_finite(self, trainer: pl.Trainer, module: pl.LightningModule, peers: CheckpointPeers) -> None:
        """Raise NotFiniteError on all ranks if the state may not be saved. Collective."""

    def snapshot(self, trainer: pl.Trainer, module: pl.LightningModule, step: int) -> Snapshot:
        """The state after this step."""


class FitState:
    """Model, optimizers, schedules, the loops' counters, the other callbacks, and every rank's random state."""

    def __init__(self, check_finite: bool, log: Callable[[str], None], save_frozen: bool = True) -> None:
        self._save_frozen = save_frozen
        self._frozen: str | None = None
        self._finite = FiniteLosses() if check_finite else None
        self._log = log
        self._configured: dict[str, Any] = {}
        self._random: dict[str, Any] | None = None
        self._loaders: Any = None
        self._new_epoch = False

    def begin(self, trainer: pl.Trainer, module: pl.LightningModule, peers: CheckpointPeers) -> dict[str, Any]:
        self._configured = hyperparameters.configured(trainer.optimizers, _schedulers(trainer))
        self._frozen = None if self._save_frozen else frozen_identity(module)
        return {"world_size": peers.size, "module": type(module).__name__}

    def restore(
        self, trainer: pl.Trainer, module: pl.LightningModule, checkpoint: Checkpoint, peers: CheckpointPeers
    ) -> None:
        try:
            self._restore(trainer, module, checkpoint, peers)
        except DamagedCheckpointError as damage:
            raise checkpoint.unusable(damage) from None

    def _restore(
        self, trainer: pl.Trainer, module: pl.LightningModule, checkpoint: Checkpoint, peers: CheckpointPeers
    ) -> None:
        state = checkpoint.state(OF_A_FIT)
        load(checkpoint, peers.patient, module, trainer.optimizers, state)
        with restoring(checkpoint.path / STATE):
            self._give_back(trainer, state, peers)
        self._log(f"resuming from step {checkpoint.step} ({checkpoint.path / STATE})")

    def _give_back(self, trainer: pl.Trainer, state: dict[str, Any], peers: CheckpointPeers) -> None:
        saved = {"groups": state["training"]["groups"], "schedulers": state["schedulers"]}
        changed = hyperparameters.resume(
            trainer.optimizers, _schedulers(trainer), self._configured, state.get("configured"), saved
        )
        if changed:
            self._log(f"resuming with {', '.join(changed)}")
        for callback in trainer.callbacks:
            if callback.state_key in state["callbacks"]:
                callback.load_state_dict(state["callbacks"][callback.state_key])
        ranks, rank = state["ranks"], peers.rank
        loops = ranks[rank if len(ranks) == peers.size else 0]["loops"]
        if len(ranks) == peers.size:
            self._random = ranks[rank]["random"]
            self._new_epoch = bool(loops["epoch_loop.batch_progress"]["is_last_batch"])
        else:  # positions and random states were those of other ranks
            loops["state_dict"].pop("combined_loader", None)
            self._log(f"{peers.size} processes instead of {len(ranks)}: the order of samples is not continued")
        self._loaders = loops["state_dict"].get("combined_loader")
        trainer.fit_loop.load_state_dict(loops)

    def epoch_starts(self, module: pl.LightningModule) -> None:
        """A new epoch's order is drawn from the generators once the epoch begins."""
        if self._random is not None and self._new_epoch:
            restore_random(self._random, _device(module))

    def batch_starts(self, module: pl.LightningModule) -> None:
        """In the middle of an epoch only now: making the loaders' iterators again draws from the generators, too."""
        if self._random is not None and not self._new_epoch:
            restore_random(self._random, _device(module))
        self._random = self._loaders = None

    def failed(self, trainer: pl.Trainer, exception: BaseException) -> None:
        """Before the first batch it may be the loaders that cannot go on from their positions."""
        # torchdata's words for it are none.
        problem = (
            other_workers(self._loaders, trainer.train_dataloader) if isinstance(exception, AssertionError) else None
        )
        if problem is not None:
            raise TrainerError(problem) from exception

    def note(self, outputs: Any, step: int) -> None:
        if self._finite is not None:
            self._finite.note(outputs, step)

    def require_finite(self, trainer: pl.Trainer, module: pl.LightningModule, peers: CheckpointPeers) -> None:
        if self._finite is not None:
            self._finite.require(trainer, peers)

    def snapshot(self, trainer: pl.Trainer, module: pl.LightningModule, step: int) -> Snapshot:
        tensors, training = capture(module, trainer.optimizers, self._frozen)
        return Snapshot(
            tensors=tensors,
            training=training,
            shared={
                "step": step,
                "schedulers": [scheduler.state_dict() for scheduler in _schedulers(trainer)],
                "configured": self._configured,
                "callbacks": {c.state_key: state for c in trainer.callbacks if (state := c.state_dict())},
            },
            rank={"loops": trainer.fit_loop.state_dict(), "random": capture_random(_device(module))},
        )


def _schedulers(trainer: pl.Trainer) -> list[Any]:
    return [config.scheduler for config in trainer.lr_scheduler_configs]


def _device(module: pl.LightningModule) -> Device:
    return Device(module.device.type, module.device.index or 0, "")
