"""Starting probes: processes that may crash or hang, whose answers are read line by line."""

from __future__ import annotations

import contextlib
import json
import os
import pkgutil
import resource
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .host import Host, Options, User, content, create, identity, inherited, kill, scratch, user_named
from .surroundings import login_variables, variables

PACKAGE = "gaudi3_probes"
_FILES = ("__init__", "__main__", "base", "single", "group", "hold", "elastic")
_POLL = 0.05
_GRACE = 15.0
"""Seconds in which a process may give its card up in order (`probes.base.LEAVE`) before it is killed."""
_WITHOUT_A_PEER = 60.0
"""Seconds for which the others of a group may be silent once one of them has ended before its work was done."""


@dataclass
class Child:
    """One process of probes."""

    process: subprocess.Popen[bytes]
    out: str
    log: str
    answers: dict[str, dict[str, Any]] = field(default_factory=dict)
    begun: str = "start"
    done: bool = False
    killed: bool = False
    """Whether it was ended because it said nothing for too long."""
    _read: int = 0

    def look(self) -> bool:
        """Read what it has written since; whether that was anything."""
        new = content(self.out, self._read)
        whole = new[: new.rfind(b"\n") + 1]
        self._read += len(whole)
        for line in whole.splitlines():
            with contextlib.suppress(ValueError):  # a line of something else
                self._take(json.loads(line))
        return bool(whole)

    def _take(self, found: Any) -> None:
        if not isinstance(found, dict):
            return
        if "begin" in found:
            self.begun = found["begin"]
        elif "name" in found:
            self.answers[found.pop("name")] = found
        elif found.get("done"):
            self.done = True

    def last_words(self) -> str:
        """The end of what it printed."""
        return content(self.log)[-3000:].decode(errors="replace")

    def ending(self) -> str:
        """How it ended, for a sentence."""
        code = self.process.poll()
        if self.killed or code is None:
            return "gave no answer in time"
        return f"ended with exit code {code}" if code >= 0 else f"was ended by signal {-code}"


