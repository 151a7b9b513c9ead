"""A shell, or Python, that runs the blocks of one page after another and keeps its state between them."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

_BASH = """
set -e
while IFS= read -r block; do
    . "$block" >"$block.out" 2>&1 </dev/null
    echo 0 >"$block.done"
done
"""
_PYTHON = """
import os, sys
def main():
    names = sys.modules["__main__"].__dict__
    for line in sys.stdin:
        block = line.rstrip("\\n")
        out = os.open(block + ".out", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(out, 1), os.dup2(out, 2), os.close(out)
        with open(block, encoding="utf-8") as file:
            exec(compile(file.read(), block, "exec"), names)
        sys.stdout.flush(), sys.stderr.flush()
        open(block + ".done", "w").close()
main()
"""
PROGRAMS = {"sh": ("bash", "--noprofile", "--norc", "-c", _BASH), "python": ("python", "-c", _PYTHON)}


class Timeout(Exception):
    """A block had not ended in its time."""


class Session:
    """The process of one language in a folder; it ends at the first block that fails, as a reader would stop."""

    def __init__(self, language: str, folder: Path, notes: Path, environment: Mapping[str, str]) -> None:
        """``notes`` is where blocks and what they print are kept."""
        self.notes = notes
        self.language = language
        self.count = 0
        notes.mkdir(parents=True, exist_ok=True)
        self.errors = (notes / f"{language}.errors").open("w+")
        self.process = subprocess.Popen(
            PROGRAMS[language],
            cwd=folder,
            env=dict(environment),
            stdin=subprocess.PIPE,
            stdout=self.errors,
            stderr=self.errors,
            text=True,
            start_new_session=True,
        )

    def run(self, code: str, seconds: float) -> tuple[bool, str]:
        """Whether a block held, and what it printed up to its end or its failure."""
        self.count += 1
        block = self.notes / f"{self.count:03}.{self.language}"
        block.write_text(code, encoding="utf-8")
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(f"{block}\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            return False, "an earlier block has ended the session"
        deadline = time.monotonic() + seconds
        out, done = Path(f"{block}.out"), Path(f"{block}.done")
        while not done.exists() and self.process.poll() is None:
            if time.monotonic() > deadline:
                raise Timeout(f"not ended after {seconds:.0f} s; it printed:\n{_read(out)}")
            time.sleep(0.02)
        printed = _read(out)
        if not done.exists():
            self.errors.flush()
            printed += _read(Path(self.errors.name))
        return done.exists(), printed

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the process and what it has left in the background."""
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        for sign in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(self.process.pid, sign)
            except ProcessLookupError:
                break
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                continue
            time.sleep(0.2)
        self.process.wait()
        self.errors.close()


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
