"""A gate at which a simulated cloud stands still after a change that was counted: an instant that no clock decides.

A folder holds it. ``hold`` has ``action`` (``create:ibm_is_vpc``, or ``*`` for all changes) and ``count``, how many of
them are let through. When it was done, and before the answer, ``held`` appears; when ``hold`` is removed, all goes
on. ``actions`` lists what was done.
"""

from __future__ import annotations

import fcntl
import json
import time
from pathlib import Path


class Gate:
    """The folder, as several processes use it; without one, everything passes."""

    def __init__(self, folder: str | None) -> None:
        self._folder = Path(folder) if folder else None

    def wait(self) -> None:
        """Stand still as long as it is held."""
        while self._folder and (self._folder / "held").exists() and (self._folder / "hold").exists():
            time.sleep(0.02)

    def passed(self, action: str) -> None:
        """A change was done: count it, and stand still where it is the one."""
        if self._folder is None:
            return
        with (self._folder / "actions").open("a+") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.write(f"{action}\n")
            file.seek(0)
            done = file.read().split()
            hold = self._folder / "hold"
            if hold.exists() and not (self._folder / "held").exists():
                asked = json.loads(hold.read_text())
                count = len(done) if asked["action"] == "*" else done.count(asked["action"])
                if count >= asked["count"]:
                    (self._folder / "held").touch()
        self.wait()
