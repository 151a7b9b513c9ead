"""What a study keeps on disk, to survive kill -9 and be shared: locks, owners of trials, Optuna's storage."""

from __future__ import annotations

import contextlib
import fcntl
import os
import platform
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gaudi3_scale.errors import ConfigError, TrainerError
from gaudi3_scale.extras import how_to_install
from gaudi3_scale.tuning.study_options import StudyStorage

ALIVE_SECONDS = 5.0
"""Between two signs of life of a trial."""
DEAD_SECONDS = 60.0
"""Without a sign of life from another node, a trial's process counts as gone."""


def import_optuna() -> Any:
    """Optuna, which says warnings only. TrainerError where it is not installed."""
    try:
        import optuna
    except ImportError:
        raise TrainerError(
            f"A search needs the package optuna, which is not installed: {how_to_install('tune')}."
        ) from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna


@contextlib.contextmanager
def locked(path: Path, shared: bool = False, wait: bool = True) -> Iterator[None]:
    """Hold a file's lock, which the kernel gives back when its holder dies. BlockingIOError if `wait` is false."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (0 if wait else fcntl.LOCK_NB))
        yield
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def membership(folder: Path, join: bool) -> Iterator[None]:
    """Be one of those who work on a study, or the only one. ConfigError where others do and `join` is false."""
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(locked(folder / "members", shared=join, wait=False))
        except BlockingIOError:
            advice = "start that one with --join too" if join else "give --join to work on it together"
            raise ConfigError(f"Another gaudi3-train tune works on the study in {folder}: {advice}.") from None
        yield


def open_storage(kind: StudyStorage, folder: Path) -> Any:
    """Optuna's storage in the study's folder."""
    optuna = import_optuna()
    if kind is StudyStorage.sqlite:
        path = (folder / "study.sqlite").absolute()
        return optuna.storages.RDBStorage(f"sqlite:///{path}", engine_kwargs={"connect_args": {"timeout": 60}})
    journal: Any = optuna.storages.journal
    base: Any = journal.JournalFileSymlinkLock
    path = folder / "study.journal"

    class Lock(base):
        """Goes with its holder, and takes away half a line that a killed one has left.

        Optuna's own lock stays for 30 s, and its journal cannot be read any more once a line follows half a one.
        """

        held: contextlib.ExitStack

        def acquire(self) -> bool:
            self.held = contextlib.ExitStack()
            self.held.enter_context(locked(path.with_suffix(".lock")))
            _drop_torn_line(path)
            return True

        def release(self) -> None:
            self.held.close()

    return optuna.storages.JournalStorage(journal.JournalFileBackend(str(path), lock_obj=Lock(str(path))))


def owner() -> dict[str, Any]:
    """This process, as other processes and nodes can tell it from all others."""
    return {"node": _node(), "host": platform.node(), "pid": os.getpid(), "start": _started(os.getpid())}


def is_alive(who: dict[str, Any] | None, alive: Path) -> bool:
    """Does the process that makes a trial live? `alive` is the file that it touches while it does.

    The two times that are compared are of the same file system's clock.
    """
    if who is None:
        return False
    if who["node"] == _node():
        return bool(_started(int(who["pid"])) == who["start"] is not None)
    probe = alive.with_name(f"now.{os.getpid()}")
    try:
        probe.touch()
        return probe.stat().st_mtime - alive.stat().st_mtime < DEAD_SECONDS
    except OSError:
        return False
    finally:
        probe.unlink(missing_ok=True)


@contextlib.contextmanager
def beating(path: Path) -> Iterator[None]:
    """Touch a file every few seconds meanwhile, at least once."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    over = threading.Event()

    def beat() -> None:
        while not over.wait(ALIVE_SECONDS):
            with contextlib.suppress(OSError):
                path.touch()

    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _drop_torn_line(path: Path) -> None:
    """What was not written whole was never in the study."""
    with path.open("r+b") as file:
        size = file.seek(0, os.SEEK_END)
        if not size:
            return
        file.seek(size - 1)
        if file.read(1) != b"\n":
            file.seek(0)
            file.truncate(file.read().rfind(b"\n") + 1)


def _node() -> str:
    """This boot of this machine, and this container of it: where a process number means the same process."""
    with contextlib.suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{platform.node()} {boot} {Path('/proc/self/ns/pid').readlink()}"
    return platform.node()


def _started(pid: int) -> str | None:
    """When a process started, in the kernel's ticks; None if there is none, or a dead one not yet waited for."""
    try:
        after = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if after[0] in "ZX" else after[19]
