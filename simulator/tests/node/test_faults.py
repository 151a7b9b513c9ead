"""Each fault is seen where it is looked for, and is gone when it is cleared or remedied."""

from __future__ import annotations

import fcntl
import json
import os
import re
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from simulated_machine import Machine

from gaudi3_simulator.node import faults


def seen(machine: Machine) -> dict[str, object]:
    """What a health check looks at, of the whole node."""
    fields = (
        "temperature.aip,pcie.link.width.current,memory.used,ecc.errors.uncorrected.volatile.total,driver_version,"
        "ecc.errors.corrected.volatile.total"
    )
    smi = machine.run("hl-smi", "-Q", fields, "-f", "csv,noheader,nounits")
    status = [machine.read(f"/sys/class/accel/{name}/device/status") for name in machine.names("/sys/class/accel")]
    ports = [machine.run("manage_network_ifs.sh", operation).out for operation in ("--status", "--check-pfc")]
    mtus = [path.read_text() for path in sorted(machine.path("/sys/class/net").glob("*/mtu"))]
    gaudinet = machine.path(GAUDINET).read_text() if machine.path(GAUDINET).exists() else None
    log = machine.run("hl-smi", "-L").out
    bus_id = machine.state()["cards"][0]["bus_id"]
    links = [machine.run("hl-smi", "-n", view, "-i", bus_id, "-P", "0,4").out for view in ("link", "stats")]
    folders = ("/sys/bus/pci/devices", "/dev/infiniband", "/run/gaudi3-simulator")
    names = [machine.names(folder) for folder in folders]
    return {"smi": smi, "log": log, "status": status, "ports": ports, "links": links, "names": names} | {
        "mtus": mtus,
        "gaudinet": gaudinet,
    }


# Seen in other ways, by tests of their own.
UNSEEN = ("hl-smi-hang", "module-rejected", "bad-pagetable", "kernel-event", "slow-card", "slow-link", "qual-failed")
GAUDINET = "/etc/habanalabs/gaudinet.json"


def network_up(machine: Machine) -> None:
    machine.ok("manage_network_ifs.sh", "--up")
    machine.ok("manage_network_ifs.sh", "--set-pfc")


def rows(machine: Machine, field: str) -> list[str]:
    return [cells[0] for cells in machine.csv(field)]


@pytest.mark.parametrize("kind", [kind for kind in faults.REGISTRY if kind not in UNSEEN])
def test_every_fault_shows_and_clearing_it_heals(machine: Machine, kind: str) -> None:
    network_up(machine)
    healthy = seen(machine)
    machine.ok("node", "fault", kind)
    assert seen(machine) != healthy
    machine.ok("node", "fault", kind, "--clear")
    if kind in ("driver-not-loaded", "no-firmware", *faults.MODULE_FILES):
        network_up(machine)  # a probe leaves the ports down
    assert seen(machine) == healthy


def test_faults_survive_a_reboot(machine: Machine) -> None:
    machine.ok("node", "fault", "temperature-zero", "--card", "4")
    machine.reboot()
    assert rows(machine, "temperature.aip").index("0") == 4


def test_driver_not_loaded_lasts_until_it_is_loaded(machine: Machine) -> None:
    machine.ok("node", "fault", "driver-not-loaded")
    assert machine.run("hl-smi").code == 1
    assert machine.names("/dev/accel") == []
    machine.reboot()
    assert machine.run("hl-smi").code == 1
    machine.load()
    machine.ok("hl-smi")
    machine.reboot()
    machine.ok("hl-smi")


def test_card_in_reset_keeps_its_row(machine: Machine) -> None:
    machine.ok("node", "fault", "card-in-reset", "--card", "6")
    assert machine.read("/sys/class/accel/accel6/device/status") == "In reset"
    cells = machine.csv("index,name,memory.total,memory.used,utilization.aip")[6]
    assert cells == ["6", "HL-325L", "672", "672", "0"]
    lines = machine.ok("hl-smi").lines
    assert {len(line) for line in lines} == {79}
    assert "Module status                   : In reset" in machine.ok("hl-smi", "-L").out
    bus_id = machine.csv("bus_id")[6][0]
    machine.ok("hl-smi", "-r", "-i", bus_id)
    assert machine.read("/sys/class/accel/accel6/device/status") == "Operational"
    assert machine.read("/sys/class/accel/accel6/device/hard_reset_cnt") == "1"


def test_card_missing_leaves_the_others_as_they_were(machine: Machine) -> None:
    before = machine.csv("index,bus_id")
    machine.ok("node", "fault", "card-missing", "--card", "2")
    assert machine.csv("index,bus_id") == before[:2] + before[3:]
    assert len(machine.lspci("-d", "1da3:").splitlines()) == 7
    assert "accel2" not in machine.names("/dev/accel")
    assert before[2][1] not in machine.names("/sys/bus/pci/devices")


