"""Lets scheduled faults come and go: what they write to the kernel log, and what the kernel shows.

The tools ask for themselves whether a fault is there. The files under /sys and the kernel log need a writer at that
moment: one process on the node, started with the first scheduled fault and ended with the last.
"""

from __future__ import annotations

import fcntl
import os
import sys
import time

from . import fault_log, node, paths, schedule, store, sysfs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

INTERVAL_S = 0.5


def look(simulated: node.Node) -> bool:
    """Write what has come or gone since the last look; whether a scheduled fault is left. Called under the lock."""
    scheduled = [fault for fault in simulated.active_faults if schedule.is_scheduled(fault)]
    present = [_name(fault) for fault in simulated.present_faults if schedule.is_scheduled(fault)]
    before = simulated.runtime.get("present", [])
    if present != before:
        simulated.runtime["present"] = present
        for fault in scheduled:
            if _name(fault) in present and _name(fault) not in before:
                fault_log.write_one(simulated, fault)
        simulated.save()
        sysfs.apply(simulated)
    return bool(scheduled)


def start(simulated: node.Node) -> None:
    """Start the process where a scheduled fault needs it and none runs. Not on a node that is a folder."""
    if paths.root() or not any(schedule.is_scheduled(fault) for fault in simulated.active_faults):
        return
    import subprocess

    subprocess.Popen(
        [sys.executable or "/usr/bin/python3", "-IS", "/usr/local/sbin/gaudi3-simulator-node", "follow"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        cwd="/",
    )


def follow() -> None:
    """Look until no scheduled fault is left; at once where another process does."""
    file = os.open(paths.at(paths.FOLLOWER), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return
    while True:
        with store.Lock():
            if not look(node.Node.load()):
                os.close(file)  # within the lock: who sets a fault after this starts the next process
                return
        time.sleep(INTERVAL_S)


def _name(fault: dict[str, Any]) -> list[Any]:
    return [fault["kind"], fault.get("card"), fault.get("port"), fault.get("event")]
