"""The dictionary of driver events: lines of kernel logs, as they are published, and what they mean."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._health import actions, event_names
from ansible_collections.gaudi3.scale.plugins.module_utils._health.events import KERNEL_LINES, LINES, parse, parse_log

ROOT = Path(__file__).resolve().parents[4]
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
        (f"accel accel0: Successfully added device {BUS} to habanalabs driver", "normal-start", BUS, "info", "none"),
        ("habanalabs_cn: driver removed", "normal-stop", "node", "info", "none"),
        (f"<3>12.5 habanalabs {BUS}: the sky is falling", "unknown-event", BUS, "warning", "watch"),
        ('habanalabs hl2: Received H/W interrupt 9 ["ZORK_DERR"]', "unknown-event", "accel2", "warning", "watch"),
        ("habanalabs_compat: nobody has published such a line", "unknown-event", "node", "warning", "watch"),
    ],
)  # fmt: skip
def test_a_line_has_a_meaning(line: str, key: str, component: str, severity: str, action: str) -> None:
    event = parse(line)
    assert event is not None
    assert (event.key, event.component, event.severity, event.action) == (key, component, severity, action)
    assert event.runbook == f"docs/health.md#{key}"


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
    assert (meaning.unit, meaning.place) == ("ARC_FARM2", "DIE1 HD3")
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
    for entry in (*LINES, *KERNEL_LINES, *event_names.CLASSES.values()):
        assert entry.action in actions.ACTIONS
        assert entry.severity in actions.SEVERITIES
        assert entry.wording[0].islower() and not entry.wording.endswith(".")


def test_every_event_has_its_section_in_the_documentation() -> None:
    headings = re.findall(r"^### (.+)$", (ROOT / "docs/health.md").read_text(), re.M)
    keys = {entry.key for entry in (*LINES, *KERNEL_LINES, *event_names.CLASSES.values())} | {"unknown-event"}
    assert keys <= set(headings)


def test_times_are_read_and_old_events_left_out() -> None:
    lines = [f"[{at:12.6f}] habanalabs {BUS}: Device heartbeat failed!" for at in (1.0, 50.5, 99.0)]
    assert [event.at_s for event in parse_log(lines)] == [1.0, 50.5, 99.0]
    assert [event.at_s for event in parse_log(lines, since_s=50.5)] == [50.5, 99.0]
