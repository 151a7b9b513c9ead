"""``hl-smi -q`` and ``-L``: the detail log.

Sections, labels and columns are those of a published Gaudi 2 log of 1.12.1; the full Gaudi 3 log is UNCONFIRMED. The
log says MB where the csv says MiB, for the same number.
"""

from __future__ import annotations

from . import board, conditions, hl_smi_csv, node, readings, releases
from .hl_smi_usage import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from .readings import Reading
    from .releases import Release

    Section = Callable[[node.Node, node.Card, Reading, Release], list[str]]

# Sensors of a Gaudi 2 in their order, and how much warmer than the chip each is; those of a Gaudi 3 are UNCONFIRMED.
_SENSORS = (
    *((f"On Chip {number}", -(number % 2)) for number in range(4)),
    *((f"HBM {number} Temp", number % 3) for number in range(6)),
    *((f"On Chip TD {number}", -(number % 2)) for number in range(4)),
    ("On Board 2 Top", 1),
    ("On Board 01 Top", 1),
    ("On Board 01 Bot", 2),
    ("On Board 23 Top", 1),
    ("On Board 23 Bot", 2),
    ("CPLD Temp", 4),
    ("VRM1 Temp", 5),
    ("VRM2 Temp", 10),
)
_RAIL_12V_LIMIT_W = 50
_HOTTEST_C = 200


def view(display: str | None) -> Callable[[node.Node, list[node.Card], Release], str]:
    """The log, whole or limited to the sections named by ``-d``."""
    names = list(SECTIONS)
    if display is not None:
        names = [name.strip().upper() for name in display.split(",")]
        for name in names:
            if not name or name not in SECTIONS:
                known = ", ".join(filter(None, SECTIONS))
                raise UsageError(f"unknown section '{name}' in -d: the sections are {known}")

    def text(simulated: node.Node, cards: list[node.Card], info: Release) -> str:
        measured = readings.read_all(simulated)
        lines = _heading(simulated, info)
        for card in cards:
            lines.append(title(card))
            for name in names:
                lines += SECTIONS[name](simulated, card, measured[card.index], info)
            lines.append("")
        return "\n".join(lines) + "\n"

    return text


def _heading(simulated: node.Node, info: Release) -> list[str]:
    return [
        "",
        "================ HL-SMI LOG ================",
        "",
        entry("Timestamp", hl_smi_csv.timestamp(), 0),
        entry("Driver Version", simulated.driver_version, 0),
        entry("HL-SMI Version", f"{info.tool} ({releases.build_date(info)})", 0),
        "",
        entry("Attached AIPs", str(len(simulated.cards)), 0),
        "",
    ]


def title(card: node.Card) -> str:
    """The line that begins the report of one card."""
    return f"[{card.index}] AIP (accel{card.index}) {card.bus_id}"


def entry(label: str, value: str, depth: int = 1) -> str:
    """A line of the log: the colon stands in column 40 at every depth, behind tabs of eight columns.

    Readers of the real tool strip tabs and then match the label at the start (HabanaAI/vllm-fork, collect_env).
    """
    indent = "\t" * depth
    return f"{indent}{label:<{40 - 8 * depth}}: {value}"


def firmware_lines(simulated: node.Node, card: node.Card) -> list[str]:
    """Firmware and CPLD versions of one card."""
    running = simulated.firmware_of(card)
    return [
        entry("Firmware [FIT] Version", _kernel(simulated.board.generation, running)),
        entry("Firmware [SPI] Version", f"Preboot version {card.spi} ({releases.firmware_date(card.spi, 'SPI')})"),
        entry("Firmware [UBOOT] Version", f"U-Boot 2021.04-{running} ({releases.NEVER_BUILT} +0000) build#: 0"),
        entry("Firmware [OS] Version", f"Zephyr 2.7.2-{running} ({releases.firmware_date(running, 'OS')})"),
        entry("CPLD Version", _cpld(simulated.board)),
    ]


def _kernel(generation: str, firmware: str) -> str:
    """What ``uname -a`` prints on the card, built at the time of a version that nobody has seen."""
    return f"Linux {generation} 5.10.18-{firmware} #1 SMP PREEMPT Thu Jan  1 00:00:00 UTC 1970 aarch64 GNU/Linux"


def _cpld(kind: board.Board) -> str:
    """A Gaudi 2 shows the version alone, a Gaudi 3 its time stamp as well."""
    if kind.generation == "gaudi2":
        return f"0x{kind.cpld_version:08x}"
    return f"Version: 0x{kind.cpld_version:x}, Timestamp(epoch): 0x{kind.cpld_timestamp:x}"


def _product(simulated: node.Node, card: node.Card, reading: Reading, info: Release) -> list[str]:
    return [
        entry("Product Name", simulated.board.product),
        entry("Model Number", simulated.board.model_number),
        entry("Serial Number", card.serial),
        entry("Module status", simulated.status(card)),
        entry("Module ID", str(card.module_id)),
        entry("PCB Assembly Version", simulated.board.pcb_assembly),
        entry("PCB Version", simulated.board.pcb_version),
        entry("HL Revision", str(board.HL_REVISION)),
        entry("AIP UUID", card.uuid),
        entry("AIP Status", "Production Level"),
        *firmware_lines(simulated, card),
    ]


