"""hl-smi is a program at work: it holds devices and takes its time."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from simulated_machine import Machine

SECONDS = "/var/lib/gaudi3-simulator/hl-smi-seconds"
PROGRAM = "import sys; from gaudi3_simulator.node.hl_smi import main; sys.exit(main(sys.argv[1:], '1.23.0-695'))"
SOURCE = str(Path(__file__).parents[2] / "src")


def start(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-S", "-c", PROGRAM, *arguments],
        stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": SOURCE},
    )  # fmt: skip


def held(machine: Machine, pid: int) -> list[str]:
    """Device files that a process has open."""
    folder = Path(f"/proc/{pid}/fd")
    found = []
    for link in folder.iterdir():
        try:
            target = str(link.readlink())
        except OSError:
            continue
        if target.startswith(str(machine.path("/dev/accel/"))):
            found.append(Path(target).name)
    return sorted(found)


@pytest.mark.parametrize("arguments", [(), ("-Q", "index", "-f", "csv"), ("-L",)])
def test_control_devices_are_held_while_it_runs(machine: Machine, arguments: tuple[str, ...]) -> None:
    machine.write(SECONDS, "5\n")
    running = start(*arguments)
    try:
        seen: list[str] = []
        for _ in range(100):
            seen = held(machine, running.pid)
            if len(seen) == 8:
                break
            time.sleep(0.05)
        assert seen == [f"accel_controlD{number}" for number in range(8)]
        for name in ("habanalabs_ib", "habanalabs_en", "habanalabs_cn"):
            machine.ok("modprobe", "-r", name)
        machine.path(f"/proc/{running.pid}/fd").mkdir(parents=True)
        machine.path(f"/proc/{running.pid}/fd/3").symlink_to(machine.path("/dev/accel/accel_controlD0"))
        assert "is in use" in machine.run("modprobe", "-r", "habanalabs").err
    finally:
        running.kill()
        running.communicate()


@pytest.mark.parametrize("seconds", [0.0, 4.0])
def test_a_call_takes_the_time_that_is_set(machine: Machine, seconds: float) -> None:
    machine.write(SECONDS, f"{seconds}\n")
    begin = time.monotonic()
    machine.ok("hl-smi", "-Q", "index", "-f", "csv")
    taken = time.monotonic() - begin
    assert seconds <= taken < seconds + 3.5
    for arguments in (("-h",), ("-v",)):
        begin = time.monotonic()
        machine.ok("hl-smi", *arguments)
        assert time.monotonic() - begin < 3.5


def test_a_wrong_duration_is_told(machine: Machine) -> None:
    machine.write(SECONDS, "soon\n")
    assert machine.run("hl-smi").err == (f"hl-smi: {SECONDS} holds 'soon': write a number of seconds into it\n")


def test_a_device_that_may_not_be_opened_ends_it(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    def closed(path: str, *more: int) -> int:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr("gaudi3_simulator.node.hl_smi.os.open", closed)
        result = machine.run("hl-smi")
    assert (result.code, result.out) == (1, "")
    assert result.err == "hl-smi: /dev/accel/accel_controlD0 cannot be opened: Permission denied\n"
