"""What a host can still give of its memory, a container's limit included."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

RESERVE = 16
"""One part in so many of the host's memory is left alone: its kernel ends processes before the last page is gone."""
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
    """Limit and what is left of it, of each control group of this process that has a limit, up to the one seen last."""
    try:
        lines = (root / "proc" / "self" / "cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return
    for _, controllers, path in (line.split(":", 2) for line in lines if line.count(":") >= 2):
        if not controllers:
            folder, names = root / "sys/fs/cgroup", ("memory.max", "memory.current", "inactive_file")
        elif "memory" in controllers.split(","):
            folder = root / "sys/fs/cgroup/memory"
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
        else:
            continue
        group = Path(path.lstrip("/"))
        for each in (folder / group, *(folder / parent for parent in group.parents)):
            if (found := _group(each, *names)) is not None:
                yield found


def _group(folder: Path, limit: str, usage: str, cache: str) -> tuple[int, int] | None:
    """Page cache counts as used, and goes when memory is wanted."""
    try:
        most = int((folder / limit).read_text(encoding="utf-8"))
        used = int((folder / usage).read_text(encoding="utf-8"))
        lines = (folder / "memory.stat").read_text(encoding="utf-8").splitlines()
        return most, max(0, most - used + sum(int(line.split()[1]) for line in lines if line.startswith(f"{cache} ")))
    except (OSError, ValueError, IndexError):  # no such group here, or "max"
        return None
