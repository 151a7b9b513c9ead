"""Where the threads of a process are, without its help: faulthandler writes it from a signal handler in C.

It needs no interpreter, so that a process whose interpreter is blocked answers, too. One that is stopped does not, and
is not waited for.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import re
import signal
import time
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

SIGNAL = signal.SIGRTMIN + 4
"""That a launcher sends for it. No program is known to use it; a process that does not expect it would end."""
WAIT = 1.0
"""Seconds that all stacks of a node may take."""
LIMIT = 64 * 1024
"""Bytes of one process's stacks that are kept."""
_files: list[BinaryIO] = []


def offer(path: Path) -> bool:
    """Have this process write its stacks there when it is asked; False where it cannot."""
    try:
        file = path.open("wb")
        faulthandler.register(SIGNAL, file=file, all_threads=True, chain=False)
    except (OSError, ValueError, RuntimeError, AttributeError):
        return False
    _files.append(file)  # open for as long as the process lives
    return True


def ask(processes: Mapping[int, Path]) -> dict[int, str]:
    """The stacks of these processes, each by the number of the process; nothing of one that does not answer."""
    asked = {}
    for process, path in processes.items():
        with contextlib.suppress(OSError):
            os.kill(process, SIGNAL)
            asked[process] = path
    sizes: dict[int, int] = {}
    deadline = time.monotonic() + WAIT
    while time.monotonic() < deadline:
        time.sleep(0.1)
        now = {process: path.stat().st_size for process, path in asked.items()}
        if all(now.values()) and now == sizes:
            break
        sizes = now
    return {process: text for process, path in asked.items() if (text := _read(path))}


def _read(path: Path) -> str:
    with path.open("rb") as file:
        return file.read(LIMIT).decode(errors="replace")


def grouped(stacks: Mapping[int, str]) -> str:
    """The stacks by rank, each that several ranks have in common once."""
    by: dict[str, list[int]] = {}
    for rank, text in sorted(stacks.items()):
        by.setdefault(_comparable(text), []).append(rank)
    parts = [
        f"{'rank' if len(ranks) == 1 else 'ranks'} {', '.join(map(str, ranks))}\n{text}\n" for text, ranks in by.items()
    ]
    return "\n".join(parts)


def _comparable(text: str) -> str:
    """Without what differs between processes that stand at the same place."""
    return re.sub(r"0x[0-9a-f]+", "0x", text).strip()
