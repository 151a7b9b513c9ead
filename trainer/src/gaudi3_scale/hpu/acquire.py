"""Taking this process's Gaudi card into use, which may have to wait: a card resets after its last holder died.

The driver resets a card whose holder was killed, and no public source says for how long. The bridge keeps nothing of an
attempt that failed (HPUDeviceContextImpl::CreateDevice in HPUDevice.cpp of HabanaAI/gaudi-pytorch-bridge 1.19), so the
same process may try again.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from gaudi3_scale.errors import TrainerError
from gaudi3_scale.hpu.pci import entries, shown

PATIENCE = 60.0
"""Seconds for which a card that is not available is tried again, where `train.acquire_timeout` says nothing."""
PAUSE = 1.0
LEAVE = 10.0
"""Seconds that the functions registered for the end of the process get."""
REFUSED = "device acquire failed"
"""Of Synapse's texts, what all failures to get a card have in common."""
SYSFS = Path("/sys")
PROC = Path("/proc")


def acquire(init: Callable[[], None], patience: float) -> None:
    """Call `init`, which takes the card into use, until it succeeds; TrainerError after `patience` seconds."""
    begun = time.monotonic()
    said = False
    while True:
        try:
            return init()
        except RuntimeError as error:
            if REFUSED not in str(error).lower():
                raise
            waited = time.monotonic() - begun
            if waited >= patience:
                raise TrainerError(_sentence(error, waited)) from error
            if not said:
                said = True
                first = str(error).splitlines()[0]
                print(f"gaudi3-train: waiting up to {patience:g} s for a card: {first}", file=sys.stderr, flush=True)
            time.sleep(min(PAUSE, max(0.0, patience - waited)))


def give_up() -> None:
    """Give the card up in order before a process ends by `os._exit`, which runs no exit functions.

    The bridge registers its own with `atexit` (utils/library_loader.py of HabanaAI/gaudi-pytorch-bridge 1.19 has
    `_hpu_C.cleanup`), under names that differ between releases, so all of this process run. A card that still waits for
    a peer may keep them waiting: then the process ends without them, as a kill would end it, and the card resets.
    """
    if "habana_frameworks.torch" not in sys.modules:
        return
    ending = threading.Thread(target=atexit._run_exitfuncs, name="exit", daemon=True)
    ending.start()
    ending.join(LEAVE)


@dataclass(frozen=True)
class Card:
    """A card as its driver shows it, and the processes that hold it, as far as this user sees them."""

    name: str
    module: str
    status: str
    holders: tuple[str, ...]

    def __str__(self) -> str:
        held = (
            f"held by process {', '.join(self.holders)}" if self.holders else "held by no process that this user sees"
        )
        return f"{self.name} (module {self.module}) is {self.status} and {held}"


def cards() -> list[Card]:
    """Those that this process may have: the one of HLS_MODULE_ID, else those of HABANA_VISIBLE_MODULES, else all."""
    wanted = (os.environ.get("HLS_MODULE_ID") or os.environ.get("HABANA_VISIBLE_MODULES") or "").split(",")
    holders = _holders()
    found = []
    for entry in sorted(entries(SYSFS / "class" / "accel"), key=lambda path: (len(path.name), path.name)):
        module, status = shown(entry / "device" / "module_id"), shown(entry / "device" / "status")
        if entry.name.removeprefix("accel").isdigit() and (wanted == [""] or module in wanted):
            held = tuple(holders.get(entry.name, ()))
            found.append(Card(entry.name, module or "unknown", status or "without a status", held))
    return found


def _sentence(error: RuntimeError, waited: float) -> str:
    about = "; ".join(str(card) for card in cards()) or "no card is in /sys/class/accel"
    return (
        f"No card could be taken into use within {waited:.0f} s ({str(error).splitlines()[0].rstrip('.')}): {about}. "
        "End the process that holds it, or look at dmesg for why it does not come back."
    )


def _holders() -> dict[str, list[str]]:
    """The processes with each card's file open, of this user's and where it may see them of others."""
    found: dict[str, list[str]] = {}
    for process in entries(PROC):
        if process.name.isdigit() and process.name != str(os.getpid()):
            opened = {_target(link) for link in entries(process / "fd")}
            for path in sorted(path for path in opened if path.startswith("/dev/accel/accel")):
                found.setdefault(Path(path).name, []).append(f"{process.name} ({shown(process / 'comm') or '?'})")
    return found


def _target(link: Path) -> str:
    try:
        return str(link.readlink())
    except OSError:
        return ""
