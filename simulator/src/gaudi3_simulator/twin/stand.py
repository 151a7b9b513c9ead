"""A node's folder on this machine, made of a twin: no root, no container; the node's tools run in this process."""

from __future__ import annotations

import contextlib
import io
import json
import os
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from .. import SimulatorError
from ..node import board, faults, modules, paths, releases
from . import product
from .inverse import Verdict, verdicts_of

_TOOLS = {
    "hl-smi": ("hl_smi", "main"),
    "hl_qual": ("hl_qual", "main"),
    "manage_network_ifs.sh": ("manage_network_ifs", "main"),
    "modprobe": ("kmod_tools", "modprobe"),
    "modinfo": ("kmod_tools", "modinfo"),
    "dmesg": ("dmesg", "main"),
    "update-grub": ("boot_loader", "update_grub"),
    "node": ("cli", "main"),
}
_OF_A_RELEASE = ("hl-smi", "hl_qual", "manage_network_ifs.sh")
_UNLOADED = ("habanalabs_ib", "habanalabs_en", "habanalabs_cn", "habanalabs")
#: What shows once the driver meets it, so that it is loaded anew.
_MET_AT_LOAD = (faults.MODULE_REJECTED, faults.NO_FIRMWARE)
_ACQUIRE = "/run/gaudi3-simulator/acquire-status"
_STEP_S = 10.0

#: A node is two thousand small files: in memory, where the machine has that.
MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None

Run = Callable[[list[str]], "tuple[int, str, str]"]


class Stand:
    """One twin that stands in a folder; use it as a context manager, which ends what it started."""

    def __init__(self, folder: Path, twin: dict[str, Any], state: dict[str, Any]) -> None:
        self._folder = folder
        self._twin = twin
        self._state = state
        self._hung = False
        self._now = 1_700_000_000.0

    @contextlib.contextmanager
    def up(self) -> Iterator[Stand]:
        """Boot the node, and put the twin's faults on it."""
        before = dict(os.environ)
        os.environ["GAUDI3_SIMULATOR_ROOT"] = str(self._folder)
        os.environ.pop("ENABLE_CONSOLE", None)
        self._at(self._now)
        try:
            self._boot()
            put(self._twin["faults"], self.run)
            for fault in json.loads(paths.read_text(paths.STATE) or "{}")["faults"]:
                if "pid" in fault:  # the node's own /proc has the name of the process that holds the card
                    self._write(f"/proc/{fault['pid']}/comm", "python3\n")
            self._hung = any(fault["kind"] == faults.HL_SMI_HANG for fault in self._twin["faults"])
            yield self
        finally:
            with contextlib.suppress(OSError):
                self.run(["node", "fault", "--clear-all"])
            os.environ.clear()
            os.environ.update(before)

    def _at(self, moment: float) -> None:
        self._now = moment
        os.environ["GAUDI3_SIMULATOR_NOW"] = str(moment)

    def _boot(self) -> None:
        twin = self._twin
        self._write("/proc/stat", f"cpu 0\nbtime {int(self._now) - 10_000}\n")
        paths.write_atomically(paths.STATE, json.dumps({**self._state, "faults": []}) + "\n")
        folder = f"/lib/modules/{paths.kernel_release()}/updates/dkms"
        info = releases.release_info(twin["release"])
        for name in releases.module_names(twin["release"]):
            text = modules.module_text(name, twin["release"])
            self._write(f"{folder}/{name}.ko", text.replace(info.driver, twin["driver"] or info.driver))
        for path, text in {**releases.firmware_files(twin["release"]), **twin["settings"]}.items():
            self._write(path, text)
        names = ("ib_uverbs", *releases.module_names(twin["release"]))
        self._write("/etc/modules-load.d/site.conf", "".join(f"{name}\n" for name in names))
        if not twin["translated"]:
            self._write("/etc/default/grub", 'GRUB_CMDLINE_LINUX="iommu=pt"\n')
            self._ok("update-grub")
        self._ok("node", "boot")
        if twin["ports_up"]:
            self.run(["manage_network_ifs.sh", "--up"])
        if twin["flow_control"]:
            self.run(["manage_network_ifs.sh", "--set-pfc"])

    def _write(self, path: str, text: str) -> None:
        target = Path(f"{self._folder}{path}")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)

    def _ok(self, *command: str) -> None:
        code, output, error = self.run([*command])
        if code != 0:
            said = (error or output).strip().splitlines() or ["no text"]
            raise SimulatorError(f"{command[0]} of the twin ended with exit code {code}: {said[-1]}")

    def run(self, command: list[str]) -> tuple[int, str, str]:
        """Run a tool of the node as its launcher would."""
        if self._hung and command[0] == "hl-smi":
            raise product.part("_hl_smi.command").HlSmiHung("hl-smi gave no answer in 30 seconds")
        if command[0] not in _TOOLS:
            raise FileNotFoundError(2, f"No such file: {command[0]}")
        module, function = _TOOLS[command[0]]
        main = getattr(import_module(f"gaudi3_simulator.node.{module}"), function)
        options = {"release": self._twin["release"]} if command[0] in _OF_A_RELEASE else {}
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main(command[1:], **options)
        return code, out.getvalue(), err.getvalue()

    def verdicts(self, confirm: int = 3) -> list[Verdict]:
        """What the health engine says of the twin, after as many readings as confirm a finding."""
        collect, command = product.part("_health.collect"), product.part("_hl_smi.command")
        engine = product.part("_health.engine")
        sources = collect.Sources(
            self.run, command.HlSmi("hl-smi", self.run), paths.kernel_release(), str(self._folder),
            ports_script="manage_network_ifs.sh",
        )  # fmt: skip
        tracker = engine.Tracker(confirm=confirm)
        results = tool_results(self._twin["faults"], self._twin["board"], self.run, str(self._folder))
        report = None
        # A port that flaps needs some seconds more until its counter says so.
        flaps = any(fault["kind"] == faults.PORT_FLAPPING for fault in self._twin["faults"])
        for _ in range(confirm + (4 if flaps else 0)):
            report = tracker.step(collect.collect(sources, self._now, "standard", results))
            self._at(self._now + _STEP_S)
        return verdicts_of(report.as_dict() if report else {})


