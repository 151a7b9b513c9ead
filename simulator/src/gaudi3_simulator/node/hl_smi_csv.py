"""``hl-smi -Q``: fields as comma-and-space separated text."""

from __future__ import annotations

import time

from . import board, node, paths, readings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from .readings import Reading
    from .releases import Release

    Value = str | int | None
    Getter = Callable[[node.Node, node.Card, Reading], Value]


def timestamp() -> str:
    """The moment in the tool's own form."""
    return time.strftime("%a %b %d %H:%M:%S UTC %Y", time.gmtime(paths.now()))


def _errors(node_: node.Node, card: node.Card, reading: Reading) -> Value:
    return node_.uncorrected_errors(card)


def _none(node_: node.Node, card: node.Card, reading: Reading) -> Value:
    return 0


# field: (unit, whether it needs a live reading, value). Fields and units follow the documented list; clocks,
# error counters and throttle counters carry simulator values.
FIELDS: dict[str, tuple[str, bool, Getter]] = {
    "timestamp": ("", False, lambda n, c, r: timestamp()),
    "name": ("", False, lambda n, c, r: board.PRODUCT),
    "bus_id": ("", False, lambda n, c, r: c.bus_id),
    "driver_version": ("", False, lambda n, c, r: n.driver_version),
    "nic_driver_version": ("", False, lambda n, c, r: n.nic_driver_version),
    "module_id": ("", False, lambda n, c, r: c.module_id),
    "index": ("", False, lambda n, c, r: c.index),
    "serial": ("", False, lambda n, c, r: c.serial),
    "uuid": ("", False, lambda n, c, r: c.uuid),
    "temperature.aip": ("C", True, lambda n, c, r: r.temperature_c),
    "utilization.aip": ("%", True, lambda n, c, r: r.utilization),
    "utilization.memory": ("%", True, lambda n, c, r: r.memory_utilization),
    "memory.total": ("MiB", False, lambda n, c, r: board.MEMORY_TOTAL_MIB),
    "memory.free": ("MiB", True, lambda n, c, r: r.memory_free_mib),
    "memory.used": ("MiB", True, lambda n, c, r: r.memory_used_mib),
    "power.draw": ("W", True, lambda n, c, r: r.power_w),
    "power.max": ("W", False, lambda n, c, r: n.power_limit(c)),
    "ecc.mode.current": ("", False, lambda n, c, r: "Enabled"),
    "ecc.mode.pending": ("", False, lambda n, c, r: "Enabled"),
    "ecc.errors.uncorrected.aggregate.total": ("", False, _errors),
    "ecc.errors.uncorrected.volatile.total": ("", False, _errors),
    "ecc.errors.corrected.aggregate.total": ("", False, _none),
    "ecc.errors.corrected.volatile.total": ("", False, _none),
    "ecc.errors.dram.aggregate.total": ("", False, _errors),
    "ecc.errors.dram.volatile.total": ("", False, _errors),
    "ecc.errors.dram-corrected.aggregate.total": ("", False, _none),
    "ecc.errors.dram-corrected.volatile.total": ("", False, _none),
    "stats.violation.power": ("", False, _none),
    "stats.violation.thermal": ("", False, _none),
    "clocks.current.soc": ("MHz", False, lambda n, c, r: board.CLOCK_SOC_MHZ),
    "clocks.max.soc": ("MHz", False, lambda n, c, r: board.CLOCK_SOC_MHZ),
    "clocks.limit.soc": ("MHz", False, lambda n, c, r: board.CLOCK_SOC_MHZ),
    "clocks.limit.tpc": ("MHz", False, lambda n, c, r: board.CLOCK_TPC_MHZ),
    "pcie.link.gen.max": ("", False, lambda n, c, r: board.PCIE_GENERATION),
    "pcie.link.gen.current": ("", False, lambda n, c, r: board.PCIE_GENERATION),
    "pcie.link.width.max": ("", False, lambda n, c, r: f"x{board.PCIE_WIDTH}"),
    "pcie.link.width.current": ("", False, lambda n, c, r: f"x{n.pcie_width(c)}"),
    "pcie.link.speed.max": ("", False, lambda n, c, r: board.PCIE_SPEED),
    "pcie.link.speed.current": ("", False, lambda n, c, r: board.PCIE_SPEED),
}


def view(fields: str, form: str) -> Callable[[node.Node, list[node.Card], Release], str]:
    """A view of the named fields in the named format, both checked."""
    from .hl_smi import UsageError

    names = [name.strip() for name in fields.split(",")]
    for name in names:
        if name not in FIELDS:
            raise UsageError(f"unknown field '{name}' in -Q: the fields are {', '.join(FIELDS)}")
    words = [word.strip() for word in form.split(",")]
    if words[0] != "csv" or any(word not in ("noheader", "nounits") for word in words[1:]):
        raise UsageError(f"unknown format '{form}': give csv[,noheader][,nounits]")
    units = "nounits" not in words

    def text(simulated: node.Node, cards: list[node.Card], info: Release) -> str:
        live = any(FIELDS[name][1] for name in names)
        measured = readings.read_all(simulated) if live else {}
        lines = [] if "noheader" in words else [", ".join(_title(name) for name in names)]
        for card in cards:
            reading = measured.get(card.index) or readings.Reading()
            lines.append(", ".join(_cell(name, simulated, card, reading, units) for name in names))
        return "".join(line + "\n" for line in lines)

    return text


def _title(name: str) -> str:
    unit = FIELDS[name][0]
    return f"{name} [{unit}]" if unit else name


def _cell(name: str, simulated: node.Node, card: node.Card, reading: Reading, units: bool) -> str:
    unit, _, getter = FIELDS[name]
    value = getter(simulated, card, reading)
    if value is None:
        return "N/A"
    return f"{value} {unit}" if unit and units else str(value)
