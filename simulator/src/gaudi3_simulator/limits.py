"""Limits of this machine's kernel that many nodes on it reach, raised as far as they need and put back by ``clean``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from .home import home, write_atomically

#: By the name under which the limit of before is kept: its file, and what a number of nodes needs.
LIMITS: dict[str, tuple[Path, Callable[[int], int]]] = {
    # A booted systemd takes about six instances of the limit of a user.
    "inotify": (Path("/proc/sys/fs/inotify/max_user_instances"), lambda nodes: 128 + 8 * nodes),
    # Every node of a job has an entry for every other, in one table for all networks of the machine. What finds no room
    # there reaches nobody: 32 nodes did not meet with the usual 1024.
    "neighbours": (Path("/proc/sys/net/ipv4/neigh/default/gc_thresh3"), lambda nodes: 512 + 2 * nodes**2),
}


def _kept(name: str) -> Path:
    return home() / f"{name}-before"


def raise_limits(nodes: int) -> None:
    """Let this many nodes run on this machine."""
    for name, (file, needed) in LIMITS.items():
        before = file.read_text()
        if int(before) < needed(nodes):
            if not _kept(name).exists():
                write_atomically(_kept(name), before)
            file.write_text(str(needed(nodes)))


def restore_limits() -> None:
    """Put back what was before the first cluster."""
    for name, (file, _needed) in LIMITS.items():
        if _kept(name).exists():
            file.write_text(_kept(name).read_text())
