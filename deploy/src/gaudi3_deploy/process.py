"""Commands that outlive us: their output goes to a file which we follow, so that our end is not theirs.

Terraform that is killed while it creates a resource may not have written it down: nobody would ever destroy it. So it
runs in a session of its own and isn't touched when this process dies; the next command waits for its lock.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import FrameType

#: What Terraform writes, a local state among it, is for its user alone.
PRIVATE = 0o077


def run(
    command: Sequence[str],
    log: Path,
    environment: Mapping[str, str],
    on_line: Callable[[str], None],
    on_interrupt: Callable[[int], None],
    directory: Path | None = None,
) -> int:
    """Run a command, hand over its lines as they come, and return its exit code.

    Ctrl-C and SIGTERM are passed on as an interrupt, on which terraform finishes what it has begun and writes its
    state; `on_interrupt` is called with the number of requests so far.
    """
    log.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    times = 0
    process: subprocess.Popen[bytes] | None = None

    def pass_on(number: int, frame: FrameType | None) -> None:
        nonlocal times
        times += 1
        if process is not None:
            process.send_signal(signal.SIGINT)
        on_interrupt(times)

    before = {number: signal.signal(number, pass_on) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        with os.fdopen(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as output:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=directory,
                env=dict(environment),
                start_new_session=True,
                umask=PRIVATE,
            )
        if times:  # asked for while it was being started
            process.send_signal(signal.SIGINT)
        with log.open("r", encoding="utf-8", errors="replace") as file:
            rest = ""
            while True:
                ended = process.poll() is not None  # asked first: what it wrote before it ended is read after
                rest += file.read()
                *lines, rest = rest.split("\n")
                for line in lines:
                    on_line(line)
                if ended:
                    if rest:
                        on_line(rest)
                    return int(process.returncode)
                time.sleep(0.05)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
