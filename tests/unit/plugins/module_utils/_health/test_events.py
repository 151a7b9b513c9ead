"""The dictionary of driver events: lines of kernel logs, as they are published, and what they mean."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._health import actions, event_names
from ansible_collections.gaudi3.scale.plugins.module_utils._health.events import (
    KERNEL_LINES,
    LINES,
    MODULE_LINES,
    event_of,
    events_of,
    parse,
    parse_log,
)
from ansible_collections.gaudi3.scale.plugins.module_utils._health.kernel import Record, of_kmsg, of_text, read_kmsg

ROOT = Path(__file__).resolve().parents[5]
BUS = "0000:19:00.0"


@pytest.mark.parametrize(
    ("line", "key", "component", "severity", "action"),
    [
        (
            f'[   12.500000] habanalabs {BUS}: Received H/W interrupt 0 ["MME0_DIE0_HD0_DERR"]',
            "memory-error-double", BUS, "error", "reset",
        ),
        ('accel accel5: Received H/W interrupt 1 ["TPC3_HD2_SERR"]', "memory-error-single", "accel5", "info", "watch"),
        (f"habanalabs {BUS}: NIC3_SHARED_SEI: err cause: x", "system-error", BUS, "warning", "watch"),
        (f"habanalabs {BUS}: Device heartbeat failed! PCI link is down", "heartbeat-lost", BUS, "critical", "reload"),
        (f"habanalabs {BUS}: {BUS} Failed to reset! Device is NOT usable", "reset-failed", BUS, "critical", "reload"),
        (
            f"habanalabs {BUS}: Failed to communicate with Device CPU (CPU-CP timeout)",
            "processor-silent", BUS, "critical", "replace",
        ),
        (
            "accel accel1: Firmware file habanalabs/gaudi3/gaudi3-boot-fit.itb is not found! (error -2)",
            "firmware-file-missing", "accel1", "critical", "configure",
        ),
        (
            f"habanalabs: Failed to initialize accel3. Device {BUS} is NOT usable!",
            "initialisation-failed", BUS, "critical", "reload",
        ),
        (f"habanalabs {BUS}: Timeout while MAC channel 0 reset", "mac-timeout", BUS, "error", "reload"),
        (
            "habanalabs_ib: Unknown symbol ib_uverbs_get_ucontext_file (err -2)",
            "no-rdma-device", "node", "error", "configure",
        ),
        ("habanalabs: unknown parameter 'huge_pages' ignored", "module-option-unknown", "node", "warning", "configure"),
        ("Bad pagetable: 000d [#1] PREEMPT SMP NOPTI", "page-table", "node", "critical", "configure"),
        ("python3: Corrupted page table at address 7f0000000000", "page-table", "node", "critical", "configure"),
        ("Loading of module with unavailable key is rejected", "module-rejected", "node", "error", "configure"),
        (
            f"habanalabs {BUS}: PCIe Bus Error: severity=Uncorrected (Fatal), type=Transaction Layer",
            "pcie-uncorrected", BUS, "critical", "reboot",
        ),
        (
            f"habanalabs {BUS}: PCIe Bus Error: severity=Corrected, type=Data Link Layer, (Receiver ID)",
            "pcie-corrected", BUS, "warning", "watch",
        ),
        (
            f"accel accel0: Successfully added device {BUS} to habanalabs driver",
            "normal-start", "accel0", "info", "none",
        ),
        ("habanalabs_cn: driver removed", "normal-stop", "node", "info", "none"),
        (f"<3>12.5 habanalabs {BUS}: the sky is falling", "unknown-event", BUS, "warning", "watch"),
        ('habanalabs hl2: Received H/W interrupt 9 ["ZORK_DERR"]', "unknown-event", "accel2", "warning", "watch"),
        ("habanalabs_compat: nobody has published such a line", "unknown-event", "node", "info", "watch"),
    ],
)  # fmt: skip
def test_a_line_has_a_meaning(line: str, key: str, component: str, severity: str, action: str) -> None:
    event = parse(line)
    assert event is not None
    assert (event.key, event.component, event.severity, event.action) == (key, component, severity, action)
    assert event.runbook == f"docs/operate/health.md#{key}"


@pytest.mark.parametrize(
    "line",
    [
        "",
        "usb 1-1: new high-speed USB device",
        "[    0.000000] Linux version 6.8.0",
        "nvme0: my habanalabs disk is full",
    ],
)
def test_a_line_of_something_else_is_no_event(line: str) -> None:
    assert parse(line) is None


def test_the_unit_the_place_and_the_class_are_named() -> None:
    meaning = event_names.describe("ARC_FARM2_DIE1_HD3_DERR")
    assert meaning is not None
    assert (meaning.unit, meaning.location) == ("ARC_FARM2", "DIE1 HD3")
    assert meaning.wording == (
        "a memory error of two bits, not corrected, in scheduling processors (ARC_FARM2 DIE1 HD3)"
    )
    other = event_names.describe("HFT1_DIE0_SERR")
    assert other is not None
    assert other.wording == "a memory error of one bit, corrected, in unit HFT1 DIE0"


def test_every_unit_and_class_of_the_grammar_is_understood() -> None:
    for unit, kind in itertools.product(event_names.UNITS, event_names.CLASSES):
        meaning = event_names.describe(f"{unit}0_DIE1_HD2_{kind}")
        assert meaning is not None, unit
        assert meaning.key == event_names.CLASSES[kind].key


def test_every_entry_has_an_action_and_a_severity_that_exist() -> None:
    for entry in (*LINES, *MODULE_LINES, *KERNEL_LINES, *event_names.CLASSES.values()):
        assert entry.action in actions.ACTIONS
        assert entry.severity in actions.SEVERITIES
        assert entry.wording[0].islower() and not entry.wording.endswith(".")


def test_every_event_has_its_section_in_the_documentation() -> None:
    headings = re.findall(r"^### (.+)$", (ROOT / "docs/operate/health.md").read_text(), re.M)
    keys = {entry.key for entry in (*LINES, *MODULE_LINES, *KERNEL_LINES, *event_names.CLASSES.values())} | {
        "unknown-event"
    }
    assert keys <= set(headings)


def test_times_are_read_and_old_events_left_out() -> None:
    lines = [f"[{at:12.6f}] habanalabs {BUS}: Device heartbeat failed!" for at in (1.0, 50.5, 99.0)]
    assert [event.at_s for event in parse_log(lines)] == [1.0, 50.5, 99.0]
    assert [event.at_s for event in parse_log(lines, since_s=50.5)] == [50.5, 99.0]


#: Sentences of the driver that take a node out of service, and an address of another card.
SENTENCES = (
    "Device heartbeat failed!", "heartbeat failed", "Failed to communicate with Device CPU", "Going to reset device",
    "Failed to reset! Device is NOT usable", "failed to initialize the H/W", "MME0_DIE0_HD0_DERR: x",
    'Received H/W interrupt 0 ["MME0_DIE0_HD0_DERR"]', "PCIe Bus Error: severity=Fatal",
    "Timeout while MAC channel 0 reset", f"Failed to initialize accel1. Device {BUS} is NOT usable!",
    "Loading of module with unavailable key is rejected", "Bad pagetable: 000d [#1] PREEMPT",
)  # fmt: skip
#: Names that a process can give itself: Linux keeps 15 characters.
COMMANDS = (
    "habanalabs", "habanalabs:", "habanalabs: x", "habanalabs hl1", "habanalabs hl1:", "habanalabs_cn: ",
    "hl habanalabs", "accel accel1", "accel accel1:", "accel accel1: ", "accel accel1: x",
    "Bad pagetable:", "Bad pagetable: ", "traps",
    "a] habanalabs ",
)  # fmt: skip
#: What Linux says of a process (arch/x86/mm/fault.c, arch/x86/kernel/traps.c, mm/oom_kill.c, mm/page_alloc.c,
#: kernel/exit.c, kernel/hung_task.c, kernel/audit.c), with a name of the process and of a file.
SAYINGS = (
    "{comm}[21856]: segfault at 0 ip 00007fcc sp 00007ffd error 4 in {file}[0,7fcc39d6a000+1000]",
    "{comm}[21856]: segfault at 0 ip 00007fcc sp 00007ffd error 4 in {file}[7fcc39d6a000+1000] likely on CPU 1",
    "{comm}[21856]: segfault at 0 ip {file} sp 00007ffd error 4",
    "traps: {comm}[21856] trap invalid opcode ip:7fcc sp:7ffd error:0 in {file}[7fcc39d6a000+1000]",
    "traps: {comm}[21856] general protection fault ip:7fcc sp:7ffd error:0 in {file}[7fcc39d6a000+1000]",
    "{comm}[21856] trap int3 ip:7fcc sp:7ffd error:0 in {file}[7fcc39d6a000+1000]",
    "{comm}[21856] bad frame in rt_sigreturn frame:7fcc ip:7fcc sp:7ffd orax:0 in {file}[7fcc39d6a000+1000]",
    "{comm} invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0",
    "Out of memory: Killed process 21856 ({comm}) total-vm:1kB, anon-rss:1kB, file-rss:0kB, shmem-rss:0kB, UID:1000",
    "Memory cgroup out of memory: Killed process 21856 ({comm}) total-vm:1kB, anon-rss:1kB, UID:1000",
    "{comm}: page allocation failure: order:0, mode:0xcc0(GFP_KERNEL), nodemask=(null)",
    "{comm} (21856) used greatest stack depth: 11000 bytes left",
    "{comm}/21856: potentially unexpected fatal signal 11.",
    "INFO: task {comm}:21856 blocked for more than 120 seconds.",
    "audit: type=1701 audit(1700000000.1:2): auid=1 uid=1000 comm=\"{comm}\" exe=\"/home/user/{file}\" sig=11 res=1",
    "CPU: 1 PID: 21856 Comm: {comm} Not tainted 6.8.0 #1",
    "process '/home/user/{file}' started with executable stack",
    "{comm}: entered promiscuous mode",
    "{comm}: renamed from {file}",
    "coredump: 21856({comm}): Unsafe core_pattern used",
)  # fmt: skip


def kmsg(message: str, priority: int = 3, **fields: str) -> str:
    """A record as /dev/kmsg gives it."""
    text = "".join(each if " " <= each < "\x7f" and each != "\\" else f"\\x{ord(each):02x}" for each in message)
    return f"{priority},17,2500000,-;{text}\n" + "".join(f" {name}={value}\n" for name, value in fields.items())


def test_the_kernels_words_about_a_process_are_nobodys_fault() -> None:
    """Whatever a user calls a process and a file, with a line end and a time of their own too."""
    for saying, comm, sentence in itertools.product(SAYINGS, COMMANDS, SENTENCES):
        files = (
            sentence, f"habanalabs {BUS}: {sentence}", f"{BUS} {sentence}", f"x\nhabanalabs {BUS}: {sentence}",
            f"x\n[    2.500000] {sentence}",
        )  # fmt: skip
        for line in (saying.format(comm=comm, file=file) for file in files):
            for event in events_of(of_kmsg(kmsg(line))):
                assert (event.key, event.severity, event.component) == ("unknown-event", "info", "node"), line
            if "\n" not in line:
                for event in parse_log([f"[    2.500000] {line}"]):
                    assert (event.key, event.severity, event.component) == ("unknown-event", "info", "node"), line


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        (kmsg(f"habanalabs {BUS}: Device heartbeat failed!", SUBSYSTEM="pci", DEVICE=f"+pci:{BUS}"), "heartbeat-lost"),
        (kmsg("accel accel1: Device heartbeat failed!", SUBSYSTEM="accel", DEVICE="c261:1"), "heartbeat-lost"),
        (kmsg("habanalabs hl1: Device heartbeat failed!", SUBSYSTEM="habanalabs", DEVICE="c240:2"), "heartbeat-lost"),
        (kmsg(f"habanalabs: Failed to initialize accel1. Device {BUS} is NOT usable!"), "initialisation-failed"),
        (
            kmsg("habanalabs_cn habanalabs.cn.0: new", SUBSYSTEM="auxiliary", DEVICE="+auxiliary:habanalabs.cn.0"),
            "unknown-event",
        ),
        # of no device, of another one than the line says, of a program, of a firewall's rule, of a file's name
        (kmsg(f"habanalabs {BUS}: Device heartbeat failed!"), None),
        (kmsg("accel accel1: Device heartbeat failed!"), None),
        (kmsg("habanalabs hl1: Device heartbeat failed!"), None),
        (kmsg(f"habanalabs {BUS}: Going to reset device", SUBSYSTEM="pci", DEVICE="+pci:0000:b3:00.0"), None),
        (kmsg(f"habanalabs {BUS}: Going to reset device", SUBSYSTEM="usb", DEVICE="+usb:1-1"), None),
        (kmsg("accel accel1: Device heartbeat failed!", SUBSYSTEM="pci", DEVICE=f"+pci:{BUS}"), None),
        (kmsg(f"usb 1-1: Product: habanalabs {BUS}: heartbeat failed", SUBSYSTEM="usb", DEVICE="+usb:1-1"), None),
        (kmsg(f"habanalabs {BUS}: heartbeat failed", 11, SUBSYSTEM="pci", DEVICE=f"+pci:{BUS}"), None),
        (kmsg(f"habanalabs: Failed to initialize accel1. Device {BUS} is NOT usable!", 12), None),
        (kmsg(f"habanalabs {BUS}: heartbeat failed\n SUBSYSTEM=pci\n DEVICE=+pci:{BUS}"), None),
        (kmsg(f"x\n3,18,1,-;habanalabs {BUS}: heartbeat failed"), None),
    ],
)  # fmt: skip
def test_a_record_is_the_drivers_where_the_kernel_names_its_device(text: str, meant: str | None) -> None:
    assert [event.key for event in events_of(of_kmsg("6,1,0,-;before\n" + text + "6,9,9,-;after\n"))] == [
        meant for meant in [meant] if meant
    ]


def test_an_address_in_a_message_is_not_the_component() -> None:
    event = event_of(
        Record(
            f"accel accel2: lost {BUS} Going to reset device",
            subsystem="accel", device="c261:2", attributed=True,
        )
    )  # fmt: skip
    assert event is not None
    assert (event.key, event.component) == ("unknown-event", "accel2")


def test_a_line_without_a_time_is_the_rest_of_the_line_before_it() -> None:
    text = f"[    1.000000] x[7]: segfault at 0 in a\nhabanalabs {BUS}: heartbeat failed\n[    2.0] y"
    assert [record.message for record in of_text(text.splitlines())] == ["x[7]: segfault at 0 in a", "y"]


def test_the_device_file_is_read_record_by_record_and_odd_lines_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "kmsg"
    good = kmsg("habanalabs: driver removed")
    path.write_text(f"no record\n99999999999999,1,1,-;x\n3,1\n{good} SUBSYSTEM\n-1,2,3,-;x\n\n{good}")
    assert [record.message for record in of_kmsg(read_kmsg(str(path)))] == ["habanalabs: driver removed"] * 2
    path.write_text("")
    assert of_kmsg(read_kmsg(str(path))) == []
