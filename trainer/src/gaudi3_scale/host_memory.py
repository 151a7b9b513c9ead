"""What a host can still give of its memory, a container's limit included."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

RESERVE = 16
"""One part in this many of the host's memory stays free: its kernel ends processes before the last page is gone."""
MOST_RESERVE = 2**30
"""Bytes; no host is left more."""


def room(root: Path = Path("/")) -> int | None:
    """Bytes that this process may take beyond what it has; None where the system does not say, as on macOS.

    The least of what the kernel calls available and of what the process's control groups leave it, less a reserve.
    """
    try:
        lines = (root / "proc" / "meminfo").read_text(encoding="utf-8").splitlines()
        values = {name: int(rest.split()[0]) << 10 for name, _, rest in (line.partition(":") for line in lines)}
        whole, least = values["MemTotal"], values["MemAvailable"]
    except (OSError, ValueError, KeyError, IndexError):
        return None
    for limit, left in _groups(root):
        whole, least = min(whole, limit), min(least, left)
    return max(0, least - min(MOST_RESERVE, whole // RESERVE))


def _groups(root: Path) -> Iterator[tuple[int, int]]:
    """Each limit of each control group of this process, up to the one seen last, and what is left of it."""
    try:
        lines = (root / "proc" / "self" / "cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return
    for _, controllers, path in (line.split(":", 2) for line in lines if line.count(":") >= 2):
        if controllers and "memory" not in controllers.split(","):
            continue
        form = _OLD if controllers else _UNIFIED
        folder, group = root / form.folder, Path(path.lstrip("/"))
        for each in (folder / group, *(folder / parent for parent in group.parents)):
            yield from _left(each, form)


@dataclass(frozen=True)
class _Form:
    """Where a version of control groups says what."""

    folder: str
    limits: tuple[str, ...]
    usage: str
    cache: tuple[str, ...]
    """Of memory.stat: pages of files, which count as used and go when memory is wanted."""


_UNIFIED = _Form("sys/fs/cgroup", ("memory.max", "memory.high"), "memory.current", ("inactive_file", "active_file"))
"""Beyond memory.high a process is not ended, but hardly gets on."""
_OLD = _Form(
    "sys/fs/cgroup/memory",
    ("memory.limit_in_bytes",),
    "memory.usage_in_bytes",
    ("total_inactive_file", "total_active_file"),
)


def _left(folder: Path, form: _Form) -> Iterator[tuple[int, int]]:
    used = _number(folder / form.usage)
    for limit in form.limits if used is not None else ():
        if (most := _number(folder / limit)) is not None:
            yield most, max(0, most - max(0, (used or 0) - _cache(folder, form)))


def _number(path: Path) -> int | None:
    """None where there is no such group here, or no limit ("max")."""
    try:
        return int(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def _cache(folder: Path, form: _Form) -> int:
    """Bytes; 0 where the group does not say, as then all that it uses has to be taken for what stays."""
    try:
        lines = (folder / "memory.stat").read_text(encoding="utf-8").splitlines()
        return sum(int(value) for name, value in (line.split() for line in lines) if name in form.cache)
    except (OSError, ValueError):
        return 0
