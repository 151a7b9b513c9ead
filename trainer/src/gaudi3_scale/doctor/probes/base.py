"""What every probe uses: the line per answer, the card that this process has, and times."""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import os
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any


class Lines:
    """A file of answers that is whole up to its last line, whatever becomes of this process."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def write(self, **found: Any) -> None:
        """Add one line."""
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(found, default=str) + "\n")


def tried(lines: Lines, name: str, function: Callable[[], Any]) -> Any:
    """What the function gives, or None; both ends are written down."""
    lines.write(begin=name)
    started = time.monotonic()
    try:
        found = function()
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        trace = traceback.format_exception(type(error), error, error.__traceback__)
        lines.write(name=name, error=f"{type(error).__name__}: {error}"[:2000], trace="".join(trace)[-3000:])
        return None
    shown = found.identity if isinstance(found, Card) else found
    lines.write(name=name, seconds=round(time.monotonic() - started, 3), data=shown)
    return found


@dataclass
class Card:
    """The card of this process."""

    torch: Any
    hpu: Any
    core: Any
    device: Any
    scale: float
    """1 for the sizes that are meant, less for a quick look."""
    settings: dict[str, Any] = field(default_factory=dict)
    identity: dict[str, Any] = field(default_factory=dict)

    def size(self, full: int, least: int = 8) -> int:
        """A size of a tensor, a multiple of 8."""
        return max(least, int(full * self.scale) // 8 * 8)

    def wait(self) -> None:
        """Until the card has done all that was asked of it."""
        self.core.mark_step()
        self.hpu.synchronize()

    def seconds(self, function: Callable[[], Any]) -> float:
        """How long something takes, the card's work included."""
        self.wait()
        started = time.perf_counter()
        function()
        self.wait()
        return time.perf_counter() - started

    def best(self, function: Callable[[], Any], times: int = 3) -> float:
        """The least of a few repetitions, after one that is not counted."""
        function()
        return min(self.seconds(function) for _ in range(times))


def load(settings: dict[str, Any], launched: bool = False) -> Card:
    """Import torch and the vendor's plugin, and take a card."""
    # Releases and readers of the variable disagree on its default; 0 is eager mode.
    os.environ.setdefault("PT_HPU_LAZY_MODE", "0")
    import torch

    times = {}
    for name in ("habana_frameworks.torch.core", "habana_frameworks.torch.hpu"):
        started = time.monotonic()
        importlib.import_module(name)
        times[name] = round(time.monotonic() - started, 3)
    if launched:
        importlib.import_module("habana_frameworks.torch.distributed.hccl")
    hpu = importlib.import_module("habana_frameworks.torch.hpu")
    core = importlib.import_module("habana_frameworks.torch.core")
    if not hpu.is_available():
        raise RuntimeError("habana_frameworks.torch.hpu.is_available() is False: the plugin finds no card")
    started = time.monotonic()
    device = torch.device("hpu", 0)
    first = torch.ones(8, device=device) + 1
    hpu.synchronize()
    if first.cpu().tolist() != [2.0] * 8:
        raise RuntimeError(f"one and one are {first.cpu().tolist()} on the card")
    card = Card(torch, hpu, core, device, float(settings.get("scale", 1.0)), settings)
    card.identity = {
        "device_count": hpu.device_count(),
        "device_name": hpu.get_device_name(),
        "properties": _said(lambda: str(hpu.get_device_properties(0))),
        "acquired_in_seconds": round(time.monotonic() - started, 3),
        "import_seconds": times,
        "torch": torch.__version__,
        "plugin": _said(lambda: importlib.metadata.version("habana-torch-plugin")),
        "python": sys.version.split()[0],
        "lazy_mode": os.environ["PT_HPU_LAZY_MODE"],
        **which_card(),
    }
    return card


def which_card() -> dict[str, Any]:
    """The card that this process holds: what chose it, and which device file and PCI address that is."""
    open_files = set()
    for link in Path("/proc/self/fd").iterdir():
        try:
            open_files.add(os.readlink(link))
        except OSError:
            continue
    files = sorted(name for name in open_files if name.startswith("/dev/accel/accel") and name[16:].isdigit())
    found = []
    for name in files:
        device = Path("/sys/class/accel") / Path(name).name / "device"
        found.append(
            {
                "file": name,
                "address": device.resolve().name if device.exists() else None,
                "module_id": (_said(partial((device / "module_id").read_text)) or "").strip() or None,
            }
        )
    names = ("HLS_MODULE_ID", "HABANA_VISIBLE_MODULES", "HABANA_VISIBLE_DEVICES", "RANK", "LOCAL_RANK", "WORLD_SIZE")
    return {"cards": found, "variables": {name: os.environ[name] for name in names if name in os.environ}}


def attempt(function: Callable[[], Any]) -> Any:
    """A value, or in its place the words of what went wrong."""
    try:
        return function()
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"[:600]}


def _said(function: Callable[[], Any]) -> Any:
    try:
        return function()
    except Exception:
        return None
