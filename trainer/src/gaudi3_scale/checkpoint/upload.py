"""Committed checkpoints on their way to the target, by a thread of its own: a dead target holds nothing up."""

from __future__ import annotations

import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from pathlib import Path
from queue import SimpleQueue

from gaudi3_scale.checkpoint.manifest import MANIFEST, DamagedCheckpointError, Job, Manifest
from gaudi3_scale.checkpoint.peers import CheckpointPeers
from gaudi3_scale.checkpoint.store import Checkpoint, CheckpointStore
from gaudi3_scale.checkpoint.target import FOLDER, Target

PATIENCE = 1800.0
"""Seconds that the manifest's writer waits for the files of the other nodes."""


def folder(manifest: Manifest) -> str:
    """Where the files of a checkpoint lie in a target."""
    return _name(manifest.step, _id(manifest.job), manifest.run)


class Uploader:
    """Uploads one checkpoint after the other from this place.

    Each place uploads its own files. Rank 0's place writes the manifest once all files are in the target, so the
    commit needs no word between the nodes. Places have to be offered the same steps.
    """

    def __init__(
        self,
        target: Target,
        store: CheckpointStore,
        peers: CheckpointPeers,
        log: Callable[[str], None] = print,
        patience: float = PATIENCE,
        job: Job | None = None,
    ) -> None:
        """Of other jobs than `job` nothing is uploaded, and nothing is ever deleted."""
        self.target = target
        self.uploaded: int | None = None
        """The newest step that this place has uploaded (rank 0's place: that is committed in the target)."""
        self.error: str | None = None
        """Why the last upload failed; None if it did not."""
        self.failures = 0
        self._store = store
        self._commits = peers.folder_rank == 0
        self._log = log
        self._patience = patience
        self._job = job
        self._queue: SimpleQueue[tuple[Checkpoint, set[str], ExitStack]] = SimpleQueue()
        self._pending: list[int] = []
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    @property
    def idle(self) -> bool:
        """Is nothing being uploaded?"""
        return not self._pending

    def offer(self, checkpoint: Checkpoint, names: Iterable[str]) -> None:
        """Upload these files of a committed checkpoint, which stays on the disk until then."""
        hold = ExitStack()
        hold.enter_context(self._store.held(checkpoint.step))
        with self._changed:
            self._pending.append(checkpoint.step)
        self._queue.put((checkpoint, set(names), hold))
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="checkpoint-upload", daemon=True)
            self._thread.start()

    def catch_up(self, peers: CheckpointPeers, checkpoint: Checkpoint) -> None:
        """Offer the checkpoint resumed from, if an upload of it was cut off. Collective."""
        if _id(checkpoint.manifest.job) != _id(self._job):
            return
        lacking = False
        if peers.rank == 0:
            try:
                own = [step for step, job, _ in committed(self.target) if job == _id(self._job)]
                lacking = not any(step >= checkpoint.step for step in own)
            except Exception as error:  # said when it is next needed
                self.error = str(error)
        held = peers.gather((lacking, set(checkpoint.manifest.here) if peers.writer else set()))
        if not held[0][0] or not peers.writer:
            return
        # Of the places that have a file, the first one uploads it.
        before: set[str] = set().union(*(names for _, names in held[: peers.rank]))
        self.offer(checkpoint, held[peers.rank][1] - before)

    def drain(self, deadline: float | None = None) -> bool:
        """Wait until nothing is being uploaded, or until a `time.monotonic()`; is it so?"""
        with self._changed:
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            return self._changed.wait_for(lambda: not self._pending, left)

    def give_up(self, seconds: float) -> None:
        """Say what did not reach the target in the time that there was for it."""
        steps = " and ".join(str(step) for step in self._pending)
        self.failures += 1
        self.error = f"step {steps} was not copied within {seconds:g} s"
        self._log(
            f"{self.target.url} has not taken all checkpoints within {seconds:g} s (checkpoint.upload_timeout), step "
            f"{steps} is missing: the nodes' disks have what they keep, and the job ends"
        )

    def _work(self) -> None:
        while True:
            checkpoint, names, hold = self._queue.get()
            with hold:
                try:
                    self._upload(checkpoint, names)
                    self.uploaded, self.error = checkpoint.step, None
                except Exception as error:  # whatever the transport raises
                    self.failures += 1
                    self.error = f"{type(error).__name__}: {error}".splitlines()[0][:300]
                    self._log(
                        f"the checkpoint of step {checkpoint.step} could not be copied to {self.target.url} "
                        f"({self.error}): it is safe on the nodes' disks, and training goes on"
                    )
            with self._changed:
                self._pending.remove(checkpoint.step)
                self._changed.notify_all()

    def _upload(self, checkpoint: Checkpoint, names: set[str]) -> None:
        manifest, where = checkpoint.manifest, folder(checkpoint.manifest)
        for name in sorted(names):
            self.target.put(checkpoint.path / name, f"{where}/{name}")
        if not self._commits:
            return
        self._await(manifest)
        with tempfile.NamedTemporaryFile("w", encoding="utf-8", suffix=MANIFEST) as file:
            file.write(manifest.with_here(manifest.files).dump())
            file.flush()
            self.target.put(Path(file.name), f"{where}/{MANIFEST}")
        self._prune(manifest)

    def _await(self, manifest: Manifest) -> None:
        """Until all files of all nodes are there."""
        where, until, pause = folder(manifest), time.monotonic() + self._patience, 0.2
        while True:
            there = self.target.sizes(where)
            lacking = [n for n, entry in manifest.files.items() if there.get(f"{where}/{n}") != entry.size]
            if not lacking:
                return
            if time.monotonic() > until:
                raise TimeoutError(f"{lacking[0]}, which another node uploads, did not come in {self._patience:g} s")
            time.sleep(pause)
            pause = min(5.0, pause * 1.5)

    def _prune(self, committed: Manifest) -> None:
        """As on a disk: the newest `keep`, every `keep_every`-th, and no leftovers; of this job alone."""
        folders = {
            where: names for where, names in _folders(self.target.sizes()).items() if where[1] == _id(committed.job)
        }
        whole = {step for (step, _, _), names in folders.items() if _manifest_name(names)}
        good = sorted(step for step in whole if step <= committed.step)
        kept = {*good[-self._store.keep :], committed.step}
        if self._store.keep_every:
            kept |= {step for step in good if step % self._store.keep_every == 0}
        for (step, job, run), names in folders.items():
            own = run == committed.run
            # What this run uploads right now has no manifest yet; another folder of the same step is an older run's.
            if own and (step > committed.step or step in kept):
                continue
            if step in kept and step != committed.step and _manifest_name(names):
                continue
            self.target.delete(names)
            self.target.clean(_name(step, job, run))


