"""What a card measures: temperature, power, load, memory. Follows the job on the node, never the wall of a
data centre.

Each reading is a function of the time and of the worker's start, plus a small noise that is the same for
the same second. Only the warmth has to be remembered between calls (a card cools down after its job is
gone), in a file that every user of the node may write: it holds nothing but simulated thermometers.
"""

from __future__ import annotations

import fcntl
import json
import math
import os

from . import board, faults, node, paths, processes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

HEAT_SECONDS = 25.0
"""Time constant of the temperature."""
DRAW_SECONDS = 2.0
"""Time constant of the power."""
MEMORY_SECONDS = 8.0
"""Time constant with which a job fills the card's memory."""
START_SECONDS = 1.0
"""A worker this young has not yet given its card anything to do."""

_LEFTOVER_PID = 31999
_LEFTOVER_NAME = "python3"
_LEFTOVER_MIB = 4096


class Process:
    """A compute process as hl-smi lists it."""

    __slots__ = ("memory_mib", "name", "pid")

    def __init__(self, pid: int, name: str, memory_mib: int) -> None:
        self.pid = pid
        self.name = name
        self.memory_mib = memory_mib


class Reading:
    """One card at one moment; readings are ``None`` while the card is in reset."""

    __slots__ = ("memory_used_mib", "power_w", "processes", "temperature_c", "utilization")

    def __init__(self) -> None:
        self.temperature_c: int | None = None
        self.power_w: int | None = None
        self.utilization: int | None = None
        self.memory_used_mib: int | None = None
        self.processes: list[Process] = []

    @property
    def memory_free_mib(self) -> int | None:
        """What is left of the card's memory."""
        return None if self.memory_used_mib is None else board.MEMORY_TOTAL_MIB - self.memory_used_mib

    @property
    def memory_utilization(self) -> int | None:
        """Share of the memory in use, in percent."""
        return None if self.memory_used_mib is None else self.memory_used_mib * 100 // board.MEMORY_TOTAL_MIB


def read_all(simulated: node.Node) -> dict[int, Reading]:
    """Readings of every card on the bus, by accelerator index."""
    now = paths.now()
    workers = processes.workers()
    warmth = _Warmth(now)
    try:
        return {
            card.index: _read(simulated, card, workers.get(card.module_id), warmth, now) for card in simulated.cards
        }
    finally:
        warmth.keep()


def _read(
    simulated: node.Node, card: node.Card, worker: processes.Worker | None, warmth: _Warmth, now: float
) -> Reading:
    reading = Reading()
    heat, draw = warmth.follow(card.index, worker.started_at if worker else None)
    if simulated.status(card) != "Operational":
        return reading

    def noise(what: int, width: int) -> int:
        return _noise(simulated.state["seed"] + 31 * card.index + what, now, width)

    used = board.MEMORY_IDLE_MIB
    reading.utilization = 0
    if worker:
        age = max(0.0, now - worker.started_at)
        grown = int((board.MEMORY_BUSY_MIB - used) * (1 - math.exp(-age / MEMORY_SECONDS)))
        if age > START_SECONDS:
            reading.utilization = board.UTILIZATION_BUSY + noise(1, 3)
        if worker.visible:
            reading.processes.append(Process(worker.pid, worker.name, grown))
        used += grown
    if simulated.has_fault(faults.DEVICE_ACQUIRED, card.index):
        reading.processes.append(Process(_LEFTOVER_PID, _LEFTOVER_NAME, _LEFTOVER_MIB))
        used += _LEFTOVER_MIB
    reading.memory_used_mib = used
    span = board.TEMPERATURE_BUSY_C - board.TEMPERATURE_IDLE_C
    place = (simulated.state["seed"] >> card.index) % 3 - 1  # some places of the tray are cooler than others
    reading.temperature_c = round(board.TEMPERATURE_IDLE_C + place + span * heat)
    if simulated.has_fault(faults.TEMPERATURE_ZERO, card.index):
        reading.temperature_c = 0
    power = board.POWER_IDLE_W + (board.POWER_BUSY_W - board.POWER_IDLE_W) * draw
    reading.power_w = min(round(power) + noise(2, 3 + round(9 * draw)), simulated.power_limit(card))
    return reading


def _noise(seed: int, now: float, width: int) -> int:
    """A whole number from -width to width, the same during one second."""
    mixed = (seed * 2654435761 + int(now) * 40503) & 0xFFFFFFFF
    mixed = (mixed ^ (mixed >> 15)) * 2246822519 & 0xFFFFFFFF
    return (mixed >> 13) % (2 * width + 1) - width


class _Warmth:
    """How warm each card is, from 0 (idle) to 1 (long at work), as (heat, draw) of different speeds."""

    def __init__(self, now: float) -> None:
        self._now = now
        self._file: int | None = None
        self._levels: dict[str, list[float]] = {}
        self._changed = False
        self._open()

    def _open(self) -> None:
        try:
            self._file = os.open(paths.at(paths.SENSORS), os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            return  # before boot has made it, every card is cold
        fcntl.flock(self._file, fcntl.LOCK_EX)
        try:
            self._levels = {key: _checked(value) for key, value in json.loads(os.read(self._file, 65536)).items()}
        except (ValueError, TypeError, AttributeError):
            self._levels = {}

    def follow(self, index: int, started_at: float | None) -> tuple[float, float]:
        """Bring one card up to now: cooling until the worker started, warming since."""
        then, heat, draw = self._levels.get(str(index), [self._now, 0.0, 0.0])
        then = min(then, self._now)
        idle_until = self._now if started_at is None else min(max(started_at, then), self._now)
        if str(index) not in self._levels and started_at is not None:
            idle_until = min(started_at, self._now)
        heat *= math.exp(-(max(0.0, idle_until - then)) / HEAT_SECONDS)
        draw *= math.exp(-(max(0.0, idle_until - then)) / DRAW_SECONDS)
        busy = self._now - idle_until
        heat = 1 - (1 - heat) * math.exp(-busy / HEAT_SECONDS)
        draw = 1 - (1 - draw) * math.exp(-busy / DRAW_SECONDS)
        if started_at is not None or heat > 0.002:
            self._levels[str(index)] = [self._now, heat, draw]
            self._changed = True
        elif self._levels.pop(str(index), None):
            self._changed = True
        return heat, draw

    def keep(self) -> None:
        """Remember the levels; an idle node has nothing to write."""
        if self._file is None:
            return
        if self._changed:
            text = json.dumps(self._levels).encode()
            os.ftruncate(self._file, 0)
            os.pwrite(self._file, text, 0)
        os.close(self._file)
        self._file = None


def _checked(value: Any) -> list[float]:
    then, heat, draw = (float(number) for number in value)
    return [then, min(max(heat, 0.0), 1.0), min(max(draw, 0.0), 1.0)]


def create_sensors() -> None:
    """Make the sensors' file at boot, with every card cold."""
    paths.write_atomically(paths.SENSORS, "{}", mode=0o666)
