"""What the kernel knows of a process on a card, and which processes keep the driver from being unloaded."""

from __future__ import annotations

import os

from . import cards, paths

# Fields of /proc/PID/stat after the name.
_USER_TICKS, _SYSTEM_TICKS, _STARTED_TICKS = 11, 12, 19


def holders() -> list[int]:
    """Processes that hold a card, or have one of its device files open, as hl-smi does while it runs."""
    found = {held.pid for held in cards.holders().values()}
    devices = paths.at("/dev/accel/")
    for name in os.listdir(paths.at("/proc")):
        if not name.isdigit():
            continue
        folder = paths.at(f"/proc/{name}/fd")
        try:
            targets = [os.readlink(f"{folder}/{number}") for number in os.listdir(folder)]
        except OSError:
            continue
        if any(target.startswith(devices) for target in targets):
            found.add(int(name))
    return sorted(found)


def name(pid: int) -> str:
    """The process's name, as the kernel has it."""
    return (paths.read_text(f"/proc/{pid}/comm") or "").strip()


def is_shown(pid: int) -> bool:
    """Whether the caller sees whose process it is: root sees everybody's, others their own."""
    if paths.is_root():
        return True
    try:
        return os.stat(paths.at(f"/proc/{pid}")).st_uid == paths.user()
    except OSError:
        return False


def times(pid: int) -> tuple[float, float]:
    """When the process started, and the seconds for which it computed."""
    fields = (paths.read_text(f"/proc/{pid}/stat") or "").rpartition(")")[2].split()
    if len(fields) <= _STARTED_TICKS:
        return paths.now(), 0.0
    second = os.sysconf("SC_CLK_TCK")
    computed = (int(fields[_USER_TICKS]) + int(fields[_SYSTEM_TICKS])) / second
    return _kernel_started_at() + int(fields[_STARTED_TICKS]) / second, computed


def _kernel_started_at() -> float:
    for line in (paths.read_text("/proc/stat") or "").splitlines():
        if line.startswith("btime "):
            return float(line.split()[1])
    return 0.0
