"""Several processes, on any nodes that share a folder, prepare the parts of a source side by side.

Each takes a part that nobody works on, by a lock that the kernel (for NFS the server) takes back from a dead process.
What a part holds depends on the source and on the number of parts only, so that the result is the same, byte for byte,
whoever prepared which part.
"""

from __future__ import annotations

import fcntl
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from gaudi3_scale.data.part import Part, State
from gaudi3_scale.errors import ConfigError
from gaudi3_scale.files import lock_file, write_atomically

POLL_SECONDS = 0.2
SOURCE = ".source"


def prepare_parts(
    parts: list[Part], folder: Path, is_known: Callable[[], bool], log: Callable[[str], None], bar: bool
) -> list[State] | None:
    """Prepare parts until all are; their states, or None where another process has written the index meanwhile."""
    if not _agree(parts, folder) and not is_known():
        raise _refusal(folder)
    while True:
        worked = False
        for part in parts:
            with _claimed(folder, part) as mine:
                if mine and part.finished() is None and not is_known():
                    part.run(log, bar)
                    worked = True
        states = [part.finished() for part in parts]
        found = [state for state in states if state is not None]
        if len(found) == len(parts):
            return found
        if is_known():
            return None
        if not worked:
            time.sleep(POLL_SECONDS)


def _agree(parts: list[Part], folder: Path) -> bool:
    """Is the source here what the others in this folder work on? A source that changed since takes its place, unless
    somebody is at work.
    """
    file, wanted = folder / SOURCE, parts[0].fingerprint
    with ExitStack() as stack:
        lock = stack.enter_context(lock_file(folder / ".lock"))
        fcntl.flock(lock, fcntl.LOCK_EX)
        if file.is_file() and file.read_text() == wanted:
            return True
        for part in parts:
            if not stack.enter_context(_claimed(folder, part)):
                return False
        write_atomically(file, wanted)
        return True


def _refusal(folder: Path) -> ConfigError:
    return ConfigError(
        f"Another process prepares {folder} from a data.source whose files have other names, sizes or times of change "
        "than here: give all nodes the same files (rsync -t keeps the times), or set data.parts to 1 with a "
        "data.directory of each node's own."
    )


@contextmanager
def _claimed(folder: Path, part: Part) -> Iterator[bool]:
    """Hold the lock of a part while the block runs; False if another process holds it."""
    with lock_file(folder / f".lock-{part.number or 0:03d}") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True
