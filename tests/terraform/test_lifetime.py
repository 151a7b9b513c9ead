"""How a machine ends by itself, run against made-up uptimes and processes: after its time, and when nothing uses it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from .conftest import TREE

SCRIPT = TREE / "modules/cluster/templates/lifetime.sh"


class Machine:
    """A machine that was just started."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.uptime = 0
        for name, body in {"systemctl": f"echo $* >> {folder}/called", "loginctl": f"cat {folder}/logins"}.items():
            path = folder / "bin" / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(f"#!/bin/bash\n{body}\n")
            path.chmod(0o755)
        (folder / "logins").touch()
        self.process = folder / "proc/4711/fd"
        self.process.mkdir(parents=True)

    def look(self, minutes: int, *limits: int) -> str:
        """So many minutes later the timer comes; what the script says."""
        self.uptime += 60 * minutes
        (self.folder / "proc/uptime").write_text(f"{self.uptime}.25 1000.00\n")
        folders = {f"GAUDI3_{name}": str(self.folder / name.lower()) for name in ("PROC", "KEPT", "BOOT")}
        result = subprocess.run(
            ["bash", str(SCRIPT), *map(str, limits)],
            env={"PATH": f"{self.folder}/bin:{os.environ['PATH']}", **folders},
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
        assert (result.returncode, result.stderr) == (0, "")
        return result.stdout

    def reboot(self) -> None:
        """Start anew: what is in /run is gone."""
        self.uptime = 0
        for path in (self.folder / "boot").iterdir():
            path.unlink()

    def is_off(self) -> bool:
        """Whether it was powered off, which sends jobs SIGTERM and waits for them."""
        called = self.folder / "called"
        return called.exists() and called.read_text() == "poweroff\n"


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """A machine that was just started."""
    return Machine(tmp_path)


def test_a_machine_ends_after_its_time_reboots_included(machine: Machine) -> None:
    assert machine.look(59, 7200, 0) == ""
    machine.reboot()
    assert machine.look(60, 7200, 0) == ""
    assert not machine.is_off()
    assert machine.look(1, 7200, 0) == ("This machine powers itself off, as it has run for its 7200 seconds (ttl).\n")
    assert machine.is_off()


def test_a_node_in_use_does_not_end_and_an_idle_one_does(machine: Machine) -> None:
    card = machine.process / "9"
    card.symlink_to("/dev/accel/accel3")
    assert machine.look(90, 0, 3600) == ""
    card.unlink()
    # The exporter reads cards through their control devices; it is no use of them.
    card.symlink_to("/dev/accel/accel_controlD3")
    assert machine.look(30, 0, 3600) == ""
    (machine.folder / "logins").write_text("7 1000 ubuntu\n")
    assert machine.look(45, 0, 3600) == ""
    (machine.folder / "logins").write_text("")
    assert machine.look(59, 0, 3600) == ""
    assert not machine.is_off()
    assert machine.look(1, 0, 3600).endswith("as nothing has used it for 3600 seconds (idle_shutdown).\n")
    assert machine.is_off()


def test_without_limits_nothing_ends(machine: Machine) -> None:
    assert machine.look(100000, 0, 0) == ""
    assert not machine.is_off()
