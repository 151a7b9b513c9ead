"""The asynchronous save: a copy in host memory while training stands still, everything else behind its back."""

from __future__ import annotations

import copy
import errno
import socket
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gaudi3_scale.checkpoint.manifest import METADATA, STATE, Entry, Job, Layout, Manifest
from gaudi3_scale.checkpoint.peers import CheckpointPeers
from gaudi3_scale.checkpoint.staging import Staging, is_sharded, plain_tensors
from gaudi3_scale.checkpoint.store import Checkpoint, CheckpointStore
from gaudi3_scale.errors import TrainerError

if TYPE_CHECKING:
    import torch

    from gaudi3_scale.checkpoint.upload import Uploader

REMEMBERED = 5
LASTING = {errno.ENOTDIR, errno.ENOENT, errno.EACCES, errno.EPERM, errno.EROFS, errno.ENAMETOOLONG, errno.ELOOP}
"""Errors that a wrong output_dir gives from the beginning; others pass, as when a disk gets room again."""


class SaveFailedError(TrainerError):
    """A checkpoint could not be written, those before it are as they were: training can go on."""


@dataclass
class Snapshot:
    """What a checkpoint is made of, as it is while training stands still."""

    tensors: dict[str, torch.Tensor]
    """Model and optimizer by dotted name; DTensors where they are sharded."""
    training: dict[str, Any] = field(default_factory=dict)
    """What model and optimizer have besides, as `restore.capture` gives it."""
    shared: dict[str, Any] = field(default_factory=dict)
    """What else is to be kept, the same on all ranks; of the types that `state.pack` knows."""
    rank: Any = None
    """This rank's own, of the same types; the checkpoint has that of all ranks."""


@dataclass(frozen=True)
class _Save:
    step: int
    layout: Layout
    building: Path
    tensors: dict[str, torch.Tensor]
    state: dict[str, Any]
    upload: bool
    began: float


