"""``hl-smi -Q``: fields as comma-and-space separated text."""

from __future__ import annotations

import time

from . import board, conditions, node, paths, readings, releases, strictness
from .hl_smi_usage import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from .readings import Reading
    from .releases import Release

    Value = str | int | None
    Rules = dict[str, bool]
    Getter = Callable[[node.Node, node.Card, Reading, Rules], Value]

# Asked for with a capital letter by a public collector (dell/omnia), which reads the answer.
ALIASES = {"Name": "name"}
# Fields that the vendor's page names since this release.
SINCE = {"ecc.errors.hbm.sram.critical": (1, 24)}


def timestamp() -> str:
    """The moment in the tool's own form."""
    return time.strftime("%a %b %d %H:%M:%S UTC %Y", time.gmtime(paths.now()))


def _uncorrected(node_: node.Node, card: node.Card, reading: Reading, on: Rules) -> Value:
    return conditions.uncorrected(node_, card)


def _corrected(node_: node.Node, card: node.Card, reading: Reading, on: Rules) -> Value:
    return conditions.corrected(node_, card)


def _none(node_: node.Node, card: node.Card, reading: Reading, on: Rules) -> Value:
    return 0


def _power(node_: node.Node, card: node.Card, reading: Reading, on: Rules) -> Value:
    """The vendor's page: the 54 V rail, while the table's figure holds the 12 V rail as well."""
    return reading.rail_54v_w if on["hl-smi-power-54v"] else reading.power_w


def _generation(number: int, on: Rules) -> Value:
    return f"Gen{number}" if on["hl-smi-odd-cells"] else number


# field: (unit, whether it needs a live reading, value). Fields and units follow the documented list; clocks carry
# simulator values.
FIELDS: dict[str, tuple[str, bool, Getter]] = {
    "timestamp": ("", False, lambda n, c, r, on: timestamp()),
    "name": ("", False, lambda n, c, r, on: n.board.product),
    "bus_id": ("", False, lambda n, c, r, on: c.bus_id),
    "driver_version": ("", False, lambda n, c, r, on: n.driver_version),
    "nic_driver_version": ("", False, lambda n, c, r, on: n.nic_driver_version),
    "module_id": ("", False, lambda n, c, r, on: c.module_id),
    "index": ("", False, lambda n, c, r, on: c.index),
    "serial": ("", False, lambda n, c, r, on: c.serial),
    "uuid": ("", False, lambda n, c, r, on: c.uuid),
    "temperature.aip": ("C", True, lambda n, c, r, on: r.temperature_c),
    "utilization.aip": ("%", True, lambda n, c, r, on: r.utilization),
    "utilization.memory": ("%", True, lambda n, c, r, on: r.memory_utilization),
    "memory.total": ("MiB", True, lambda n, c, r, on: r.memory_total_mib),
    "memory.free": ("MiB", True, lambda n, c, r, on: r.memory_free_mib),
    "memory.used": ("MiB", True, lambda n, c, r, on: r.memory_used_mib),
    "power.draw": ("W", True, _power),
    "power.max": ("W", False, lambda n, c, r, on: n.power_limit(c)),
    "ecc.mode.current": ("", False, lambda n, c, r, on: "Enabled"),
    "ecc.mode.pending": ("", False, lambda n, c, r, on: "Enabled"),
    "ecc.errors.uncorrected.aggregate.total": ("", False, _uncorrected),
    "ecc.errors.uncorrected.volatile.total": ("", False, _uncorrected),
    "ecc.errors.corrected.aggregate.total": ("", False, _corrected),
    "ecc.errors.corrected.volatile.total": ("", False, _corrected),
    "ecc.errors.dram.aggregate.total": ("", False, _uncorrected),
    "ecc.errors.dram.volatile.total": ("", False, _uncorrected),
    "ecc.errors.dram-corrected.aggregate.total": ("", False, _corrected),
    "ecc.errors.dram-corrected.volatile.total": ("", False, _corrected),
    "ecc.errors.hbm.sram.critical": ("", False, _none),
    "stats.violation.power": ("", False, lambda n, c, r, on: conditions.violations(n, c, "power")),
    "stats.violation.thermal": ("", False, lambda n, c, r, on: conditions.violations(n, c, "thermal")),
    "clocks.current.soc": ("MHz", False, lambda n, c, r, on: n.board.clock_soc_mhz),
    "clocks.max.soc": ("MHz", False, lambda n, c, r, on: n.board.clock_soc_mhz),
    "clocks.limit.soc": ("MHz", False, lambda n, c, r, on: n.board.clock_soc_mhz),
    "clocks.limit.tpc": ("MHz", False, lambda n, c, r, on: n.board.clock_tpc_mhz),
    "pcie.link.gen.max": ("", False, lambda n, c, r, on: _generation(n.board.pcie_generation, on)),
    "pcie.link.gen.current": ("", False, lambda n, c, r, on: _generation(conditions.pcie_generation(n, c), on)),
    "pcie.link.width.max": ("", False, lambda n, c, r, on: f"x{board.PCIE_WIDTH}"),
    "pcie.link.width.current": ("", False, lambda n, c, r, on: f"x{n.pcie_width(c)}"),
    "pcie.link.speed.max": ("", False, lambda n, c, r, on: conditions.pcie_speed(n.board.pcie_generation)),
    "pcie.link.speed.current": ("", False, lambda n, c, r, on: conditions.pcie_speed(conditions.pcie_generation(n, c))),
}