def _bus(simulated: node.Node, card: node.Card, reading: Reading, info: Release) -> list[str]:
    domain, bus, place = card.bus_id.split(":")
    device = f"0x{board.PCI_VENDOR}{simulated.board.pci_device}"
    return [
        "\tPCI",
        entry("Bus", f"0x{bus}", 2),
        entry("Device", f"0x{place[:2]}", 2),
        entry("Domain", f"0x{domain}", 2),
        entry("Rev", board.PCI_REVISION, 2),
        entry("Device Id", device, 2),
        entry("Bus Id", card.bus_id, 2),
        entry("Sub System Id", device, 2),
        "\t\tAIP Link Info",
        "\t\t\tLink Speed",
        entry("Max", conditions.pcie_speed(simulated.board.pcie_generation), 4),
        entry("Current", conditions.pcie_speed(conditions.pcie_generation(simulated, card)), 4),
        "\t\t\tLink Width",
        entry("Max", f"x{board.PCIE_WIDTH}", 4),
        entry("Current", f"x{simulated.pcie_width(card)}", 4),
    ]


def _fan(simulated: node.Node, card: node.Card, reading: Reading, info: Release) -> list[str]:
    return ["\tFan Speed", entry("", "N/A", 4)]


def _memory(simulated: node.Node, card: node.Card, reading: Reading, info: Release) -> list[str]:
    return [
        entry("Memory Type", "HBM"),
        "\tMemory Usage",
        entry("Total", _measured(reading.memory_total_mib, "MB"), 2),
        entry("Used", _measured(reading.memory_used_mib, "MB"), 2),
        entry("Free", _measured(reading.memory_free_mib, "MB"), 2),
    ]


def _temperature(simulated: node.Node, card: node.Card, reading: Reading, info: Release) -> list[str]:
    lines = ["\tTemperature"]
    for number, (name, warmer) in enumerate(_SENSORS):
        shown = reading.temperature_c  # one that cannot be read is as wrong on every sensor
        if shown is not None and 0 < shown < _HOTTEST_C:
            shown += warmer
        lines.append(entry(f"[{number + 1:2d}] {name}", _measured(shown, "C", 3), 2))
    return lines


def _throttle(simulated: node.Node, card: node.Card, reading: Reading, info: Release) -> list[str]:
    slowed = {cause: conditions.violations(simulated, card, cause) > 0 for cause in ("thermal", "power")}
    return [
        "\tClocks Throttle Reasons",
        entry("HW Slowdown", _active(any(slowed.values())), 2),
        "\t\t\tThermal Slowdown",
        entry("", _active(slowed["thermal"]), 4),
        "\t\t\tPower Slowdown",
        entry("", _active(slowed["power"]), 4),
    ]


def _active(active: bool) -> str:
    return "Active" if active else "Not Active"


def _power(simulated: node.Node, card: node.Card, reading: Reading, info: Release) -> list[str]:
    limit = simulated.power_limit(card)
    return [
        "\tPower Readings (54V PSU)",
        entry("Power Management", "auto", 2),
        entry("Power Draw", _measured(reading.rail_54v_w, "W"), 2),
        entry("Power Max", f"{limit} W", 2),
        entry("Power Limit", f"{limit} W", 2),
        "\tPower Readings (12V PSU)",
        entry("Power Management", "N/A", 2),
        entry("Power Draw", _measured(reading.rail_12v_w, "W"), 2),
        entry("Power Max", f"{_RAIL_12V_LIMIT_W} W", 2),
        entry("Power Limit", f"{_RAIL_12V_LIMIT_W} W", 2),
    ]


def _clock(simulated: node.Node, card: node.Card, reading: Reading, info: Release) -> list[str]:
    soc = f"{simulated.board.clock_soc_mhz} MHz"
    return [
        "\tClocks",
        entry("[1] soc", soc, 2),
        "\tClocks Max",
        entry("[1] soc", soc, 2),
        "\tClocks Limit",
        entry("[1] soc", soc, 2),
        entry("[2] tpc", f"{simulated.board.clock_tpc_mhz} MHz", 2),
    ]


def _net(simulated: node.Node, card: node.Card, reading: Reading, info: Release) -> list[str]:
    lines = [entry(f"[{port + 1:2d}] MAC", card.mac(port), 2) for port in range(board.PORTS)]
    return ["\tNetwork Information", *lines]


def _rows(simulated: node.Node, card: node.Card, reading: Reading, info: Release) -> list[str]:
    causes = [cause for _, cause in conditions.replaced_rows(simulated, card)]
    return [
        "\tReplaced Rows",
        entry("Single Bit ECC", str(causes.count("Single Bit ECC")), 2),
        entry("Double Bit ECC", str(causes.count("Double Bit ECC")), 2),
        entry("Pending", "Yes" if conditions.rows_pending(simulated, card) else "No", 2),
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