class Bench:
    """Where probes run: a folder with their program, an interpreter, a user and an environment."""

    def __init__(self, host: Host, options: Options, folder: str, user: User | None) -> None:
        self.host, self.options, self.folder, self.user = host, options, folder, user
        self.python = host.program(*options.pythons) or ""
        self._number = 0
        os.mkdir(os.path.join(folder, PACKAGE))
        os.chmod(os.path.join(folder, PACKAGE), 0o755)  # whatever the umask
        for name in _FILES:
            source = pkgutil.get_data(f"{__package__}.probes", f"{name}.py") or b""
            self.put(os.path.join(PACKAGE, f"{name}.py"), source)
        self.environment = self._environment()

    def put(self, name: str, text: bytes) -> str:
        """Write a file that the user can read; its path."""
        path = os.path.join(self.folder, name)
        with create(path) as file:
            file.write(text)
        return path

    @property
    def patience(self) -> float:
        """Seconds that one probe may take."""
        return 300.0 if self.options.quick else 600.0

    def _environment(self) -> dict[str, str]:
        """As a job has it: the login's variables of the runtime, and over them those of the unit's files."""
        found = dict(login_variables(self.host, self.options))
        found.update(inherited(self.user))
        for path in self.options.environment_files:
            found.update(variables(self.host.read(path) or ""))
        found.update(HOME=self.folder, HABANA_LOGS=self.folder, XDG_CACHE_HOME=self.folder, PATH=self.host.search)
        found.update(PYTHONPATH=":".join(filter(None, [self.folder, found.get("PYTHONPATH", "")])))
        found.update(PYTHONDONTWRITEBYTECODE="1", PYTHONUNBUFFERED="1")
        return found

    @property
    def settings(self) -> dict[str, Any]:
        """What every probe gets as its input."""
        return {"scale": 1 / 256 if self.options.quick else 1.0}

    def command(self, kind: str, names: Sequence[str], out: str, **settings: Any) -> list[str]:
        """The command of one process."""
        told = json.dumps({**self.settings, **settings})
        return [self.python, "-m", PACKAGE, kind, out, json.dumps(list(names)), told]

    def start(self, kind: str, names: Sequence[str], more: Mapping[str, str] | None = None, **settings: Any) -> Child:
        """Start one process."""
        self._number += 1
        out, log = (os.path.join(self.folder, f"{self._number}.{end}") for end in ("json", "log"))
        environment = {**self.environment, **(more or {})}
        with create(log) as file:
            process = subprocess.Popen(
                self.command(kind, names, out, **settings), stdin=subprocess.DEVNULL, stdout=file, stderr=file,
                cwd=self.folder, env=environment, start_new_session=True, **identity(self.user),
            )  # fmt: skip
        return Child(process, out, log)

    def follow(self, children: Sequence[Child], patience: float | None = None) -> None:
        """Until all have ended, or none has said anything for too long; then they are killed."""
        limit = self.patience if patience is None else patience
        heard = time.monotonic()
        try:
            while True:
                ended = [child for child in children if child.process.poll() is not None]
                if sum(child.look() for child in children):
                    heard = time.monotonic()
                if len(ended) == len(children):
                    break
                if patience is None and not all(child.done for child in ended):
                    limit = min(limit, _WITHOUT_A_PEER)
                if time.monotonic() > heard + limit:
                    break
                time.sleep(_POLL)
        finally:
            end(children)

    def single(self, names: Sequence[str]) -> dict[str, dict[str, Any]]:
        """Answers of probes of one card. After one that took the process down, the others go on in a new one."""
        left, answers = list(names), dict[str, dict[str, Any]]()
        while left:
            child = self.start("single", left)
            self.follow([child])
            answers.update({name: answer for name, answer in child.answers.items() if name in left})
            start = child.answers.get("start", {})
            if "data" not in start:
                words = start.get("error") or f"the process {child.ending()}"
                return {**answers, **{name: {"error": words, "log": child.last_words()} for name in left}}
            if not child.done and child.begun in left and child.begun not in answers:
                answers[child.begun] = {"error": f"the process {child.ending()}", "log": child.last_words()}
            remaining = [name for name in left if name not in answers]
            if len(remaining) == len(left):  # it ended without a word: not to be tried for ever
                return {**answers, **{name: {"error": f"the process {child.ending()}"} for name in left}}
            left = remaining
        return answers

    def group(self, names: Sequence[str], size: int, patience: float | None = None) -> list[Child]:
        """Processes that form a group over this many cards, ended."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        children = []
        for rank in range(size):
            more = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": size, "LOCAL_WORLD_SIZE": size}
            meeting = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
            children.append(self.start("group", names, {**{key: str(value) for key, value in more.items()}, **meeting}))
        self.follow(children, patience)
        return children


def end(children: Sequence[Child]) -> None:
    """End those that still run, at the same time: in order if they can, as a card resets after its holder's death."""
    running = [child for child in children if child.process.poll() is None]
    for child in running:
        child.killed = True
        with contextlib.suppress(OSError):
            os.killpg(child.process.pid, signal.SIGTERM)
    deadline = time.monotonic() + _GRACE
    for child in running:
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.process.wait(max(0.0, deadline - time.monotonic()))
        kill(child.process)
    for child in children:
        child.look()


@contextlib.contextmanager
def bench(host: Host, options: Options) -> Iterator[Bench]:
    """A place for probes, which is gone afterwards."""
    user = user_named(options.user) if options.user else None
    if os.geteuid() == 0:
        with contextlib.suppress(OSError, ValueError):  # as a job's unit has it (LimitMEMLOCK)
            resource.setrlimit(resource.RLIMIT_MEMLOCK, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    with scratch(user) as folder:
        yield Bench(host, options, folder, user)