def test_narrow_link_is_seen_in_all_three_places(machine: Machine) -> None:
    machine.ok("node", "fault", "pcie-width", "--card", "1")
    assert rows(machine, "pcie.link.width.current") == ["x16", "x8"] + ["x16"] * 6
    bus_id = machine.csv("bus_id")[1][0]
    assert machine.read(f"/sys/bus/pci/devices/{bus_id}/current_link_width") == "8"
    assert re.search(r"LnkSta:\s+Speed 32GT/s[^,]*, Width x8 \(downgraded\)", machine.lspci("-s", bus_id, "-vv"))


def test_uncorrected_error_is_counted_everywhere(machine: Machine) -> None:
    machine.ok("node", "fault", "ecc-uncorrected", "--card", "3")
    for field in ("ecc.errors.uncorrected.volatile.total", "ecc.errors.uncorrected.aggregate.total"):
        assert rows(machine, field) == ["0", "0", "0", "1", "0", "0", "0", "0"]
    assert machine.ok("hl-smi").lines[17].endswith("|                   1  |")


def test_acquired_card_shows_its_holder_and_blocks_the_unload(machine: Machine) -> None:
    machine.ok("node", "fault", "device-acquired", "--card", "0")
    assert rows(machine, "memory.used")[:2] == ["4768", "672"]
    pid = leftover(machine, 0)
    machine.write(f"/proc/{pid}/comm", Path(f"/proc/{pid}/comm").read_text())
    (line,) = [line for line in machine.ok("hl-smi").lines if f" {pid} " in line]
    assert re.fullmatch(rf"\|   0 +{pid} +C +python\S* +4096MiB    \|", line)
    for name in ("ib", "en", "cn"):
        machine.ok("modprobe", "-r", f"habanalabs_{name}")
    assert machine.run("modprobe", "-r", "habanalabs").err == "modprobe: FATAL: Module habanalabs is in use.\n"


def leftover(machine: Machine, card: int) -> int:
    """The process that holds a card's file, 0 where none does."""
    with machine.path(f"/run/gaudi3-simulator/cards/accel{card}").open("rb") as file:
        answer = fcntl.fcntl(file, fcntl.F_GETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 0, 0))
    kind, *_, pid = struct.unpack("hhqqi4x", answer)
    return 0 if kind == fcntl.F_UNLCK else int(pid)


@pytest.mark.parametrize("card", [0, 5])
def test_a_leftover_process_holds_the_card_until_it_is_killed(machine: Machine, card: int) -> None:
    machine.ok("node", "fault", "device-acquired", "--card", str(card))
    pid = leftover(machine, card)
    assert pid
    opened = {descriptor.resolve() for descriptor in Path(f"/proc/{pid}/fd").iterdir()}
    assert machine.path(f"/dev/accel/accel{card}").resolve() in opened
    content = struct.unpack("<8Q", machine.path(f"/run/gaudi3-simulator/cards/accel{card}").read_bytes())
    assert content[:4] == (1, pid, 4096 << 20, 4096 << 20)
    for name in ("habanalabs_ib", "habanalabs_en", "habanalabs_cn"):
        machine.ok("modprobe", "-r", name)
    assert machine.run("modprobe", "-r", "habanalabs").code == 1
    assert machine.read("/sys/module/habanalabs/refcnt") == "1"
    os.kill(pid, signal.SIGKILL)
    _wait(lambda: not leftover(machine, card))
    assert json.loads(machine.ok("node", "status").out)["faults"] == []
    machine.ok("modprobe", "-r", "habanalabs")


def test_clearing_the_fault_ends_the_leftover_process(machine: Machine) -> None:
    for card in ("1", "6"):
        machine.ok("node", "fault", "device-acquired", "--card", card)
        machine.ok("node", "fault", "device-acquired", "--card", card)
    pids = [leftover(machine, card) for card in (1, 6)]
    assert len({*pids, 0}) == 3
    machine.ok("node", "fault", "device-acquired", "--card", "1", "--clear")
    assert [leftover(machine, card) for card in (1, 6)] == [0, pids[1]]
    machine.ok("node", "fault", "--clear-all")
    assert leftover(machine, 6) == 0
    for card in (1, 6):
        content = machine.path(f"/run/gaudi3-simulator/cards/accel{card}").read_bytes()
        assert struct.unpack("<8Q", content) == (1, 0, 0, 0, 0, 0, 0, 0), "as after an orderly end"


def test_no_process_is_left_over_from_before_a_reboot(machine: Machine) -> None:
    machine.ok("node", "fault", "device-acquired", "--card", "2")
    pid = leftover(machine, 2)
    assert pid
    os.kill(pid, signal.SIGKILL)  # what a reboot does to every process
    machine.reboot()
    assert json.loads(machine.ok("node", "status").out)["faults"] == []
    machine.ok("node", "fault", "device-acquired", "--card", "2")