class Saver:
    """Saves checkpoints in the background, one at a time.

    How to use it, from the thread that trains, on every rank at the same step:

    - `save(step)` returns once the state is copied to host memory. If the save before is not finished, it waits for it.
    - `poll()` raises what went wrong in the background; call it after every step. A disk that is full, or fails, is no
      reason to lose what was trained: it is said, counted in `failures`, and the next save is tried when it is due.
    - `wait(deadline)` waits until the last save is durable on this rank, and says whether it is. `deadline` is a time
      of `time.monotonic()`. The answer is this rank's: gather the answers before a process ends.
    - `estimate()` is how many seconds a save takes from the call until it is durable, or None before the first one.
    - `close()` waits for everything, uploads too.

    Durable means: committed on this node's disk; for sharded checkpoints, committed on all nodes with all copies.
    """

    def __init__(
        self,
        store: CheckpointStore,
        peers: CheckpointPeers,
        about: dict[str, Any] | None = None,
        asynchronous: bool = True,
        copies: int = 2,
        uploader: Uploader | None = None,
        job: Job | None = None,
    ) -> None:
        """`about` and `job` go into every manifest; `copies` is at how many places each shard lies. Collective."""
        self.store = store
        self.peers = peers
        self.asynchronous = asynchronous
        self.uploader = uploader
        self.last_stall = 0.0
        """Seconds for which the last `save` held training up."""
        self.last_duration: float | None = None
        """Seconds from the call of the last finished save until it was durable."""
        self.committed: Checkpoint | None = None
        """The newest checkpoint this run has committed."""
        self.error: str | None = None
        """Why the last save failed; None if it did not."""
        self.failures = 0
        self._proven = False
        """Has a save of this run succeeded?"""
        self._about = about or {}
        self._job = job
        self._copies = copies
        self._background = peers.patient
        self._run = peers.gather(uuid.uuid4().hex[:12])[0]
        self.last_step: int | None = None
        """The newest step that was handed to `save`."""
        self._staging = Staging()
        self._capture: Callable[[int], Snapshot] | None = None
        self._thread: threading.Thread | None = None
        self._error: Exception | None = None
        self._durations: deque[float] = deque(maxlen=REMEMBERED)

    def bind(self, capture: Callable[[int], Snapshot]) -> None:
        """Where the state comes from: called by `save` with the step, on every rank."""
        self._capture = capture

    def save(self, step: int, last: bool = False) -> None:
        """Save the state of this step; `last` uploads it even if an upload is under way. Collective.

        A step that this run has saved already is not saved again. If the disk is full the save is left out, with a
        word; that of the `last` state raises, as `wait` does.
        """
        began = time.perf_counter()
        self._join(None)
        self.poll()
        if step == self.last_step:
            return
        if self._capture is None:
            raise RuntimeError("Saver.bind comes before Saver.save")
        snapshot = self._capture(step)
        layout: Layout = "sharded" if is_sharded(snapshot.tensors) else "replicated"
        failure = self._begin(step)
        idle = self.uploader is None or last or self.uploader.idle
        answers = self.peers.gather((snapshot.rank, failure, idle, socket.gethostname()))
        failures = [theirs for _, theirs, _, _ in answers if theirs is not None]
        if failures:
            if self.peers.writer:
                self.store.abandon(self.store.building(step, self._run))
            first = next((theirs for theirs in failures if not isinstance(theirs, SaveFailedError)), failures[0])
            if last or not isinstance(first, SaveFailedError):
                raise first
            self._failed(first)
            return
        self.last_step = step
        if layout == "sharded" or self.peers.writer:
            staged = self._staging.stage(snapshot.tensors)
            plain = plain_tensors(staged) if layout == "sharded" else {}
            shared = copy.deepcopy({**snapshot.shared, "training": snapshot.training})
            job = _Save(
                step=step,
                layout=layout,
                building=self.store.building(step, self._run),
                tensors={name: tensor for name, tensor in staged.items() if name not in plain},
                state={
                    **shared,
                    "plain": plain,
                    "ranks": [rank for rank, _, _, _ in answers],
                    "hosts": [host for _, _, _, host in answers],
                },
                upload=all(idle for _, _, idle, _ in answers),
                began=began,
            )
            self._thread = threading.Thread(target=self._work, args=(job,), name=f"checkpoint-{step}", daemon=True)
            self._thread.start()
        if not self.asynchronous:
            self._join(None)
        self.last_stall = time.perf_counter() - began
        if not self.asynchronous:
            self.poll()

    def poll(self) -> None:
        """Raise what went wrong in the background since the last call; say it, if training can go on."""
        try:
            self._raise()
        except SaveFailedError as error:
            self._failed(error)

    def wait(self, deadline: float | None = None) -> bool:
        """Wait until the last save is durable, or until the deadline; was it? Raises what went wrong."""
        finished = self._join(deadline)
        if finished:
            self._raise()
        return finished

    def estimate(self) -> float | None:
        """Seconds from the call of `save` until the checkpoint is durable: the longest of the last few."""
        return max(self._durations) if self._durations else None

    def close(self, deadline: float | None = None) -> bool:
        """Wait for the last save and its upload, or until the deadline; is all done?"""
        return self.wait(deadline) and (self.uploader is None or self.uploader.drain(deadline))

    def _raise(self) -> None:
        if self._error is not None:
            error, self._error = self._error, None
            raise error

    def _failed(self, error: SaveFailedError) -> None:
        self.failures += 1
        self.error = str(error)
        self.store.log(f"{error} Training goes on.")

    def _join(self, deadline: float | None) -> bool:
        if self._thread is None:
            return True
        self._thread.join(None if deadline is None else max(0.0, deadline - time.monotonic()))
        if self._thread.is_alive():
            return False
        self._thread = None
        return True

    def _begin(self, step: int) -> TrainerError | None:
        """Only then may the other processes of the node write into the directory."""
        try:
            if self.peers.writer:
                self.store.begin(step, self._run)
        except OSError as error:
            return self._sentence(step, error)
        return None

    def _work(self, job: _Save) -> None:
        """The background thread."""
        try:
            if job.layout == "sharded":
                self._write_sharded(job)
            else:
                self._write_replicated(job)
            self._proven, self.error = True, None
            self.last_duration = time.perf_counter() - job.began
            self._durations.append(self.last_duration)
        except BaseException as error:  # raised by `_raise`, in the thread that trains
            if self.peers.writer:
                self.store.abandon(job.building)
            if isinstance(error, TrainerError | RuntimeError):  # RuntimeError: another process is gone, says gloo
                self._error = error
            else:
                self._error = self._sentence(job.step, error)
                self._error.__cause__ = error

    def _write_replicated(self, job: _Save) -> None:
        """A full copy on this place's disk, whatever the others do."""
        from gaudi3_scale.checkpoint.storage import HashingWriter
        from gaudi3_scale.checkpoint.tensors import write_tensors

        writer = HashingWriter(job.building)
        write_tensors(job.tensors, writer, None)
        files = {**writer.entries, STATE: self._write_state(job)}
        manifest = self._manifest(job, files).with_here(files)
        checkpoint = self.store.commit(job.building, manifest)
        self._committed(job, checkpoint, set(files) if self.peers.rank == 0 else set())

    def _write_sharded(self, job: _Save) -> None:
        """This rank's shard, its copies on other nodes, and the commit once every node has its set."""
        from gaudi3_scale.checkpoint.storage import HashingWriter
        from gaudi3_scale.checkpoint.tensors import write_tensors

        peers, writer = self._background, HashingWriter(job.building)
        write_tensors(job.tensors, writer, peers.group)  # fails on all ranks if on one
        metadata = (job.building / METADATA).read_bytes() if peers.rank == 0 else None
        written = peers.gather((writer.entries, metadata))
        owners = {n: (r, e) for r, (entries, _) in enumerate(written) for n, e in entries.items() if n != METADATA}
        transfers = peers.copies(owners, self._copies)
        failure: BaseException | None = peers.exchange(transfers, job.building)
        manifest: Manifest | None = None
        if peers.writer and failure is None:
            try:
                files = {name: entry for name, (_, entry) in owners.items()}
                files[METADATA] = written[0][0][METADATA]
                if peers.rank != 0:
                    self._write_metadata(job, written[0][1] or b"")
                files[STATE] = self._write_state(job)
                held = {n for n, (r, _) in owners.items() if peers.places[r] == peers.folder_rank}
                held |= {t.name for t in transfers if peers.places[t.target] == peers.folder_rank}
                manifest = self._manifest(job, files).with_here(held | {METADATA, STATE})
            except (OSError, TrainerError) as error:
                failure = error
        self._agree(job, peers, failure)
        try:  # the copies of all ranks of the node are there: the manifest makes them one
            if manifest is not None:
                self.store.prepare(job.building, manifest)
        except OSError as error:
            failure = error
        self._agree(job, peers, failure)
        checkpoint: Checkpoint | None = None
        try:  # from here on every node has its set, and a node that is killed finishes when it comes back
            if manifest is not None:
                checkpoint = self.store.commit(job.building, manifest)
        except OSError as error:
            failure = error
        self._agree(job, peers, failure)
        if checkpoint is not None:
            mine = {n for n, (r, _) in owners.items() if peers.places[r] == peers.folder_rank}
            self._committed(job, checkpoint, mine | ({METADATA, STATE} if peers.rank == 0 else set()))

    @staticmethod
    def _write_metadata(job: _Save, content: bytes) -> None:
        """Rank 0's description of where everything lies, at another place."""
        from gaudi3_scale.checkpoint.storage import HashingFile

        with HashingFile(job.building / METADATA) as file:
            file.write(content)
            file.finish()

    def _write_state(self, job: _Save) -> Entry:
        from gaudi3_scale.checkpoint.storage import write_state

        return write_state(job.building, job.state)

    def _agree(self, job: _Save, peers: CheckpointPeers, failure: BaseException | None) -> None:
        """Go on only if nobody failed."""
        mine: TrainerError | None = None
        if failure is not None:
            mine = failure if isinstance(failure, TrainerError) else self._sentence(job.step, failure)
        self._raise_first(peers.gather(mine))

    def _manifest(self, job: _Save, files: dict[str, Entry]) -> Manifest:
        manifest = Manifest(job.step, self._run, job.layout, files, (), self._about, self._job)
        return manifest if self.store.signer is None else self.store.signer.sign(manifest)

    def _committed(self, job: _Save, checkpoint: Checkpoint, mine: set[str]) -> None:
        """Tell those who wait, upload, and delete what is superfluous now."""
        self.committed = checkpoint
        if self.uploader is not None and job.upload and mine:
            self.uploader.offer(checkpoint, mine)
        self.store.prune(job.step)

    def _sentence(self, step: int, error: BaseException) -> TrainerError:
        """What to do about a save that failed."""
        from gaudi3_scale.checkpoint.tensors import root

        known = f"resumes from step {self.committed.step}" if self.committed else "resumes from its newest checkpoint"
        cause = root(error)
        reason = cause.strerror or str(cause) if isinstance(cause, OSError) else f"{type(cause).__name__}: {cause}"
        passing = isinstance(cause, OSError) and (self._proven or cause.errno not in LASTING)
        return (SaveFailedError if passing else TrainerError)(
            f"The checkpoint of step {step} could not be written to {self.store.directory} by rank {self.peers.rank} "
            f"({reason.splitlines()[0][:200]}): give the disk room or output_dir another place; started again, the job "
            f"{known}."
        )

    @staticmethod
    def _raise_first(failures: list[TrainerError | None]) -> None:
        for failure in failures:
            if failure is not None:
                raise failure
