# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Files of a job that root reads and writes, safe from the job's user, to whom the job's own folder belongs.

What root writes (record and configuration) lies in a folder of root's beside the job's: ``.control/NAME`` next to
``NAME``. What the trainer writes is read as a file that a stranger may have put there.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import stat
from collections.abc import Iterator
from typing import Any, Optional

from .._files import make_folder, make_in, write_in
from .._kinds import ENTRIES, mapping, parsed
from .._refusal import Refusal
from .container import ENVIRONMENT
from .record import record_of
from .spec import CONFIG, INVOCATION, control_folder

RECORD = "job.json"
#: By which the nodes of the job know each other.
SECRET = "secret"
#: What the job's trace belongs to: the run that started it first.
TRACE = "trace"
#: What was given to sbatch, of a job of Slurm.
SCRIPT = "job.sbatch"
#: Files that a job has besides its record, each of them or not.
PARTS = (CONFIG, ENVIRONMENT, SECRET, TRACE, SCRIPT)
#: Largest file that is read: none of a job's comes near it.
LIMIT = 1 << 20


class JobError(Refusal):
    """What went wrong, in one sentence; ``log`` holds the job's last words where there are any."""

    def __init__(self, message: str, log: Optional[list[str]] = None) -> None:
        super().__init__(message)
        self.log = log or []


def read_regular(path: str, folder: Optional[int] = None) -> Optional[str]:
    """A file's text, ``path`` below the open ``folder``; None for all but a small regular file with one name.

    Neither a pipe nor a device nor a link, symbolic or hard, leads anywhere: root could read more than its owner.
    """
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        handle = os.open(path, flags, dir_fd=folder)
    except OSError:
        return None
    with os.fdopen(handle, "rb") as stream:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1 or found.st_size > LIMIT:
            return None
        content = stream.read(LIMIT + 1)
    try:
        return content.decode("utf-8") if len(content) <= LIMIT else None
    except ValueError:
        return None


def open_folder(path: str, folder: Optional[int] = None) -> int:
    """Open a folder that is no link; JobError for anything else in its place."""
    try:
        return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    except NotADirectoryError as error:
        raise JobError(
            f"{path} is not a folder: remove what is in its place (a link cannot stand for it; set jobs_dir to keep "
            "jobs elsewhere)."
        ) from error


def ensure_folder(path: str, mode: int, owner: tuple[int, int], folder: Optional[int] = None) -> int:
    """Make a folder where it is missing, set its mode and owner (-1: left as it is), and return it open."""
    make_in(folder, path, mode)
    handle = open_folder(path, folder)
    try:
        os.fchown(handle, *owner)
        os.fchmod(handle, mode)
    except BaseException:
        os.close(handle)
        raise
    return handle


class Output:
    """The folder of a job's output, which belongs to the job's user."""

    def __init__(self, directory: str) -> None:
        self.directory = directory

    def make(self, owner: tuple[int, int]) -> None:
        """Make it, and in it the folder of the vendor's logs."""
        make_folder(os.path.dirname(self.directory))
        handle = ensure_folder(self.directory, 0o750, owner)
        try:
            os.close(ensure_folder("habana_logs", 0o750, owner, handle))
        except JobError as error:
            raise JobError(f"{self.directory}/{error}") from None
        finally:
            os.close(handle)


class Control:
    """Root's folder about one job: ``job.json``, which says what was started, and the trainer's ``config.yml``."""

    def __init__(self, directory: str) -> None:
        """``directory`` is the job's own."""
        self.output = Output(directory)
        self.path = control_folder(directory)

    def exists(self) -> bool:
        """Whether it is there."""
        return os.path.lexists(self.path)

    def has(self, name: str) -> bool:
        """Whether a file is there."""
        return os.path.lexists(os.path.join(self.path, name))

    def record(self) -> dict[str, Any]:
        """What was started, and when, as :func:`record_of` reads it."""
        return record_of(parsed(self.text(RECORD)), self._invocations())

    def note(self, **more: Any) -> None:
        """Add to the record, where there is one, and keep all else that it says."""
        text = self.text(RECORD)
        if text:
            known = {**mapping(parsed(text)), **more}
            self.write({RECORD: json.dumps(known, indent=2, sort_keys=True) + "\n"}, self.group())

    def _invocations(self) -> list[str]:
        """What systemd called the last run, as the unit wrote it on each node that has this folder."""
        with self._opened() as handle:
            names = sorted(os.listdir(handle)) if handle is not None else []
            kept = [name for name in names if name.startswith(INVOCATION + ".") and not name.endswith(".part")]
            return [read_regular(name, handle) or "" for name in kept[:ENTRIES]]

    def text(self, name: str) -> str:
        """A file's text; nothing where it is missing."""
        with self._opened() as handle:
            return (read_regular(name, handle) if handle is not None else None) or ""

    def group(self) -> int:
        """The group which may read it, that of the job's user."""
        return os.stat(self.path).st_gid

    def write(self, files: dict[str, str], group: int) -> None:
        """Write files that the group may read."""
        make_folder(os.path.dirname(os.path.dirname(self.path)))
        parent = self._parent()
        try:
            handle = ensure_folder(os.path.basename(self.path), 0o750, (-1, group), parent)
            try:
                for name, text in files.items():
                    write_in(handle, name, text, 0o640, group)
            finally:
                os.close(handle)
        finally:
            os.close(parent)

    def remove(self, *names: str) -> None:
        """Remove files."""
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(os.path.join(self.path, name))

    def purge(self) -> None:
        """Remove the folder."""
        if self.exists():
            shutil.rmtree(self.path)

    def move(self, directory: str) -> None:
        """The job's folder was moved to ``directory``."""
        if self.exists():
            os.rename(self.path, control_folder(directory))

    def lock(self) -> int:
        """An open file of root's alone, under this name, to be locked; it is never written to."""
        parent = self._parent()
        try:
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            return os.open(os.path.basename(self.path), flags, 0o600, dir_fd=parent)
        finally:
            os.close(parent)

    def _parent(self) -> int:
        """The folder of all jobs' control folders, made where missing; JobError where others may write in it."""
        path = os.path.dirname(self.path)
        make_in(None, path, 0o755)
        handle = open_folder(path)
        if not _is_own(handle):
            os.close(handle)
            raise JobError(
                f"{path} can be changed by others than the user of this module: find out who made it, remove it and "
                "run again."
            )
        return handle

    @contextlib.contextmanager
    def _opened(self) -> Iterator[Optional[int]]:
        """This job's folder; None where it is missing or others may write in it."""
        handles: list[int] = []
        try:
            for path in (os.path.dirname(self.path), os.path.basename(self.path)):
                handles.append(open_folder(path, handles[-1] if handles else None))
            trusted = all(_is_own(handle) for handle in handles)
        except (OSError, JobError):
            trusted = False
        try:
            yield handles[-1] if trusted else None
        finally:
            for handle in handles:
                os.close(handle)


def _is_own(handle: int) -> bool:
    found = os.fstat(handle)
    return found.st_uid == os.geteuid() and not found.st_mode & 0o022
