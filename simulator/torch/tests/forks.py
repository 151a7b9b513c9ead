"""Runs pieces of Python in processes of their own that need not import torch: a process that has done so forks them.

    python forks.py    reads requests from stdin, one JSON object a line, and answers each with one

The parent never uses a card. A child reads its environment anew, as the import of the device would.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import traceback
from pathlib import Path
from typing import Any


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

    def wait(self) -> subprocess.CompletedProcess[str]:
        """Its exit status, and all that it wrote."""
        if self._code is None:
            self._code = self._forks.ask({"wait": self.pid})
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
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
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
    import torch  # noqa: F401  # which loads the device

    from gaudi3_hpu_simulator import load

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
            pid = request["wait"]
            answer = codes.pop(pid) if pid in codes else os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        else:
            answer = os.fork()
            if not answer:
                run(request, load)
                return
        answers.write(f"{answer}\n")
        answers.flush()


def run(request: dict[str, Any], load: Any) -> None:
    """The child: its output, its environment, its code."""
    place = Path(request["place"])
    for number, suffix in ((1, ".out"), (2, ".err")):
        file = os.open(place.with_suffix(suffix), os.O_WRONLY)
        os.dup2(file, number)
        os.close(file)
    os.environ.clear()
    os.environ.update(request["environment"])

    def released() -> None:
        while not place.with_suffix(".end").exists():
            time.sleep(0.01)

    try:
        load.extension.cache_clear()
        load.extension()
        exec(request["code"], {"__name__": "__main__", "released": released})
    except BaseException:
        traceback.print_exc()
        sys.stdout.flush()
        sys.exit(1)


if __name__ == "__main__":
    main()
