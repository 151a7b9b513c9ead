"""The checkpoints on one node's disk."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gaudi3_scale.checkpoint.manifest import MANIFEST, STATE, DamagedCheckpointError, Manifest
from gaudi3_scale.checkpoint.signing import Signer
from gaudi3_scale.errors import TrainerError
from gaudi3_scale.files import sync_directory, write_atomically

BUILDING = ".building-"
DELETING = ".deleting-"


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint whose files here have been verified."""

    step: int
    path: Path
    manifest: Manifest

    def state(self, also: tuple[str, ...] = ()) -> dict[str, Any]:
        """What is no tensor of the model or optimizer: counters, schedule, the ranks' random states.

        Its parts are those of `checkpoint.shape`, with those of `also`. TrainerError names the file and what is odd.
        """
        from gaudi3_scale.checkpoint.shape import checked
        from gaudi3_scale.checkpoint.state import unpack

        try:
            state = unpack(self.path / STATE)
            checked(state, STATE, also)
            return state
        except DamagedCheckpointError as damage:
            raise self.unusable(damage) from None

    def unusable(self, damage: DamagedCheckpointError) -> TrainerError:
        """The sentence about a checkpoint that is as it was written, and yet cannot be one."""
        return TrainerError(
            f"The checkpoint {self.path} is as its manifest says, and yet unusable ({damage}): somebody may have made "
            "it to do harm; delete it here, on the other nodes and in checkpoint.target to go on from the one before."
        )


