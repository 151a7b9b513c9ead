"""What a card measures: temperature, power, load, memory. Follows who holds the card, never the wall of a data centre.

Each reading is a function of the time, of the card's holder and of how warm the card is, plus a small noise that is the
same for the same second.
"""

from __future__ import annotations

from . import cards, faults, node, paths, processes
from .strictness import is_on
from .warmth import Warmth

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .cards import Holder

MIB = 1024 * 1024
ABSURD_TEMPERATURE_C = 505712272
"""What one public monitor met on a card that could not be read (it skips values above 300)."""

# "Tens of GB" in public reports of memory that a killed process left behind: a simulator value.
KEPT_MIB = 40 * 1024

# Draw of the 12 V rail: 31 W on a Gaudi 2 at rest or nearly so (a public log of 1.12.1); of a Gaudi 3 UNCONFIRMED.
RAIL_12V_IDLE_W = 22
RAIL_12V_BUSY_W = 31


class Process:
    """A compute process as hl-smi lists it."""

    __slots__ = ("memory_mib", "name", "pid")

    def __init__(self, pid: int, name: str, memory_mib: int) -> None:
        self.pid = pid
        self.name = name
        self.memory_mib = memory_mib


class Reading:
    """One card at one moment; what cannot be read is ``None``."""

    __slots__ = (
        "memory_total_mib", "memory_used_mib", "processes", "rail_12v_w", "rail_54v_w", "temperature_c", "utilization",
    )  # fmt: skip

    def __init__(self) -> None:
        self.temperature_c: int | None = None
        self.rail_54v_w: int | None = None
        self.rail_12v_w: int | None = None
        self.utilization: int | None = None
        self.memory_used_mib: int | None = None
        self.memory_total_mib: int | None = None
        self.processes: list[Process] = []

    @property
    def power_w(self) -> int | None:
        """Both rails together."""
        return None if self.rail_54v_w is None or self.rail_12v_w is None else self.rail_54v_w + self.rail_12v_w

    @property
    def memory_free_mib(self) -> int | None:
        """What is left of the card's memory."""
        if self.memory_used_mib is None or self.memory_total_mib is None:
            return None
        return self.memory_total_mib - self.memory_used_mib

    @property
    def memory_utilization(self) -> int | None:
        """Share of the memory in use, in percent."""
        if self.memory_used_mib is None or self.memory_total_mib is None:
            return None
        return self.memory_used_mib * 100 // self.memory_total_mib


def read_all(simulated: node.Node) -> dict[int, Reading]:
    """Readings of every card on the bus, by accelerator index."""
    now = paths.now()
    held = cards.holders()
    warmth = Warmth(now)
    try:
        return {card.index: _read(simulated, card, held.get(card.index), warmth, now) for card in simulated.cards}
    finally:
        warmth.keep()


def _read(simulated: node.Node, card: node.Card, holder: Holder | None, warmth: Warmth, now: float) -> Reading:
    board = simulated.board
    reading = Reading()
    level = warmth.follow(card.index, holder)
    resetting = simulated.status(card) != "Operational"
    if simulated.is_disabled(card):
        return reading  # the driver refuses every question about such a card, so N/A; what hl-smi prints is UNCONFIRMED
    if resetting and not is_on("hl-smi-numbers-in-reset"):
        return reading

    def noise(what: int, width: int) -> int:
        return _noise(simulated.state["seed"] + 31 * card.index + what, now, width)

    used = board.memory_idle_mib
    if simulated.has_fault(faults.MEMORY_KEPT, card.index):
        used += KEPT_MIB
    working = level.busy and not resetting
    reading.utilization = board.utilization_busy + noise(1, 3) if working else 0
    if holder and not resetting:
        mib = min(-(-holder.used_bytes // MIB), board.memory_total_mib - used)
        if processes.is_shown(holder.pid):
            reading.processes.append(Process(holder.pid, processes.name(holder.pid), mib))
        used += mib
    reading.memory_used_mib = used
    # While a card resets its total falls to about what is used (a public report on HLS-2H).
    reading.memory_total_mib = used if resetting else board.memory_total_mib
    reading.temperature_c = _temperature(simulated, card, level.heat)
    draw = 0.0 if resetting else level.draw
    power = board.power_idle_w + (board.power_busy_w - board.power_idle_w) * draw
    reading.rail_54v_w = min(round(power) + noise(2, 3 + round(9 * draw)), simulated.power_limit(card))
    reading.rail_12v_w = round(RAIL_12V_IDLE_W + (RAIL_12V_BUSY_W - RAIL_12V_IDLE_W) * draw)
    return reading


def _temperature(simulated: node.Node, card: node.Card, heat: float) -> int:
    if simulated.has_fault(faults.TEMPERATURE_ABSURD, card.index):
        return ABSURD_TEMPERATURE_C
    if simulated.has_fault(faults.TEMPERATURE_ZERO, card.index):
        return 0
    board = simulated.board
    place = (simulated.state["seed"] >> card.index) % 3 - 1  # some places of the tray are cooler than others
    span = board.temperature_busy_c - board.temperature_idle_c
    return round(board.temperature_idle_c + int(place) + span * heat)


def _noise(seed: int, now: float, width: int) -> int:
    """A whole number from -width to width, the same during one second."""
    mixed = (seed * 2654435761 + int(now) * 40503) & 0xFFFFFFFF
    mixed = (mixed ^ (mixed >> 15)) * 2246822519 & 0xFFFFFFFF
    return (mixed >> 13) % (2 * width + 1) - width


def create_sensors() -> None:
    """Make the sensors' file at boot, with every card cold."""
    paths.write_atomically(paths.SENSORS, "{}", mode=0o666)
