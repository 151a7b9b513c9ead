"""The machine that is examined: its files, its programs and its users, asked without ever raising."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import stat
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, BinaryIO

SYSTEM_FOLDERS = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
MAX_TEXT = 64 * 1024
"""Characters of a file or of a program's output that are kept."""
NOBODY = "nobody"


@dataclass(frozen=True)
class Options:
    """What is asked for."""

    cards: bool = False
    """Whether to compute on the cards."""
    consent: tuple[str, ...] = ()
    """What may be tried besides, though it disturbs others: names of `sections.CONSENTS`."""
    quick: bool = False
    """Few repetitions and small tensors: a rehearsal, whose figures answer nothing."""
    user: str = ""
    """Who runs jobs: the sections of the cards run as this user. Empty: the one who asks."""
    pythons: tuple[str, ...] = ()
    """Interpreters that may have torch; the first that exists is used."""
    environment_files: tuple[str, ...] = ()
    """Files of variables that the job's unit reads."""
    exporter_ports: tuple[int, ...] = (41611,)
    """TCP ports on which exporters of the cards' metrics listen."""

    @property
    def repetitions(self) -> int:
        """How often a program is timed."""
        return 2 if self.quick else 10


@dataclass
class Result:
    """What a section found."""

    data: dict[str, Any] = field(default_factory=dict)
    odd: list[str] = field(default_factory=list)
    """Sentences on what is not as it should be."""
    not_tried: str = ""
    """Why the section was left out; empty where it was not."""


def failure(error: BaseException) -> Result:
    """What stands for a section that went wrong."""
    return Result({"error": f"{type(error).__name__}: {error}"})


@dataclass(frozen=True)
class Outcome:
    """How a program ended."""

    code: int | None
    """None where it could not be started or did not end in time."""
    out: str
    err: str
    seconds: float

    @property
    def failure(self) -> str:
        """Its complaint in one line; empty where it succeeded."""
        if self.code == 0:
            return ""
        lines = [line.strip() for line in (self.err or self.out).splitlines() if line.strip()]
        last = lines[-1] if lines else "no output"
        return last if self.code is None else f"exit code {self.code}: {last}"

    def as_dict(self) -> dict[str, Any]:
        """For the report."""
        return {"exit_code": self.code, "seconds": round(self.seconds, 3), "output": self.out, "errors": self.err}


@dataclass(frozen=True)
class User:
    """A user as whom programs can be run."""

    name: str
    uid: int
    gid: int
    groups: tuple[int, ...]


class Host:
    """This machine; with `root`, a folder that stands for it (for tests)."""

    def __init__(self, root: str = "", search: str = "") -> None:
        self.root = root
        self.search = search or f"{os.environ.get('PATH', '')}:{SYSTEM_FOLDERS}"

    def at(self, path: str) -> str:
        """Where an absolute path really is."""
        return self.root + path

    def read(self, path: str, limit: int = MAX_TEXT) -> str | None:
        """A file's text, or None where it cannot be read."""
        try:
            with open(self.at(path), encoding="utf-8", errors="replace") as file:
                return file.read(limit)
        except (OSError, ValueError):
            return None

    def value(self, path: str) -> str | None:
        """A file of one value, such as an attribute in sysfs."""
        text = self.read(path, 4096)
        return None if text is None else text.strip()

    def names(self, path: str) -> list[str]:
        """The sorted names in a folder; none where it cannot be read."""
        try:
            return sorted(os.listdir(self.at(path)))
        except OSError:
            return []

    def target(self, path: str) -> str | None:
        """The last part of what a link leads to."""
        try:
            return os.path.basename(os.readlink(self.at(path)))
        except OSError:
            return None

    def exists(self, path: str) -> bool:
        """Whether there is such a file."""
        return os.path.exists(self.at(path))

    def status(self, path: str) -> os.stat_result | None:
        """What stat says of a file."""
        try:
            return os.stat(self.at(path))
        except OSError:
            return None

    def files_below(self, folder: str, most: int = 2000) -> Iterator[str]:
        """Every file below a folder, by its path on the machine."""
        count = 0
        for place, folders, files in os.walk(self.at(folder)):
            folders.sort()
            for name in sorted(files):
                count += 1
                if count > most:
                    return
                yield os.path.join(place, name)[len(self.root) :]

    def program(self, *candidates: str) -> str | None:
        """The first of these programs that is there."""
        for name in candidates:
            found = shutil.which(self.at(name) if name.startswith("/") else name, path=self.search)
            if found:
                return found
        return None

    def run(
        self,
        argv: Sequence[str],
        seconds: float = 30.0,
        user: User | None = None,
        environment: Mapping[str, str] | None = None,
        folder: str = "/",
        grace: float = 0.0,
    ) -> Outcome:
        """Run a program to its end, or until time is up: then it is ended as `kill` does it."""
        started = time.monotonic()
        try:
            process = subprocess.Popen(
                list(argv), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                env=dict(environment) if environment is not None else self.environment(user), cwd=folder,
                start_new_session=True, **identity(user),
            )  # fmt: skip
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            return Outcome(None, "", f"cannot be started: {error}", time.monotonic() - started)
        try:
            out, err = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired as error:
            kill(process, grace)
            out = _text(error.stdout or b"")
            return Outcome(None, out, f"gave no answer in {seconds:g} s", time.monotonic() - started)
        except BaseException:  # of this process; in a session of its own, the program does not get a Ctrl-C
            kill(process, grace)
            raise
        taken = time.monotonic() - started
        return Outcome(process.returncode, _text(out), _text(err), taken)

    def environment(self, user: User | None, **more: str) -> dict[str, str]:
        """What a user's program inherits, with programs that speak English and hl-smi's output switched on."""
        return {**inherited(user), "PATH": self.search, "LC_ALL": "C", "ENABLE_CONSOLE": "true", **more}