class CheckpointStore:
    """The checkpoints in a directory, of which the newest `keep` stay, and every `keep_every`-th step besides."""

    def __init__(
        self, directory: Path, keep: int, log: Callable[[str], None] = print, keep_every: int | None = None
    ) -> None:
        self.directory = directory
        self.keep = keep
        self.keep_every = keep_every
        self.signer: Signer | None = None
        """With one, manifests are signed, and a job goes on from nothing that is not."""
        self.log = log
        self._damaged: set[int] = set()
        self._spared: set[int] = set()
        self._held: dict[int, int] = {}
        self._lock = threading.Lock()

    def path(self, step: int) -> Path:
        """Where the checkpoint of a step is, or will be."""
        return self.directory / f"step-{step:08d}"

    def building(self, step: int, run: str) -> Path:
        """Where it is built; the processes of a node build it together."""
        return self.directory / f"{BUILDING}{step:08d}-{run}"

    def steps(self) -> list[int]:
        """Steps with a committed checkpoint, oldest first; it may still be damaged."""
        if not self.directory.is_dir():
            return []
        names = [p.name.removeprefix("step-") for p in self.directory.glob("step-*")]
        return sorted(int(name) for name in names if name.isdigit())

    def begin(self, step: int, run: str) -> Path:
        """An empty directory to build the checkpoint of a step in."""
        building = self.building(step, run)
        shutil.rmtree(building, ignore_errors=True)
        building.mkdir(parents=True)
        return building

    def prepare(self, building: Path, manifest: Manifest) -> None:
        """Write the manifest: from here on the building is a whole, which only lacks its name."""
        write_atomically(building / MANIFEST, manifest.dump())

    def commit(self, building: Path, manifest: Manifest) -> Checkpoint:
        """Make a built checkpoint the one of its step; its files must be durable already."""
        if not (building / MANIFEST).exists():
            self.prepare(building, manifest)
        final = self.path(manifest.step)
        if final.exists():  # damaged, or of a run that was set back
            self._discard(final)
        building.rename(final)
        sync_directory(self.directory)
        self._damaged.discard(manifest.step)
        self._spared.discard(manifest.step)
        return Checkpoint(manifest.step, final, manifest)

    def read(self, step: int) -> Manifest:
        """What the checkpoint of a step should be; its files are not looked at."""
        path = self.path(step)
        try:
            text = (path / MANIFEST).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise DamagedCheckpointError(f"its manifest cannot be read ({type(error).__name__})") from None
        return Manifest.load(text, step, str(path))

    def check(self, manifest: Manifest, names: Iterable[str] | None = None) -> dict[str, str | None]:
        """Each file that should be here (or of these only), read whole: None, or what is wrong with it."""
        found: dict[str, str | None] = {}
        for name in manifest.here if names is None else names:
            try:
                manifest.files[name].check(self.path(manifest.step) / name)
                found[name] = None
            except DamagedCheckpointError as damage:
                found[name] = str(damage)
        return found

    def abandon(self, building: Path) -> None:
        """Give the room of a failed save back; one that lacks its name only may be whole together with other nodes'."""
        if not (building / MANIFEST).exists():
            shutil.rmtree(building, ignore_errors=True)

    def verify(self, step: int) -> Checkpoint:
        """Read everything that should be here and compare it with the manifest."""
        manifest = self.read(step)
        for reason in self.check(manifest).values():
            if reason is not None:
                raise DamagedCheckpointError(reason)
        return Checkpoint(step, self.path(step), manifest)

    def newest(self) -> Checkpoint | None:
        """The newest checkpoint that is whole, on a node that has all files of its checkpoints."""
        for step in reversed(self.steps()):
            try:
                return self.verify(step)
            except DamagedCheckpointError as damage:
                self.report(step, damage)
        return None

    def report(self, step: int, damage: object) -> None:
        """Say that a checkpoint is damaged; it counts for nothing when others are deleted."""
        self._damaged.add(step)
        self.log(f"checkpoint {self.path(step)} is damaged ({damage}) and is skipped")

    def spare(self, step: int) -> None:
        """Leave the checkpoint of a step alone, as it is another job's; it counts for nothing."""
        self._spared.add(step)

    def prune(self, committed: int) -> None:
        """Delete what the checkpoint just committed makes superfluous; that one stays, whatever else is here."""
        with self._lock:
            steps = self.steps()
            good = [step for step in steps if step <= committed and step not in self._damaged | self._spared]
            kept = {*good[-self.keep :], committed, *self._held}
            kept.update(step for step in good if self.keep_every and step % self.keep_every == 0)
            for step in steps:  # later ones are of a run that was set back
                if step not in kept and step not in self._spared:
                    self._discard(self.path(step))

    @contextmanager
    def held(self, step: int) -> Iterator[Path]:
        """Keep a checkpoint from being deleted while it is read."""
        with self._lock:
            self._held[step] = self._held.get(step, 0) + 1
        try:
            yield self.path(step)
        finally:
            with self._lock:
                self._held[step] -= 1
                if not self._held[step]:
                    del self._held[step]

    def clean(self) -> None:
        """Finish what a killed run had prepared, delete what it left unfinished."""
        if not self.directory.is_dir():
            return
        for building in self.directory.glob(f"{BUILDING}*"):
            self._adopt(building)
        for path in [*self.directory.glob(f"{BUILDING}*"), *self.directory.glob(f"{DELETING}*")]:
            shutil.rmtree(path, ignore_errors=True)

    def _adopt(self, building: Path) -> None:
        """A kill between the manifest and the name, perhaps after other nodes gave it its name: do the rest."""
        number = building.name.removeprefix(BUILDING).partition("-")[0]
        try:
            manifest = Manifest.load((building / MANIFEST).read_text(encoding="utf-8"), int(number), str(building))
        except (OSError, ValueError, DamagedCheckpointError, TrainerError):
            return
        self.commit(building, manifest)  # it is younger than anything of its name

    def _discard(self, path: Path) -> None:
        """Take the name away first: a half-deleted checkpoint must not look like a damaged one."""
        doomed = path.with_name(f"{DELETING}{path.name}")
        shutil.rmtree(doomed, ignore_errors=True)
        path.rename(doomed)
        shutil.rmtree(doomed, ignore_errors=True)
