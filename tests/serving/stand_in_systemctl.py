"""As much of systemctl as the module gaudi_serving uses, for units of `Type=notify` in a folder: they really run.

    STAND_IN_UNITS=FOLDER python tests/serving/stand_in_systemctl.py restart gaudi3-serving-1.service

A start waits for READY=1 or for the process's end, and a stop sends SIGTERM to the main process and waits. Nothing is
started again by itself: what `Restart=` does is systemd's.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import select
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

UNITS = Path(os.environ.get("STAND_IN_UNITS", "."))


class Unit:
    """One unit: its file, and what is known of its process."""

    def __init__(self, name: str) -> None:
        self.name, self.file, self.place = name, UNITS / name, UNITS / f"{name}.state"
        try:
            self.known: dict[str, Any] = json.loads(self.place.read_text())
        except FileNotFoundError:
            self.known = {"pid": 0, "enabled": False, "since": 0}

    def keep(self, **more: Any) -> None:
        """Remember something."""
        self.known |= more
        self.place.write_text(json.dumps(self.known))

    def commands(self, key: str) -> list[str]:
        """The commands of its file."""
        return re.findall(rf"^{key}=(.*)$", self.file.read_text(), re.MULTILINE)

    @property
    def pid(self) -> int:
        """Its main process, while that lives."""
        number = int(self.known["pid"])
        with contextlib.suppress(OSError):
            state = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0]
            return number if state != "Z" else 0
        return 0

    def start(self) -> int:
        """Whether it is ready, as an exit code."""
        if self.pid:
            return 0
        for command in self.commands("ExecStartPre"):
            if code := subprocess.run(shlex.split(command), check=False).returncode:
                return code
        # A short path: that of a socket has room for 107 bytes.
        where = Path(tempfile.mkdtemp(), "notify")
        with (UNITS / f"{self.name}.log").open("ab") as log, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as told:
            told.bind(str(where))
            process = subprocess.Popen(
                shlex.split(self.commands("ExecStart")[0]),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, "NOTIFY_SOCKET": str(where)},
                start_new_session=True,
            )
            self.keep(pid=process.pid, since=time.monotonic() * 1e6)
            while process.poll() is None:
                if select.select([told], [], [], 0.05)[0] and b"READY=1" in told.recv(4096):
                    return 0
        return 1

    def stop(self) -> int:
        """As `KillMode=mixed` begins."""
        if number := self.pid:
            os.kill(number, signal.SIGTERM)
            limit = time.monotonic() + 90
            while self.pid and time.monotonic() < limit:
                time.sleep(0.05)
            if self.pid:
                os.kill(number, signal.SIGKILL)
        self.keep(pid=0)
        return 0

    def reload(self) -> int:
        """The commands of its file."""
        for command in self.commands("ExecReload"):
            if code := subprocess.run(shlex.split(command.replace("$MAINPID", str(self.pid))), check=False).returncode:
                return code
        time.sleep(1)  # the new worker has to take the sockets over
        self.keep(since=time.monotonic() * 1e6)
        return 0

    def show(self) -> int:
        """As the module asks."""
        values = {
            "LoadState": "loaded" if self.file.exists() else "not-found",
            "ActiveState": "active" if self.pid else "inactive",
            "UnitFileState": "enabled" if self.known["enabled"] else "disabled",
            "NeedDaemonReload": "no",
            "ActiveEnterTimestampMonotonic": int(self.known["since"]),
            "StateChangeTimestampMonotonic": int(self.known["since"]),
        }
        print("\n".join(f"{key}={value}" for key, value in values.items()))
        return 0


def main(arguments: list[str]) -> int:
    """One verb."""
    with (UNITS / "calls").open("a") as log:
        log.write(" ".join(word for word in arguments if not word.startswith("--")) + "\n")
    verb, *names = [word for word in arguments if not word.startswith("--")]
    if not names:
        return 0
    unit = Unit(names[0])
    if verb in ("enable", "disable"):
        unit.keep(enabled=verb == "enable")
        return 0
    if verb == "restart":
        unit.stop()
        return unit.start()
    return int(getattr(unit, verb)())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
