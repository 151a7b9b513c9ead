"""Where things are, what time it is, and how files are written.

``GAUDI3_SIMULATOR_ROOT`` puts every path under a folder; under it, ``GAUDI3_SIMULATOR_NOW`` sets the clock
and ``GAUDI3_SIMULATOR_EUID`` the user, so that tests need neither root nor patience.
"""
# pathlib alone takes longer to import than hl-smi takes to run, so no module of this package uses it.

from __future__ import annotations

import os
import time

STATE = "/var/lib/gaudi3-simulator/state.json"
RUN = "/run/gaudi3-simulator"
RUNTIME = RUN + "/runtime.json"
SENSORS = RUN + "/sensors.json"
MANIFEST = RUN + "/manifest.json"
KERNEL_LOG = RUN + "/kernel.log"
KMSG = "/dev/kmsg"
LOCK = RUN + "/lock"
FOLLOWER = RUN + "/follower"
GAUDINET = "/etc/habanalabs/gaudinet.json"
PROC_MODULES = RUN + "/proc_modules"


def root() -> str:
    """The folder that stands for ``/``; empty on a node."""
    return os.environ.get("GAUDI3_SIMULATOR_ROOT", "")


def at(absolute: str) -> str:
    """The real place of ``absolute``."""
    return root() + absolute


def now() -> float:
    """Seconds since the epoch."""
    given = os.environ.get("GAUDI3_SIMULATOR_NOW") if root() else None
    return float(given) if given else time.time()


def user() -> int:
    """Number of the calling user."""
    return int(os.environ.get("GAUDI3_SIMULATOR_EUID", "0")) if root() else os.geteuid()


def is_root() -> bool:
    """Whether the caller may change the node."""
    return user() == 0


def kernel_release() -> str:
    """What ``uname -r`` prints."""
    return os.uname().release


def read_text(absolute: str) -> str | None:
    """The file's text, or nothing where it cannot be read."""
    try:
        with open(at(absolute), encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return None


def seconds(absolute: str, default: float) -> float:
    """The seconds in a file; without it ``default`` on a node, and none under another root."""
    text = read_text(absolute)
    if text is None:
        return 0.0 if root() else default
    try:
        return max(0.0, float(text))
    except ValueError:
        raise ValueError(f"{absolute} holds '{text.strip()}': write a number of seconds into it") from None


def write_atomically(absolute: str, text: str, mode: int = 0o644, lasting: bool = False) -> None:
    """Replace the file in one step: readers see the old text or the new one, after a power cut too if lasting."""
    target = at(absolute)
    os.makedirs(os.path.dirname(target), exist_ok=True)
    temporary = f"{target}.{os.getpid()}.new"
    with open(temporary, "w", encoding="utf-8") as file:
        file.write(text)
        if lasting:
            file.flush()
            os.fsync(file.fileno())
    os.chmod(temporary, mode)
    os.replace(temporary, target)
