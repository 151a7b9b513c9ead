"""The checkpoints of one training, wherever they lie: found, resumed from, and saved to."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gaudi3_scale.checkpoint.identity import remember, settle
from gaudi3_scale.checkpoint.peers import CheckpointPeers
from gaudi3_scale.checkpoint.resume import agree
from gaudi3_scale.checkpoint.signing import Signer
from gaudi3_scale.checkpoint.store import Checkpoint, CheckpointStore
from gaudi3_scale.checkpoint.target import open_target

if TYPE_CHECKING:
    from gaudi3_scale.checkpoint.manifest import Job
    from gaudi3_scale.checkpoint.saver import Saver
    from gaudi3_scale.config.checkpoint import CheckpointConfig


class CheckpointSession:
    """Of one process; every rank has one, and calls it at the same points."""

    def __init__(
        self,
        folder: Path,
        directory: Path,
        settings: CheckpointConfig,
        timeout: float,
        log: Callable[[str], None] = print,
    ) -> None:
        """`folder` keeps the job's id and exists, `directory` the checkpoints. Collective.

        `timeout` is how many seconds to wait for another rank where no files are involved.
        """
        self.settings = settings
        self.peers = CheckpointPeers.meet(folder, timeout)
        self.store = CheckpointStore(directory, settings.keep, log, settings.keep_every)
        if settings.signing_key_file is not None:
            self.store.signer = Signer.load(settings.signing_key_file)
        self.target = open_target(settings.target, settings.endpoint_url) if settings.target else None
        self.job: Job | None = None
        self.checkpoint: Checkpoint | None = None
        """The one that training resumes from."""
        self._folder = folder
        self._log = log

    def find(self, key: str, metrics: Path | None = None, resume: bool = True) -> Checkpoint | None:
        """The checkpoint that all ranks resume from, here; None = start from the beginning. Collective.

        `key` tells whose checkpoints in the target are this job's (see `identity.py`); a node without the checkpoint
        gets `metrics` too. Without `resume` the job is settled and nothing is looked for.
        """
        patient, adopt = self.peers.patient, self.settings.adopt
        self.job, begun = settle(patient, self._folder, self.store, key, self.target, adopt)
        if resume:
            self.checkpoint = agree(patient, self.store, metrics, self._log, self.target, self.job, begun, adopt)
        remember(patient, self._folder, self.job)
        return self.checkpoint

    def open_saver(self, about: dict[str, Any]) -> Saver:
        """What saves; `about` goes into every manifest. Collective."""
        from gaudi3_scale.checkpoint.saver import Saver
        from gaudi3_scale.checkpoint.upload import Uploader

        uploader = None
        if self.target is not None:
            assert self.job is not None
            uploader = Uploader(self.target, self.store, self.peers, self._log, job=self.job)
        saver = Saver(
            self.store, self.peers, about, self.settings.asynchronous, self.settings.copies, uploader, self.job
        )
        if uploader is not None and self.checkpoint is not None:
            uploader.catch_up(self.peers, self.checkpoint)
        return saver
