"""When a fault is there: at once, some seconds later, from the next boot on, in some of the time, or under load.

A fault keeps what was asked for: ``from`` (the time from which on it may be there), ``boot`` (the time of the boot
during which it was set, and is not there yet), ``share`` (percent of the time) and ``under_load``. All may be combined.
"""

from __future__ import annotations

from . import faults

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container
    from typing import Any

OPTIONS = ("from", "boot", "share", "under_load")

SPELL_S = 5
"""For how long a fault that is there now and then stays there or away: a simulator value."""

# Faults of one moment (a load, a probe, a process, a file) cannot come and go.
UNSCHEDULED = (
    faults.DRIVER_NOT_LOADED,
    faults.DEVICE_ACQUIRED,
    faults.NO_FIRMWARE,
    faults.MODULE_REJECTED,
    faults.BAD_PAGETABLE,
    *faults.MODULE_FILES,
    *faults.NETWORK_FILES,
)


def add(
    fault: dict[str, Any],
    now: float,
    booted_at: float,
    after_s: float | None = None,
    after_boot: bool = False,
    share: int | None = None,
    under_load: bool = False,
) -> None:
    """Write the schedule into a fault that is about to be set; raises ``FaultError`` where it cannot have one."""
    wanted = {
        "from": None if after_s is None else now + after_s,
        "boot": booted_at if after_boot else None,
        "share": share,
        "under_load": under_load or None,
    }
    if all(value is None for value in wanted.values()):
        return
    if fault["kind"] in UNSCHEDULED:
        options = "--after, --at-boot, --share and --under-load"
        raise faults.FaultError(f"{fault['kind']} is a fault of one moment: leave out {options}")
    if after_s is not None and after_s < 0:
        raise faults.FaultError(f"--after was {after_s:g}: give seconds from now on, 0 or more")
    if share is not None and not 0 < share < 100:
        raise faults.FaultError(f"--share was {share}: give the percentage of the time with the fault, 1 to 99")
    fault.update({key: value for key, value in wanted.items() if value is not None})


def is_scheduled(fault: dict[str, Any]) -> bool:
    """Whether the fault may come or go by itself."""
    return any(option in fault for option in OPTIONS)


def is_present(fault: dict[str, Any], now: float, booted_at: float, held: Container[int] | None) -> bool:
    """Whether the fault is there at ``now``; ``held`` are the indexes of the cards that a process holds."""
    if now < fault.get("from", now):
        return False
    if "boot" in fault and booted_at <= fault["boot"]:
        return False
    if "share" in fault and _drawn(fault, now) >= fault["share"]:
        return False
    if fault.get("under_load"):
        return bool(held) if "card" not in fault else held is not None and fault["card"] in held
    return True


def _drawn(fault: dict[str, Any], now: float) -> int:
    """A number from 0 to 99, the same for one fault during one spell."""
    mixed = (int(now // SPELL_S) * 2654435761 + 40503 * fault.get("card", 0) + fault.get("port", 0)) & 0xFFFFFFFF
    return int((((mixed ^ mixed >> 15) * 2246822519 & 0xFFFFFFFF) >> 13) % 100)
