"""``hl-smi -q``, ``-L`` and ``--fw-versions``: the detail log.

The section order is that of a published Gaudi 2 log; the full Gaudi 3 log is UNCONFIRMED. The log says MB
where the csv says MiB, for the same number.
"""

from __future__ import annotations

from . import board, hl_smi_csv, node, readings, releases

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from .readings import Reading
    from .releases import Release

    Section = Callable[[node.Node, node.Card, Reading, Release], list[str]]

_ON_CHIP_SENSORS = 4


def view(display: str | None) -> Callable[[node.Node, list[node.Card], Release], str]:
    """The log, whole or limited to the sections named by ``-d``."""
    from .hl_smi import UsageError

    names = list(SECTIONS)
    if display is not None:
        names = [name.strip().upper() for name in display.split(",")]
        for name in names:
            if not name or name not in SECTIONS:
                known = ", ".join(filter(None, SECTIONS))
                raise UsageError(f"unknown section '{name}' in -d: the sections are {known}")

    def text(simulated: node.Node, cards: list[node.Card], info: Release) -> str:
        measured = readings.read_all(simulated)
        lines = _heading(simulated, cards, info)
        for card in cards:
            lines.append(_title(card))
            for name in names:
                lines += SECTIONS[name](simulated, card, measured[card.index], info)
            lines.append("")
        return "\n".join(lines) + "\n"

    return text


def firmware(simulated: node.Node, cards: list[node.Card], info: Release) -> str:
    """Firmware versions of each card."""
    lines = []
    for card in cards:
        lines += [_title(card), *firmware_lines(simulated, card)]
    return "\n".join(lines) + "\n"


def _heading(simulated: node.Node, cards: list[node.Card], info: Release) -> list[str]:
    return [
        "================ HL-SMI LOG ================",
        "",
        _entry("Timestamp", hl_smi_csv.timestamp(), 0),
        _entry("Driver Version", simulated.driver_version, 0),
        _entry("HL-SMI Version", f"{info.tool} ({releases.build_date(info)})", 0),
        "",
        _entry("Attached AIPs", str(len(cards)), 0),
        "",
    ]


def _title(card: node.Card) -> str:
    return f"[{card.index}] AIP (accel{card.index}) {card.bus_id}"


def _entry(label: str, value: str, depth: int = 1) -> str:
    """A line of the log: the colon stands in column 40 at every depth."""
    indent = " " * (8 * depth)
    return f"{indent}{label:<{40 - len(indent)}}: {value}"


def firmware_lines(simulated: node.Node, card: node.Card) -> list[str]:
    """Firmware and CPLD versions of one card."""
    running = simulated.firmware
    return [
        _entry("Firmware [FIT] Version", f"Linux gaudi3 5.10.18-{running}"),
        _entry("Firmware [SPI] Version", f"Preboot version {card.spi} ({releases.firmware_date(card.spi, 'SPI')})"),
        _entry("Firmware [UBOOT] Version", f"U-Boot 2021.04-{running} ({releases.NEVER_BUILT} +0000) build#: 0"),
        _entry("Firmware [OS] Version", f"Zephyr 2.7.2-{running} ({releases.firmware_date(running, 'OS')})"),
        _entry("CPLD Version", f"Version: 0x{board.CPLD_VERSION:x}, Timestamp(epoch): 0x{board.CPLD_TIMESTAMP:x}"),
    ]


def _product(simulated: node.Node, card: node.Card, reading: Reading, info: Release) -> list[str]:
    return [
        _entry("Product Name", board.PRODUCT),
        _entry("Model Number", board.MODEL_NUMBER),
        _entry("Serial Number", card.serial),
        _entry("Module status", simulated.status(card)),
        _entry("Module ID", str(card.module_id)),
        _entry("PCB Assembly Version", board.PCB_ASSEMBLY),
        _entry("PCB Version", board.PCB_VERSION),
        _entry("HL Revision", str(board.HL_REVISION)),
        _entry("AIP UUID", card.uuid),
        _entry("AIP Status", "Production Level"),
        *firmware_lines(simulated, card),
    ]