def test_a_card_that_cannot_be_held_is_told(bare: Callable[..., Machine]) -> None:
    machine = bare("gaudi-1", 2)
    result = machine.run("node", "fault", "device-acquired", "--card", "1")
    assert result.err == "gaudi3-simulator-node: card 1 has no device file: load the driver first\n"
    machine.install()
    machine.load()
    with machine.path("/run/gaudi3-simulator/cards/accel1").open("r+b") as file:
        fcntl.lockf(file, fcntl.LOCK_EX)
        result = machine.run("node", "fault", "device-acquired", "--card", "1")
    assert result.err == f"gaudi3-simulator-node: card 1 is held by process {os.getpid()}: end that first\n"
    assert json.loads(machine.ok("node", "status").out)["faults"] == []


def _wait(for_what: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not for_what():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_version_skew_ends_with_a_reload(machine: Machine) -> None:
    machine.ok("node", "fault", "version-skew")
    assert set(rows(machine, "driver_version")) == {machine.read("/sys/module/habanalabs/version")}
    assert rows(machine, "driver_version")[0].startswith("1.22.2-")
    for name in ("habanalabs_ib", "habanalabs_en", "habanalabs_cn", "habanalabs"):
        machine.ok("modprobe", "-r", name)
    machine.load()
    assert set(rows(machine, "driver_version")) == {"1.23.0-2eae87a"}


def test_cards_that_come_up_anew_have_their_ports_down(machine: Machine) -> None:
    machine.ok("manage_network_ifs.sh", "--up")
    machine.ok("node", "fault", "no-firmware")
    assert machine.run("hl-smi").code == 1
    machine.ok("node", "fault", "no-firmware", "--clear")
    assert machine.ok("manage_network_ifs.sh", "--status").out.count("3 ports down (4, 13, 21)") == 8


def test_pulled_cable_stays_down(machine: Machine) -> None:
    machine.ok("node", "fault", "port-down", "--card", "5", "--port", "13")
    machine.ok("manage_network_ifs.sh", "--up")
    assert machine.ok("manage_network_ifs.sh", "--status").lines.count("1 ports down (13)") == 1


def test_rejected_modules_do_not_load(machine: Machine) -> None:
    machine.ok("node", "fault", "driver-not-loaded")
    machine.ok("node", "fault", "module-rejected")
    result = machine.run("modprobe", "habanalabs")
    assert (result.code, result.err) == (
        1,
        "modprobe: ERROR: could not insert 'habanalabs_compat': Key was rejected by service\n",
    )
    machine.ok("node", "fault", "module-rejected", "--clear")
    machine.ok("modprobe", "habanalabs")


def test_garbage_is_no_table_and_no_csv(machine: Machine) -> None:
    machine.ok("node", "fault", "hl-smi-garbage")
    for arguments in ((), ("-Q", "index,name", "-f", "csv,noheader"), ("-v",)):
        result = machine.ok("hl-smi", *arguments)
        assert "HL-325L" not in result.out
        assert "\x00" in result.out


def test_hang_never_returns(machine: Machine) -> None:
    machine.ok("node", "fault", "hl-smi-hang")
    program = "from gaudi3_simulator.node.hl_smi import main; main(['-v'], '1.23.0-695')"
    with pytest.raises(subprocess.TimeoutExpired):
        subprocess.run([sys.executable, "-c", program], timeout=1.5, check=False)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("melted",), "melted is no fault of this simulator: choose one of driver-not-loaded,"),
        (("card-in-reset", "--card", "8"), "card 8 does not exist: this node has cards 0 to 7"),
        (("hl-smi-garbage", "--card", "0"), "hl-smi-garbage concerns the whole node: leave out --card and --port"),
        (("card-missing", "--port", "4"), "card-missing concerns a whole card: leave out --port"),
        (("port-down", "--port", "24"), "port 24 does not exist: a card has ports 0 to 23"),
        (("pcie-width", "--count", "2"), "2 is no count of pcie-width: --count is 1 or more, of ecc-uncorrected,"),
        (("ecc-corrected", "--count", "0"), "0 is no count of ecc-corrected: --count is 1 or more, of"),
        ((), "no fault named: give one of driver-not-loaded,"),
    ],
)
def test_wrong_faults_are_refused_in_a_sentence(machine: Machine, arguments: tuple[str, ...], message: str) -> None:
    result = machine.run("node", "fault", *arguments)
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith(f"gaudi3-simulator-node: {message}")


def test_list_and_clear_all(machine: Machine) -> None:
    listed = machine.ok("node", "fault", "--list").lines
    assert [line.split()[0] for line in listed] == list(faults.REGISTRY)
    healthy = seen(machine)
    for kind in ("temperature-zero", "ecc-uncorrected", "pcie-width"):
        machine.ok("node", "fault", kind)
    machine.ok("node", "fault", "--clear-all")
    assert seen(machine) == healthy
