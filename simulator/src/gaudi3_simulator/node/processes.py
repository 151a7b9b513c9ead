"""Which processes train on the node's cards: what a card's load follows.

A worker is a process started with ``LOCAL_RANK``; its rank is the module id of its card. Where another user's
environment cannot be read the worker is told by its name: the load of a card is no secret, but only root sees whose
process it is.
"""

from __future__ import annotations

import os

from . import paths

# Programs known to train; workers of one node start in the order of their ranks.
WORKER_NAMES = ("gaudi3-train",)


class Worker:
    """One process at work on one card."""

    __slots__ = ("module_id", "name", "pid", "started_at", "visible")

    def __init__(self, pid: int, name: str, started_at: float, module_id: int, visible: bool) -> None:
        self.pid = pid
        self.name = name
        self.started_at = started_at
        self.module_id = module_id
        self.visible = visible


def workers() -> dict[int, Worker]:
    """The worker of each busy card, by module id."""
    ranked: dict[int, tuple[int, int]] = {}
    unread: list[int] = []
    for name in os.listdir(paths.at("/proc")):
        if name.isdigit():
            rank = _local_rank(int(name))
            if rank is None:
                unread.append(int(name))
            elif rank >= 0:
                ranked[int(name)] = (rank, _parent(int(name)))
    found: dict[int, Worker] = {}
    for pid in sorted(ranked):
        rank, parent = ranked[pid]
        # A worker's own children inherit its environment: only the eldest counts.
        if parent not in ranked and rank not in found:
            found[rank] = Worker(pid, _name(pid), _started_at(pid), rank, visible=True)
    hidden = [pid for pid in sorted(unread) if _name(pid) in WORKER_NAMES]
    for pid in hidden:
        if _parent(pid) not in hidden:
            rank = next(free for free in range(len(found) + 1) if free not in found)
            found[rank] = Worker(pid, _name(pid), _started_at(pid), rank, visible=paths.is_root())
    return found


def holders() -> list[int]:
    """Processes that hold a card: workers, and whoever has a card's device open."""
    found = {worker.pid for worker in workers().values()}
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


def _local_rank(pid: int) -> int | None:
    """The process's LOCAL_RANK; -1 when it has none; nothing when its environment may not be read."""
    try:
        with open(paths.at(f"/proc/{pid}/environ"), "rb") as file:
            environment = b"\0" + file.read()
    except PermissionError:
        return None
    except OSError:
        return -1
    value = environment.partition(b"\0LOCAL_RANK=")[2].partition(b"\0")[0]
    return int(value) if value.isdigit() else -1


def _name(pid: int) -> str:
    return (paths.read_text(f"/proc/{pid}/comm") or "").strip()


def _stat(pid: int) -> list[str]:
    """Fields of the process's stat from the state on; the name before may hold spaces and brackets."""
    return (paths.read_text(f"/proc/{pid}/stat") or "").rpartition(")")[2].split()


def _parent(pid: int) -> int:
    fields = _stat(pid)
    return int(fields[1]) if len(fields) > 1 else 0


def _started_at(pid: int) -> float:
    fields = _stat(pid)
    if len(fields) < 20:
        return paths.now()
    return _kernel_started_at() + int(fields[19]) / os.sysconf("SC_CLK_TCK")


def _kernel_started_at() -> float:
    for line in (paths.read_text("/proc/stat") or "").splitlines():
        if line.startswith("btime "):
            return float(line.split()[1])
    return 0.0
