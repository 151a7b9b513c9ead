"""The energy that a card has used since its driver was loaded: the power of hl-smi, summed up between two readings.

The sum lies in a file of the node that every user may write, as the thermometers do (``readings``): it holds nothing
but simulated meters. It never falls while the driver stays loaded.
"""

from __future__ import annotations

import fcntl
import json
import os

from . import node, paths

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .hlml_shown import Shown

METERS = paths.RUN + "/energy.json"


def create() -> None:
    """Make the meters' file at boot, with nothing used."""
    paths.write_atomically(METERS, "{}", mode=0o666)


def millijoules(simulated: node.Node, card: node.Card, shown: Shown) -> int:
    """What the card has used up to now."""
    loaded_at = float(simulated.runtime["modules"][node.DRIVER]["loaded_at"])
    now = paths.now()
    text = shown.field("power.draw")
    try:
        file = os.open(paths.at(METERS), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError:
        # Without a file that this user may write: as if the card had always drawn what it draws now.
        return int(max(0.0, now - loaded_at) * int(text or 0) * 1000)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        meters = _parsed(os.read(file, 65536))
        meter = meters.get(str(card.index))
        if meter is None or meter[0] != loaded_at:
            meter = [loaded_at, loaded_at, float(text or 0), 0.0]
        _, then, watts, joules = meter
        power = watts if text is None else float(text)
        joules += max(0.0, now - then) * (watts + power) / 2
        meters[str(card.index)] = [loaded_at, max(now, then), power, joules]
        os.ftruncate(file, 0)
        os.pwrite(file, json.dumps(meters).encode(), 0)
    finally:
        os.close(file)
    return int(joules * 1000)


def _parsed(text: bytes) -> dict[str, list[float]]:
    try:
        return {key: [float(number) for number in meter] for key, meter in json.loads(text).items() if len(meter) == 4}
    except (ValueError, TypeError, AttributeError):
        return {}
