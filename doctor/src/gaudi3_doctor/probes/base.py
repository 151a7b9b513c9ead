"""What every probe uses: the line per answer, the card that this process has, and times."""

from __future__ import annotations

import atexit
import importlib
import importlib.metadata
import json
import os
import re
import sys
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

PATIENCE = 120.0
"""Seconds for which a card that is not available is tried again; a job's own patience is 60 s."""
PAUSE = 1.0
REFUSED = "device acquire failed"
"""Of Synapse's texts, what all failures to get a card have in common."""
LEAVE = 10.0
"""Seconds that the functions registered for the end of the process get."""


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
    except BaseException as error:  # a driver that nobody has tried; the next probe still has to run
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

    def free(self) -> int:
        """Bytes of the card that nothing uses, once it has done all that was asked of it."""
        self.wait()
        return int(self.hpu.mem_get_info()[0])


def load(settings: dict[str, Any], first: str = "core") -> Card:
    """Import torch and the vendor's plugin, that part of it first, and take a card."""
    times = {}
    names = ["torch", *(f"habana_frameworks.torch.{name}" for name in dict.fromkeys((first, "core", "hpu")))]
    for name in names:
        started = time.monotonic()
        importlib.import_module(name)
        times[name] = round(time.monotonic() - started, 3)
    torch = importlib.import_module("torch")
    hpu = importlib.import_module("habana_frameworks.torch.hpu")
    core = importlib.import_module("habana_frameworks.torch.core")
    if not hpu.is_available():
        raise RuntimeError("habana_frameworks.torch.hpu.is_available() is False: the plugin finds no card")
    pages = free_huge_pages()
    started = time.monotonic()
    refusals = acquired(hpu.init)
    device = torch.device("hpu", 0)
    first_sum = torch.ones(8, device=device) + 1
    hpu.synchronize()
    if first_sum.cpu().tolist() != [2.0] * 8:
        raise RuntimeError(f"one and one are {first_sum.cpu().tolist()} on the card")
    card = Card(torch, hpu, core, device, float(settings.get("scale", 1.0)))
    card.identity = {
        "device_count": hpu.device_count(),
        "device_name": hpu.get_device_name(),
        "properties": _said(lambda: str(hpu.get_device_properties(0))),
        "acquired_in_seconds": round(time.monotonic() - started, 3),
        "refusals": refusals,
        "free_huge_pages": {"before": pages, "after": free_huge_pages()},
        "import_seconds": times,
        "torch": torch.__version__,
        "plugin": _said(lambda: importlib.metadata.version("habana-torch-plugin")),
        "python": sys.version.split()[0],
        "lazy_mode": os.environ.get("PT_HPU_LAZY_MODE"),
        **which_card(),
    }
    return card


def acquired(init: Callable[[], None]) -> dict[str, Any]:
    """Call `init`, which takes a card into use, until it succeeds: how often it was refused, and why.

    A card resets after its last holder died. The trainer's `gaudi3_scale.hpu.acquire` waits in the same way, but that
    package need not be in the Python that has torch.
    """
    begun = time.monotonic()
    count, text = 0, ""
    while True:
        try:
            init()
            return {"count": count, "last": text} if count else {"count": 0}
        except RuntimeError as error:
            if REFUSED not in str(error).lower() or time.monotonic() - begun >= PATIENCE:
                raise
            count, text = count + 1, str(error)[:600]
            time.sleep(PAUSE)


def leave(code: int = 0) -> NoReturn:
    """End this process at once, after its card was given up in order.

    The destructors of a half-loaded runtime, or of a process group whose peer is gone, may wait for ever. But the
    bridge gives a card up from Python's exit functions (utils/library_loader.py of HabanaAI/gaudi-pytorch-bridge 1.19),
    and the card of a process that ends without them resets. So these are run, for a limited time, and nothing else is.
    """
    ending = threading.Thread(target=atexit._run_exitfuncs, name="exit", daemon=True)
    ending.start()
    ending.join(LEAVE)
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code)


def sleep_while_watched(seconds: float = 3600.0) -> None:
    """Wait to be ended by the process that started this one, and no longer than that one lives."""
    parent = os.getppid()
    deadline = time.monotonic() + seconds
    while os.getppid() == parent and time.monotonic() < deadline:
        time.sleep(0.2)


def free_huge_pages() -> int | None:
    """Of the machine, now."""
    match = re.search(r"^HugePages_Free:\s+(\d+)", Path("/proc/meminfo").read_text(), re.MULTILINE)
    return int(match.group(1)) if match else None


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
    except Exception as error:  # whatever a machine that nobody has seen makes of it
        return {"error": f"{type(error).__name__}: {error}"[:600]}


def _said(function: Callable[[], Any]) -> Any:
    try:
        return function()
    except Exception:  # as above
        return None
