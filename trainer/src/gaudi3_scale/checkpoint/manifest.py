"""The manifest of a checkpoint: which files it consists of, which of them lie here, and what each must contain."""

from __future__ import annotations

import hashlib
import json
import os
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from gaudi3_scale.distributed.exchange import record
from gaudi3_scale.errors import TrainerError

FORMAT = 3
MANIFEST = "manifest.json"
STATE = "state.safetensors"
METADATA = ".metadata"

JOB = re.compile(r"[0-9a-f]{16}")
NAME = re.compile(r"[A-Za-z0-9_.-]{1,200}")
"""Of a file: no separators, and nothing that a file system or a terminal takes for something else."""
Layout = Literal["replicated", "sharded"]


class DamagedCheckpointError(Exception):
    """A committed checkpoint is not what its manifest says."""


@record
@dataclass(frozen=True)
class Entry:
    """One file."""

    size: int
    sha256: str

    def check(self, path: Path) -> None:
        """Read the file whole; DamagedCheckpointError if it is another."""
        try:
            with path.open("rb") as file:
                found = os.fstat(file.fileno()).st_size
                if found != self.size:
                    raise DamagedCheckpointError(f"{path.name} has {found} bytes instead of {self.size}")
                if hashlib.file_digest(file, "sha256").hexdigest() != self.sha256:
                    raise DamagedCheckpointError(f"the content of {path.name} has changed")
        except OSError as error:
            raise DamagedCheckpointError(f"{path.name} cannot be read ({error.strerror})") from None


@record
@dataclass(frozen=True)
class Job:
    """Whose a checkpoint is; see `gaudi3_scale.checkpoint.identity`."""

    id: str
    """Drawn once, when the job has no checkpoint yet."""
    key: str
    """What the job is, as far as its configuration tells; equal for a job that begins again on empty disks."""

    @classmethod
    def load(cls, values: Any) -> Job:
        """From JSON; ValueError if it is none."""
        job = cls(str(values["id"]), str(values["key"]))
        if not JOB.fullmatch(job.id):
            raise ValueError(f"{job.id!r} is no id of a job")
        return job


@record
@dataclass(frozen=True)
class Manifest:
    """Equal on all nodes but for `here`."""

    step: int
    run: str
    """Drawn again at each start of the job: a step may be saved by more than one run."""
    layout: Layout
    """replicated: every node has all files; sharded: the files are spread over the nodes, with copies."""
    files: dict[str, Entry]
    here: tuple[str, ...]
    """The files this directory was written with."""
    about: dict[str, Any]
    """What else is known of the run."""
    job: Job | None = None
    """None: the saver was given no job."""
    signature: str | None = None
    """See `gaudi3_scale.checkpoint.signing`."""

    @property
    def size(self) -> int:
        """Bytes of the whole checkpoint."""
        return sum(entry.size for entry in self.files.values())

    @property
    def fingerprint(self) -> tuple[int, str, str]:
        """Equal on two nodes if and only if they hold parts of the same checkpoint."""
        files = json.dumps({name: entry.sha256 for name, entry in sorted(self.files.items())})
        return self.step, self.run, hashlib.sha256(files.encode()).hexdigest()

    @property
    def small(self) -> list[str]:
        """The files that every node needs to begin with."""
        return [name for name in self.files if name in (METADATA, STATE)]

    def with_here(self, names: Any) -> Manifest:
        """The same checkpoint in a directory with these of its files."""
        return replace(self, here=tuple(sorted(set(names) & set(self.files))))

    def dump(self) -> str:
        """As JSON."""
        files = {name: {"size": e.size, "sha256": e.sha256} for name, e in sorted(self.files.items())}
        head: dict[str, Any] = {"format": FORMAT, "step": self.step, "run": self.run, "layout": self.layout}
        if self.job is not None:
            head["job"] = {"id": self.job.id, "key": self.job.key}
        if self.signature is not None:
            head["signature"] = self.signature
        return json.dumps({**self.about, **head, "files": files, "here": sorted(self.here)}, indent=1)

    @classmethod
    def load(cls, text: str, step: int, where: str) -> Manifest:
        """From JSON; DamagedCheckpointError if it is none, TrainerError if it is of another format."""
        try:
            read = json.loads(text)
            form = read.pop("format")
            if form != FORMAT:
                raise TrainerError(
                    f"The checkpoint {where} has format {form}, and this version reads {FORMAT}: "
                    "use the version that wrote it, or another output_dir."
                )
            files = {str(name): Entry(int(e["size"]), str(e["sha256"])) for name, e in read.pop("files").items()}
            here = tuple(str(name) for name in read.pop("here"))
            found, run, layout = int(read.pop("step")), str(read.pop("run")), read.pop("layout")
            job = Job.load(read.pop("job")) if "job" in read else None
            signature = str(read.pop("signature")) if "signature" in read else None
            if signature is not None and not signature.isascii():
                raise DamagedCheckpointError("its signature is none")
            # A name is joined to a path: it must not lead out of the directory.
            plain = all(NAME.fullmatch(name) and name not in (".", "..", MANIFEST) for name in files)
            sound = plain and layout in ("replicated", "sharded") and bool(files) and set(here) <= set(files)
            if found != step or not sound:
                raise DamagedCheckpointError("its manifest describes something else")
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
            raise DamagedCheckpointError(f"its manifest cannot be read ({type(error).__name__})") from None
        return cls(step, run, layout, files, here, read, job, signature)
