"""Runs pieces of Python in processes of their own that need not import torch: a process that has done so forks them.

    python forks.py    reads requests from stdin, one JSON object a line, and answers each with one

The parent has torch without the device. A child gets its environment first and then loads the device as the end of
`import torch` does, so that settings, rules and the choice of a card are its own.
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
import traceback
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

AUTOLOAD = "TORCH_DEVICE_BACKEND_AUTOLOAD"


class Child:
    """A forked process; its output goes to files."""

    def __init__(self, forks: Forks, pid: int, place: Path) -> None:
        self._forks, self.pid, self._place = forks, pid, place
        self._code: int | None = None

    def kill(self) -> None:
        """End it at once, as an out-of-memory killer would."""
        if self._code is None:
            os.kill(self.pid, signal.SIGKILL)
            self.wait()

    def end(self) -> None:
        """Let go a child that waits for `released()`, and wait for it."""
        self._place.with_suffix(".end").touch()
        self.wait()

    def wait(self, patience: float = 300) -> subprocess.CompletedProcess[str]:
        """Its exit status, and all that it wrote; after so many seconds it is killed."""
        if self._code is None:
            self._code = self._forks.ask({"wait": self.pid, "patience": patience})
        texts = [self._place.with_suffix(suffix).read_text() for suffix in (".out", ".err")]
        return subprocess.CompletedProcess([], self._code, *texts)

    def until(self, text: str) -> None:
        """Wait until it has printed this."""
        while text not in self._place.with_suffix(".out").read_text():
            if self._forks.ask({"alive": self.pid}) == 0:
                raise AssertionError(self.wait().stderr)
            time.sleep(0.01)


class Forks:
    """The process that forks, started once."""

    def __init__(self, environment: dict[str, str], folder: Path) -> None:
        self._folder, self._count = folder, 0
        command = [sys.executable, __file__]
        self._process = subprocess.Popen(
            command, env={**environment, AUTOLOAD: "0"}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def ask(self, request: dict[str, Any]) -> int:
        """What it answers."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return int(json.loads(self._process.stdout.readline()))

    def start(self, code: str, environment: dict[str, str]) -> Child:
        """Run this code with this environment."""
        self._count += 1
        place = self._folder / str(self._count)
        for suffix in (".out", ".err"):
            place.with_suffix(suffix).touch()
        pid = self.ask({"code": code, "environment": environment, "place": str(place)})
        return Child(self, pid, place)

    def close(self) -> None:
        """End it."""
        self._process.communicate(timeout=60)


def main() -> None:
    import torch  # without the device, by AUTOLOAD

    assert not hasattr(torch, "hpu"), "each child has to load the device itself"
    gc.freeze()  # or the first collection of a child copies all of torch's objects
    answers = os.fdopen(os.dup(1), "w")
    codes: dict[int, int] = {}
    for line in iter(sys.stdin.readline, ""):
        request = json.loads(line)
        if "alive" in request:
            pid, status = os.waitpid(request["alive"], os.WNOHANG)
            if pid:
                codes[pid] = os.waitstatus_to_exitcode(status)
            answer = int(pid == 0)
        elif "wait" in request:
            answer = codes.pop(request["wait"]) if request["wait"] in codes else ended(**request)
        else:
            answer = os.fork()
            if not answer:
                become(request)
                leave(outcome(request))
        answers.write(f"{answer}\n")
        answers.flush()


def ended(wait: int, patience: float) -> int:
    """The exit code of a child, which is killed where it takes too long."""
    watched = os.pidfd_open(wait)
    if not select.select([watched], [], [], patience)[0]:
        os.kill(wait, signal.SIGKILL)
    os.close(watched)
    return os.waitstatus_to_exitcode(os.waitpid(wait, 0)[1])


def become(request: dict[str, Any]) -> None:
    """The child: its input and output, its environment and its path."""
    for number, name, mode in (
        (0, os.devnull, os.O_RDONLY),
        (1, request["place"] + ".out", os.O_WRONLY | os.O_APPEND),
        (2, request["place"] + ".err", os.O_WRONLY | os.O_APPEND),
    ):
        file = os.open(name, mode)
        os.dup2(file, number)
        os.close(file)
    os.environ.clear()
    os.environ.update(request["environment"])
    path = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:] = [*path, *(entry for entry in sys.path if entry not in path)]


def outcome(request: dict[str, Any]) -> int:
    """Load the device and run the code; the exit code."""
    import torch

    try:
        if torch._is_device_backend_autoload_enabled():
            torch._import_device_backends()
        exec(request["code"], {"__name__": "__main__", "released": partial(released, request["place"])})
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def leave(code: int) -> NoReturn:
    """End as the interpreter does, but without taking its modules apart, which takes half a second with torch's."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    ctypes.PyDLL(None).exit(code)
    raise AssertionError("exit() returns")


def released(place: str) -> None:
    """Wait until `Child.end` is called."""
    while not Path(place).with_suffix(".end").exists():
        time.sleep(0.01)


if __name__ == "__main__":
    main()