def _bus(simulated: node.Node, card: node.Card, reading: Reading, info: Release) -> list[str]:
    domain, bus, place = card.bus_id.split(":")
    device = f"0x{board.PCI_VENDOR}{board.PCI_DEVICE}"
    return [
        "        PCI",
        _entry("Bus", f"0x{bus}", 2),
        _entry("Device", f"0x{place[:2]}", 2),
        _entry("Domain", f"0x{domain}", 2),
        _entry("Rev", board.PCI_REVISION, 2),
        _entry("Device Id", device, 2),
        _entry("Bus Id", card.bus_id, 2),
        _entry("Sub System Id", device, 2),
        "                AIP Link Info",
        "                        Link Speed",
        _entry("Max", board.PCIE_SPEED, 4),
        _entry("Current", board.PCIE_SPEED, 4),
        "                        Link Width",
        _entry("Max", f"x{board.PCIE_WIDTH}", 4),
        _entry("Current", f"x{simulated.pcie_width(card)}", 4),
    ]


def _fan(simulated: node.Node, card: node.Card, reading: Reading, info: Release) -> list[str]:
    return ["        Fan Speed", _entry("", "N/A", 4)]


def _memory(simulated: node.Node, card: node.Card, reading: Reading, info: Release) -> list[str]:
    return [
        _entry("Memory Type", "HBM"),
        "        Memory Usage",
        _entry("Total", f"{board.MEMORY_TOTAL_MIB} MB", 2),
        _entry("Used", _measured(reading.memory_used_mib, "MB"), 2),
        _entry("Free", _measured(reading.memory_free_mib, "MB"), 2),
    ]


def _temperature(simulated: node.Node, card: node.Card, reading: Reading, info: Release) -> list[str]:
    lines = ["        Temperature"]
    for sensor in range(_ON_CHIP_SENSORS):
        shown = None if reading.temperature_c is None else max(0, reading.temperature_c - sensor % 2)
        lines.append(_entry(f"[{sensor + 1:2d}] On Chip {sensor}", _measured(shown, "C", 3), 2))
    return lines


def _throttle(simulated: node.Node, card: node.Card, reading: Reading, info: Release) -> list[str]:
    return [
        "        Clocks Throttle Reasons",
        _entry("HW Slowdown", "Not Active", 2),
        "                        Thermal Slowdown",
        _entry("", "Not Active", 4),
        "                        Power Slowdown",
        _entry("", "Not Active", 4),
    ]


def _power(simulated: node.Node, card: node.Card, reading: Reading, info: Release) -> list[str]:
    limit = simulated.power_limit(card)
    return [
        "        Power Readings (54V PSU)",
        _entry("Power Management", "auto", 2),
        _entry("Power Draw", _measured(reading.power_w, "W"), 2),
        _entry("Power Max", f"{limit} W", 2),
        _entry("Power Limit", f"{limit} W", 2),
    ]


def _clock(simulated: node.Node, card: node.Card, reading: Reading, info: Release) -> list[str]:
    soc = f"{board.CLOCK_SOC_MHZ} MHz"
    return [
        "        Clocks",
        _entry("[1] soc", soc, 2),
        "        Clocks Max",
        _entry("[1] soc", soc, 2),
        "        Clocks Limit",
        _entry("[1] soc", soc, 2),
        _entry("[2] tpc", f"{board.CLOCK_TPC_MHZ} MHz", 2),
    ]


def _net(simulated: node.Node, card: node.Card, reading: Reading, info: Release) -> list[str]:
    lines = [_entry(f"[{port + 1:2d}] MAC", card.mac(port), 2) for port in range(board.PORTS)]
    return ["        Network Information", *lines]


def _rows(simulated: node.Node, card: node.Card, reading: Reading, info: Release) -> list[str]:
    errors = simulated.uncorrected_errors(card)
    return [
        "        Replaced Rows",
        _entry("Single Bit ECC", "0", 2),
        _entry("Double Bit ECC", str(errors), 2),
        _entry("Pending", "Yes" if errors else "No", 2),
    ]


def _measured(value: int | None, unit: str, width: int = 0) -> str:
    return "N/A" if value is None else f"{value:{width or ''}d} {unit}"


_THROTTLE = ""  # part of the whole log, but no section that -d can name

SECTIONS: dict[str, Section] = {
    "PRODUCT": _product,
    "BUS": _bus,
    "FAN": _fan,
    _THROTTLE: _throttle,
    "MEMORY": _memory,
    "TEMPERATURE": _temperature,
    "POWER": _power,
    "CLOCK": _clock,
    "NET": _net,
    "ROW_REPLACEMENT": _rows,
}