def put(wanted: Iterable[dict[str, Any]], run: Run) -> None:
    """Put faults on a node that is up, by the node's own command."""
    kinds = []
    for fault in wanted:
        code, output, error = run(["node", "fault", *arguments(fault)])
        if code != 0:
            raise SimulatorError(f"{fault['kind']} cannot be put on the twin: {(error or output).strip()}")
        kinds.append(fault["kind"])
    if any(kind in _MET_AT_LOAD for kind in kinds):
        for name in _UNLOADED:
            run(["modprobe", "-r", name])
        run(["modprobe", "habanalabs"])


def arguments(fault: dict[str, Any]) -> list[str]:
    """A fault as the words behind ``fault`` on the command line."""
    options = ("card", "port", "count", "event")
    return [fault["kind"], *(word for name in options if name in fault for word in (f"--{name}", str(fault[name])))]


def tool_results(wanted: list[dict[str, Any]], board_name: str, run: Run, root: str) -> tuple[Any, ...]:
    """What the longer tests end with, as far as a fault of the twin shows in one: hl_qual, acquiring a card."""
    tools, readings = product.part("_health.tools"), product.part("_health.readings")
    found = []
    if any(fault["kind"] == faults.RELEASE_MISMATCH for fault in wanted):
        status = Path(root + _ACQUIRE)
        found.append(readings.ToolResult("acquire", not status.exists(), status.read_text() if status.exists() else ""))
    modes = sorted({fault["event"] for fault in wanted if fault["kind"] == faults.QUAL_FAILED and "event" in fault})
    if modes:
        _code, output, _error = run(["hl-smi", "-Q", "index,bus_id", "-f", "csv,noheader"])
        cards = [(int(line.split(",")[0]), line.split(",")[1].strip()) for line in output.splitlines() if "," in line]
        generation = board.BOARDS[board_name].generation
        found += tools.qualify(run, "hl_qual", generation, sorted(cards), modes)
    return tuple(found)