def _id(job: Job | None) -> str | None:
    return None if job is None else job.id


def _name(step: int, job: str | None, run: str) -> str:
    return f"step-{step:08d}-{job}-{run}" if job is not None else f"step-{step:08d}-{run}"


def _folders(sizes: Iterable[str]) -> dict[tuple[int, str | None, str], list[str]]:
    """The names in a target by step, job and run."""
    found: dict[tuple[int, str | None, str], list[str]] = {}
    for name in sizes:
        match = FOLDER.fullmatch(name.partition("/")[0])
        if match:
            found.setdefault((int(match[1]), match[2], match[3]), []).append(name)
    return found


def _manifest_name(names: Iterable[str]) -> str | None:
    return next((name for name in names if name.endswith(f"/{MANIFEST}")), None)


def committed(target: Target) -> list[tuple[int, str | None, str]]:
    """Step, job and manifest's name of the checkpoints in a target, newest first."""
    found = _folders(target.sizes())
    whole = [(step, job, name) for (step, job, _), names in found.items() if (name := _manifest_name(names))]
    return sorted(whole, key=lambda each: (each[0], each[2]), reverse=True)


def read_manifest(target: Target, name: str) -> Manifest:
    """A manifest in a target; DamagedCheckpointError if it is none."""
    match = FOLDER.fullmatch(name.partition("/")[0])
    with tempfile.TemporaryDirectory() as temporary:
        path = Path(temporary) / MANIFEST
        target.get(name, path)
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            raise DamagedCheckpointError("its manifest cannot be read (UnicodeDecodeError)") from None
    manifest = Manifest.load(text, int(match[1]) if match else -1, f"{target.url}/{name}")
    if folder(manifest) != name.partition("/")[0]:
        raise DamagedCheckpointError("its manifest describes something else")
    return manifest


def download(target: Target, manifest: Manifest, names: Iterable[str], path: Path) -> None:
    """Fetch files of a checkpoint, durably, and compare them; DamagedCheckpointError names one that is not right."""
    sizes = target.sizes(folder(manifest))
    for name in names:
        there = f"{folder(manifest)}/{name}"
        if there not in sizes:
            raise DamagedCheckpointError(f"{name} is not there")
        if sizes[there] != manifest.files[name].size:
            raise DamagedCheckpointError(f"{name} has {sizes[there]} bytes instead of {manifest.files[name].size}")
        target.get(there, path / name)
        manifest.files[name].check(path / name)
        with (path / name).open("rb") as file:
            os.fsync(file.fileno())