def identity(user: User | None) -> dict[str, Any]:
    """Arguments that make a process run as another user, which only root can."""
    if user is None or os.geteuid() != 0 or user.uid == 0:
        return {}
    return {"user": user.uid, "group": user.gid, "extra_groups": list(user.groups)}


def inherited(user: User | None) -> dict[str, str]:
    """The caller's variables; nothing of root's for another user, as they may hold passwords and tokens."""
    if not identity(user):
        return dict(os.environ)
    return {name: os.environ[name] for name in ("LANG", "TZ") if name in os.environ}


def kill(process: subprocess.Popen[bytes], grace: float = 0.0, patience: float = 5.0) -> None:
    """End a process and its children: by SIGTERM where there is a grace, then by SIGKILL.

    One that the kernel holds does not end, and is left behind.
    """
    if grace:
        with contextlib.suppress(OSError):
            os.killpg(process.pid, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(grace)
    with contextlib.suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(OSError):
        process.kill()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(patience)
    for stream in (process.stdout, process.stderr):
        if stream is not None:
            stream.close()


def user_named(name: str) -> User | None:
    """A user of this machine; None where there is none of that name."""
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        return None
    groups = tuple(sorted({entry.pw_gid, *os.getgrouplist(name, entry.pw_gid)}))
    return User(name, entry.pw_uid, entry.pw_gid, groups)


@contextlib.contextmanager
def scratch(user: User | None) -> Iterator[str]:
    """A folder that is the user's own and is gone at the end."""
    folder = tempfile.mkdtemp(prefix="gaudi3-doctor-")
    try:
        if identity(user) and user is not None:
            os.chown(folder, user.uid, user.gid)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def create(path: str) -> BinaryIO:
    """A new file that all may read. Root works in folders of others: no link that they put there is followed."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644)
    os.fchmod(handle, 0o644)  # whatever the umask
    return os.fdopen(handle, "wb")


def content(path: str, start: int = 0) -> bytes:
    """What such a folder's file holds from there on; nothing where it is no regular file of its own."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return b""
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        return b""
    with os.fdopen(handle, "rb") as file:
        file.seek(start)
        return file.read()


def mode_text(mode: int) -> str:
    """Permissions as `ls -l` shows them, with the number."""
    return f"{stat.filemode(mode)} {stat.S_IMODE(mode):04o}"


def _text(output: bytes) -> str:
    text = output.decode(errors="replace")
    return text if len(text) <= MAX_TEXT else text[:MAX_TEXT] + "\n[cut here]"