def view(fields: str, form: str) -> Callable[[node.Node, list[node.Card], Release], str]:
    """A view of the named fields in the named format, both checked."""
    names = [name.strip() for name in fields.split(",")]
    names = [ALIASES.get(name, name) for name in names]
    for name in names:
        if name not in FIELDS:
            raise _unknown(name, tuple(FIELDS))
    header, units = read_format(form)

    def text(simulated: node.Node, cards: list[node.Card], info: Release) -> str:
        known = tuple(each for each in FIELDS if releases.version_key(info.release) >= SINCE.get(each, ()))
        for name in names:
            if name not in known:
                raise UsageError(str(_unknown(name, known)))
        on = strictness.states()
        live = any(FIELDS[name][1] for name in names)
        measured = readings.read_all(simulated) if live else {}
        lines = [", ".join(_title(name) for name in names)] if header else []
        for card in _mixed(simulated, cards) if on["hl-smi-rows-unsorted"] else cards:
            reading = measured.get(card.index) or readings.Reading()
            lines.append(", ".join(_cell(name, simulated, card, reading, units, on) for name in names))
        return "".join(line + "\n" for line in lines)

    return text


def read_format(form: str) -> tuple[bool, bool]:
    """Whether the format asks for a header, and for units."""
    words = [word.strip() for word in form.split(",")]
    if words[0] != "csv" or any(word not in ("noheader", "nounits") for word in words[1:]):
        raise UsageError(f"unknown format '{form}': give csv[,noheader][,nounits]")
    return "noheader" not in words, "nounits" not in words


def _unknown(name: str, known: tuple[str, ...]) -> Exception:
    return UsageError(f"unknown field '{name}' in -Q: the fields are {', '.join(known)}")


def _mixed(simulated: node.Node, cards: list[node.Card]) -> list[node.Card]:
    """Rows are not sorted by index in the vendor's own sample (3, 1, 2, 0, 4, 6, ...)."""
    if len(cards) < 2:
        return cards
    seed = int(simulated.state["seed"])
    mixed = sorted(cards, key=lambda card: ((card.index + 1) * 2654435761 ^ seed * 40503) & 0xFFFFFFFF)
    return mixed if [card.index for card in mixed] != [card.index for card in cards] else mixed[::-1]


def _title(name: str) -> str:
    unit = FIELDS[name][0]
    return f"{name} [{unit}]" if unit else name


def _cell(name: str, simulated: node.Node, card: node.Card, reading: Reading, units: bool, on: Rules) -> str:
    unit, _, getter = FIELDS[name]
    value = getter(simulated, card, reading, on)
    if value is None:
        return f"N/A {unit}".strip() if on["hl-smi-odd-cells"] else "N/A"
    return f"{value} {unit}" if unit and units else str(value)
