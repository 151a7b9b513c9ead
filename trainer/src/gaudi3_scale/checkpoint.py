"""Checkpoints on one node's disk: written so that a kill at any instant leaves them whole, and never trusted unread.

    checkpoints/step-00000050/state.pt        what is restored
    checkpoints/step-00000050/manifest.json   size and SHA-256 of each file; written last, so its presence is the commit

A checkpoint is built in a directory of another name, made durable, and renamed: one that has the right name but not the
content its manifest states was damaged afterwards, and is passed over with a word.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

from gaudi3_scale.errors import TrainerError
from gaudi3_scale.files import sync_directory, write_atomically

FORMAT = 1
STATE = "state.pt"
MANIFEST = "manifest.json"


class DamagedCheckpointError(Exception):
    """A committed checkpoint is not what its manifest says."""


@dataclass(frozen=True)
class Checkpoint:
    """A committed checkpoint that has been verified."""

    step: int
    path: Path
    manifest: dict[str, Any]

    @property
    def fingerprint(self) -> str:
        """Equal on two nodes if and only if the content is."""
        return json.dumps(self.manifest["files"], sort_keys=True)

    def load(self) -> dict[str, Any]:
        """Everything that was saved, on CPU."""
        import torch

        state: dict[str, Any] = torch.load(self.path / STATE, map_location="cpu", weights_only=True)
        return state


class _Hashing:
    """A file that is hashed while it is written, so that it need not be read again."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb")
        self._digest = hashlib.sha256()
        self.size = 0

    def write(self, data: bytes) -> int:
        self._digest.update(data)
        self.size += len(data)
        return self._file.write(data)

    def flush(self) -> None:
        self._file.flush()

    def close(self) -> dict[str, Any]:
        """Make the content durable; its entry in the manifest."""
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        return {"size": self.size, "sha256": self._digest.hexdigest()}


class CheckpointStore:
    """The checkpoints in a directory."""

    def __init__(self, directory: Path, keep: int, say: Callable[[str], None] = print) -> None:
        self.directory = directory
        self.keep = keep
        self._say = say

    def path(self, step: int) -> Path:
        """Where the checkpoint of a step is, or will be."""
        return self.directory / f"step-{step:08d}"

    def steps(self) -> list[int]:
        """Steps with a committed checkpoint, oldest first; it may still be damaged."""
        if not self.directory.is_dir():
            return []
        names = [p.name.removeprefix("step-") for p in self.directory.glob("step-*")]
        return sorted(int(name) for name in names if name.isdigit())

    def save(self, step: int, state: dict[str, Any], about: dict[str, Any]) -> Checkpoint:
        """Write, commit and prune."""
        import torch

        building = self.begin(step)
        file = _Hashing(building / STATE)
        torch.save(state, cast("IO[bytes]", file))
        manifest = {"format": FORMAT, "step": step, **about, "files": {STATE: file.close()}}
        checkpoint = self.commit(step, building, manifest)
        self.prune()
        return checkpoint

    def begin(self, step: int) -> Path:
        """An empty directory to build the checkpoint of a step in."""
        building = self.directory / f".building-{step:08d}-{os.getpid()}"
        shutil.rmtree(building, ignore_errors=True)
        building.mkdir(parents=True)
        return building

    def commit(self, step: int, building: Path, manifest: dict[str, Any]) -> Checkpoint:
        """Make a built checkpoint the one of its step; its files must be durable already."""
        write_atomically(building / MANIFEST, json.dumps(manifest, indent=1))
        final = self.path(step)
        if final.exists():  # damaged, or of a run that was set back
            self._discard(final)
        building.rename(final)
        sync_directory(self.directory)
        return Checkpoint(step, final, manifest)

    def verify(self, step: int) -> Checkpoint:
        """Read a checkpoint whole and compare it with its manifest."""
        path = self.path(step)
        try:
            manifest = json.loads((path / MANIFEST).read_text())
            entries = {str(name): (int(e["size"]), str(e["sha256"])) for name, e in manifest["files"].items()}
            if manifest["step"] != step or not entries:
                raise DamagedCheckpointError("its manifest describes something else")
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise DamagedCheckpointError(f"its manifest cannot be read ({type(error).__name__})") from None
        if manifest["format"] != FORMAT:
            raise TrainerError(
                f"The checkpoint {path} has format {manifest['format']}, and this version reads {FORMAT}: "
                "use the version that wrote it, or another output_dir."
            )
        for name, (size, sha256) in entries.items():
            try:
                with (path / name).open("rb") as file:
                    found = os.fstat(file.fileno()).st_size
                    if found != size:
                        raise DamagedCheckpointError(f"{name} has {found} bytes instead of {size}")
                    if hashlib.file_digest(file, "sha256").hexdigest() != sha256:
                        raise DamagedCheckpointError(f"the content of {name} has changed")
            except OSError as error:
                raise DamagedCheckpointError(f"{name} cannot be read ({error.strerror})") from None
        return Checkpoint(step, path, manifest)

    def newest(self) -> Checkpoint | None:
        """The newest checkpoint that is whole."""
        for step in reversed(self.steps()):
            try:
                return self.verify(step)
            except DamagedCheckpointError as damage:
                self._say(f"checkpoint {self.path(step)} is damaged ({damage}) and is passed over")
        return None

    def prune(self) -> None:
        """Delete all but the newest `keep` checkpoints."""
        for step in self.steps()[: -self.keep]:
            self._discard(self.path(step))

    def clean(self) -> None:
        """Delete what a killed run left unfinished."""
        if self.directory.is_dir():
            for path in [*self.directory.glob(".building-*"), *self.directory.glob(".deleting-*")]:
                shutil.rmtree(path, ignore_errors=True)

    def _discard(self, path: Path) -> None:
        """Take the name away first: a half-deleted checkpoint must not look like a damaged one."""
        doomed = path.with_name(f".deleting-{path.name}-{os.getpid()}")
        shutil.rmtree(doomed, ignore_errors=True)
        path.rename(doomed)
        shutil.rmtree(doomed, ignore_errors=True)
