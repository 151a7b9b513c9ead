"""How warm each card is and whether it works, which has to be remembered between two calls of hl-smi.

The file may be written by every user of the node: it holds nothing but simulated thermometers.
"""

from __future__ import annotations

import fcntl
import json
import math
import os

from . import paths, processes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .cards import Holder

HEAT_SECONDS = 25.0
"""Time constant of the temperature."""
DRAW_SECONDS = 2.0
"""Time constant of the power."""
START_SECONDS = 1.0
"""A process this young has not yet given its card anything to do."""
SAMPLE_SECONDS = 1.0
"""How long a process is watched before its load is judged again."""
BUSY_SHARE = 0.05
"""A process that computes for less than this share of the time leaves its card idle."""


class Level:
    """One card: heat and draw from 0 (idle) to 1 (long at work), and the last look at its holder."""

    __slots__ = ("busy", "computed", "draw", "heat", "pid", "seen", "then")

    def __init__(self, then: float) -> None:
        self.then = then
        self.heat = self.draw = 0.0
        self.pid, self.seen, self.computed, self.busy = 0, then, 0.0, False


class Warmth:
    """The levels of every card, read at ``now`` and kept at the end."""

    def __init__(self, now: float) -> None:
        self._now = now
        self._file: int | None = None
        self._levels: dict[int, Level] = {}
        self._changed = False
        try:
            self._file = os.open(paths.at(paths.SENSORS), os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            return  # before boot has made it, every card is cold
        fcntl.flock(self._file, fcntl.LOCK_EX)
        try:
            content = json.loads(os.read(self._file, 65536))
            self._levels = {int(key): _checked(value) for key, value in content.items()}
        except (ValueError, TypeError, AttributeError):
            self._levels = {}

    def follow(self, index: int, holder: Holder | None) -> Level:
        """Bring one card up to now: cooling until its holder started to work, warming since."""
        now = self._now
        level = self._levels.get(index) or Level(now)
        level.then = min(level.then, now)
        started = self._look(level, holder) if holder else None
        if holder is None:
            level.pid, level.busy = 0, False
        since = level.then if index in self._levels else started or now
        working = min(max(started or now, since), now) if level.busy else now
        for name, constant in (("heat", HEAT_SECONDS), ("draw", DRAW_SECONDS)):
            value = getattr(level, name) * math.exp(-max(0.0, working - level.then) / constant)
            setattr(level, name, 1 - (1 - value) * math.exp(-(now - working) / constant))
        level.then = now
        if holder or level.heat > 0.002:
            self._levels[index] = level
            self._changed = True
        elif self._levels.pop(index, None):
            self._changed = True
        return level

    def _look(self, level: Level, holder: Holder) -> float:
        """Whether the holder works, by the time that it computed since the last look; when it started."""
        started, computed = processes.times(holder.pid)
        if level.pid != holder.pid:
            age = self._now - started
            level.pid, level.seen, level.computed = holder.pid, self._now, computed
            level.busy = age > START_SECONDS and computed >= BUSY_SHARE * age
        elif self._now - level.seen >= SAMPLE_SECONDS or self._now < level.seen:
            level.busy = computed - level.computed >= BUSY_SHARE * (self._now - level.seen)
            level.seen, level.computed = self._now, computed
        return started

    def keep(self) -> None:
        """Remember the levels; an idle node has nothing to write."""
        if self._file is None:
            return
        if self._changed:
            content = {
                key: [each.then, each.heat, each.draw, each.pid, each.seen, each.computed, each.busy]
                for key, each in self._levels.items()
            }
            os.ftruncate(self._file, 0)
            os.pwrite(self._file, json.dumps(content).encode(), 0)
        os.close(self._file)
        self._file = None


def _checked(value: list[float]) -> Level:
    then, heat, draw, pid, seen, computed, busy = (float(number) for number in value)
    level = Level(then)
    level.heat, level.draw = min(max(heat, 0.0), 1.0), min(max(draw, 0.0), 1.0)
    level.pid, level.seen, level.computed, level.busy = int(pid), seen, computed, bool(busy)
    return level
