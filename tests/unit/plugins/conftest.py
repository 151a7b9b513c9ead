"""Texts of hl-smi in the shapes it is known to print, and a stand-in that prints them."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import ClassVar

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._hl_smi.hl_smi import QUERY_FIELDS

CELLS = {
    "index": "0",
    "module_id": "3",
    "bus_id": "0000:19:00.0",
    "name": "HL-325L",
    "uuid": "01P4-HL3090A0-18-ABC123-01-02-03",
    "serial": "AO00000001",
    "driver_version": "1.23.0-2eae87a",
    "nic_driver_version": "1.23.0-213b09b",
    "memory.total": "131072",
    "memory.used": "672",
    "memory.free": "130400",
    "power.draw": "228",
    "power.max": "850",
    "temperature.aip": "36",
    "utilization.aip": "0",
    "utilization.memory": "1",
    "ecc.mode.current": "Enabled",
    "ecc.mode.pending": "Enabled",
    "ecc.errors.uncorrected.volatile.total": "0",
    "ecc.errors.uncorrected.aggregate.total": "2",
    "ecc.errors.corrected.volatile.total": "1",
    "ecc.errors.corrected.aggregate.total": "3",
    "ecc.errors.dram.volatile.total": "4",
    "ecc.errors.dram.aggregate.total": "5",
    "ecc.errors.dram-corrected.volatile.total": "6",
    "ecc.errors.dram-corrected.aggregate.total": "7",
    "pcie.link.gen.current": "5",
    "pcie.link.gen.max": "5",
    "pcie.link.width.current": "x8",
    "pcie.link.width.max": "x16",
    "pcie.link.speed.current": "32GT/s",
    "pcie.link.speed.max": "32GT/s",
    "clocks.current.soc": "1600",
    "clocks.max.soc": "1700",
    "clocks.limit.soc": "1650",
    "clocks.limit.tpc": "1800",
    "stats.violation.power": "0",
    "stats.violation.thermal": "0",
}

LOG_HEAD = """\
================ HL-SMI LOG ================

Timestamp                               : Thu Nov 16 04:54:24 UTC 2023
Driver Version                          : 1.23.0-2eae87a
HL-SMI Version                          : hl-1.23.0-fw-62.2.1.1 (Oct 19 2023 - 01:19:50)

Attached AIPs                           : {count}
"""

LOG_CARD = """
[{index}] AIP (accel{index}) {bus_id}
        Product Name                    : HL-325L
        Model Number                    : F08GL0DIG017A
        Serial Number                   : AO00000001
        Module status                   : {status}
        Module ID                       : 3
        PCB Assembly Version            : V0P
        HL Revision                     : 1
        AIP Status                      : Production Level
        Firmware [FIT] Version          : Linux gaudi3 5.10.18-hl-gaudi3-1.23.0-fw-62.2.1-sec-9 #1 SMP
        Firmware [SPI] Version          : Preboot version hl-gaudi3-{spi} (Aug 01 2025 - 10:11:12)
        Firmware [UBOOT] Version        : N/A
        Firmware [OS] Version           : Zephyr 2.7.2-hl-gaudi3-1.23.0-fw-62.2.1-sec-9 (...)
        CPLD Version                    : Version: 0x4, Timestamp(epoch): 0x6512bd43
        PCI
                Bus                     : 0x19
                Bus Id                  : 0000:19:00.0
        Clocks Throttle Reasons
                HW Slowdown             : Not Active
        Power Readings (54V PSU)
                Power Draw              : 228 W
        Network Information
                [ 1] MAC                : 02:00:00:00:00:01
"""


class Samples:
    """What tests build the tool's answers from."""

    second: ClassVar = {"index": "1", "module_id": "0", "bus_id": "0000:B3:00.0", "serial": "AO00000002"}
    spi = "1.23.0-fw-62.2.1-sec-9"
    ports = "".join(f"port {port}: {'external' if port in (1, 11, 23) else 'internal'}\n" for port in range(24))
    links = "".join(f"port {port:2}:\t{'DOWN' if port == 11 else 'UP'}\n" for port in range(24))

    @staticmethod
    def row(fields: tuple[str, ...] = QUERY_FIELDS, **cells: str) -> str:
        """A csv row of a card; ``cells`` replace its values (dots in a field's name as two underscores)."""
        values = {**CELLS, **{name.replace("__", "."): cell for name, cell in cells.items()}}
        return ", ".join(values[name] for name in fields)

    @staticmethod
    def log(*cards: tuple[str, str, str]) -> str:
        """A detail log of cards given as (bus id, status, preboot version)."""
        return LOG_HEAD.format(count=len(cards)) + "".join(
            LOG_CARD.format(index=index, bus_id=bus_id, status=status, spi=spi)
            for index, (bus_id, status, spi) in enumerate(cards)
        )


class FakeTool:
    """An executable which prints prepared answers and keeps what it was called with."""

    SCRIPT = """\
#!/bin/sh
for argument in "$@"; do printf '%s\\037' "$argument"; done >> {log}
printf 'ENABLE_CONSOLE=%s\\037HABANA_LOGS=%s\\n' "$ENABLE_CONSOLE" "$HABANA_LOGS" >> {log}
for case in {cases}/*; do
  if grep -qxF -- "$*" "$case/arguments"; then cat "$case/output"; exit "$(cat "$case/code")"; fi
done
echo "unexpected arguments: $*" >&2
exit 99
"""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "hl-smi"
        self._log = folder / "calls"
        self._cases = folder / "cases"
        self._cases.mkdir()
        self.path.write_text(self.SCRIPT.format(log=self._log, cases=self._cases))
        self.path.chmod(self.path.stat().st_mode | stat.S_IXUSR)

    def answer(self, arguments: list[str], output: str, code: int = 0) -> None:
        """Prepare the answer to one command line."""
        case = self.case(arguments)
        case.mkdir(exist_ok=True)
        (case / "arguments").write_text(" ".join(arguments) + "\n")
        (case / "output").write_text(output)
        (case / "code").write_text(str(code))

    def case(self, arguments: list[str]) -> Path:
        """Where the answer to a command line is kept."""
        return self._cases / str(abs(hash(json.dumps(arguments))))

    def calls(self) -> list[list[str]]:
        """The argument lists it was called with."""
        if not self._log.exists():
            return []
        return [line.split("\x1f")[:-2] for line in self._log.read_text().splitlines()]

    def environments(self) -> list[dict[str, str]]:
        """The variables it looked at, call by call."""
        lines = self._log.read_text().splitlines()
        return [dict(pair.split("=", 1) for pair in line.split("\x1f")[-2:]) for line in lines]


@pytest.fixture
def samples() -> Samples:
    """The tool's texts."""
    return Samples()


@pytest.fixture
def tool(tmp_path: Path) -> FakeTool:
    """A stand-in for hl-smi."""
    return FakeTool(tmp_path)
