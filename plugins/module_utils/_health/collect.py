# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Reads a node for the health engine: hl-smi, sysfs, the kernel log, the host's settings. Changes nothing.

What a source does not tell becomes a ``ReadFault`` and nothing else. A tool that hangs costs its time limit once: it is
not asked again in the same reading.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from .._cards import iommu, pci
from .._cards.accel import ExternalPort, external_ports
from .._hl_smi.card import Card, read_cards
from .._hl_smi.command import DriverDown, HlSmi, HlSmiHung
from .._hl_smi.hl_smi import HlSmiError, Log, OddCell, Port
from .._host import firewall_table
from .checks import QUICK
from .events import events_of
from .kernel import KMSG, Record, of_kmsg, of_text, read_kmsg
from .readings import HostReading, NodeReading, Process, ReadFault, ToolResult

#: Counters of a port that a check reads, as the tool names them.
PORT_COUNTERS = (
    "pcs_link_restores",
    "pcs_local_faults",
    "cw_uncorrect_accum",
    "pre_FEC_SER_int",
    "pre_FEC_SER_exp (negative)",
)

Run = Callable[[list[str]], "tuple[int, str, str]"]

#: Where modules of the driver lie below /lib/modules/RELEASE.
_MODULE_FOLDERS = ("updates", "extra", "weak-updates", "kernel/drivers/accel/habanalabs")
_MODULE = re.compile(r"(habanalabs\w*)\.ko(?:\.\w+)?$")
_PROCESS = re.compile(r"^\|\s*(\d+)\s+(\d+)\s+\w+\s+(\S+)\s+\d+\s*MiB\s*\|$")
_UNIT = re.compile(r"/([^/\n]+\.service)(?:/|$)", re.M)
_HL_SMI = "hl-smi"


@dataclass(frozen=True)
class Sources:
    """Where to read: ``run`` calls a tool and returns exit code, output and errors; ``root`` is the machine's folder.

    ``hl_smi`` is None where there is none. ``ports_script`` is the vendor's ``manage_network_ifs.sh``, None without it.
    """

    run: Run
    hl_smi: HlSmi | None
    kernel_release: str
    root: str = ""
    table: tuple[str, ...] = (_HL_SMI,)
    ports_script: str | None = None
    huge_pages_wanted: int | None = None


class _Reader:
    """One reading under way."""

    def __init__(self, sources: Sources, depth: str) -> None:
        self._at = sources
        self._depth = depth
        self.faults: list[ReadFault] = []
        self.rows: list[dict[str, str]] = []
        self.log: Log | None = None
        self.ports: dict[str, list[Port]] = {}

    def path(self, *parts: str) -> str:
        """A path of the machine."""
        return self._at.root + "/" + "/".join(parts)

    def hl_smi(self, loaded: bool) -> list[Card]:
        """The cards as hl-smi gives them."""
        tool = self._at.hl_smi
        if tool is None:
            if loaded:
                self.faults.append(ReadFault(_HL_SMI, "it was not found on this host"))
            return []
        odd: list[OddCell] = []
        try:
            self.rows = tool.query()
            self.log = tool.log()
            for row in self.rows:
                ports = tool.links(row["bus_id"], tool.ports(row["bus_id"]))
                deep = self._depth != QUICK
                self.ports[row["bus_id"].lower()] = tool.counters(row["bus_id"], ports) if deep else ports
            cards = [_with_errors(card) for card in read_cards(self.rows, self.log, self.ports, odd)]
        except DriverDown as error:
            if loaded:
                self.faults.append(ReadFault(_HL_SMI, str(error)))
            return []
        except HlSmiError as error:
            self.faults.append(ReadFault(_HL_SMI, str(error)))
            return []
        index = {row["bus_id"].lower(): row["index"] for row in self.rows}
        self.faults += [
            ReadFault(f"accel{index.get(cell.bus_id, '?')} {cell.field}", f"{cell.cell!r} is no number") for cell in odd
        ]
        return sorted(cards, key=lambda card: card.index)

    def tool(self, source: str, *command: str) -> str | None:
        """What a tool prints, None where it fails; that is a fault of the read."""
        try:
            code, output, error = self._at.run(list(command))
        except (OSError, HlSmiHung) as caught:
            self.faults.append(ReadFault(source, str(caught)))
            return None
        if code != 0:
            said = (error or output).strip().splitlines()
            self.faults.append(ReadFault(source, f"exit code {code}: {said[0] if said else 'no text'}"))
            return None
        return output

    def kernel_log(self) -> list[Record]:
        """The kernel's records, with the device of each where there is a /dev/kmsg."""
        try:
            return of_kmsg(read_kmsg(self.path(KMSG)))
        except FileNotFoundError:
            return of_text((self.tool("kernel log", "dmesg") or "").splitlines())
        except OSError as error:
            self.faults.append(ReadFault("kernel log", f"/{KMSG}: {error.strerror}"))
            return []

    def processes(self) -> tuple[Process, ...] | None:
        """The processes that hold cards, from hl-smi's table."""
        output = self.tool(_HL_SMI, *self._at.table)
        if output is None:
            return None
        found = (_PROCESS.match(line.strip()) for line in output.splitlines())
        return tuple(
            Process(int(match.group(2)), match.group(3), int(match.group(1)), self._unit(match.group(2)))
            for match in found
            if match
        )

    def _unit(self, pid: str) -> str:
        match = _UNIT.search(pci.read(self.path("proc", pid, "cgroup")) or "")
        return match.group(1) if match else ""

    def module_files(self) -> dict[str, int] | None:
        """Size in bytes of each module's file for the running kernel; None where the kernel has no folder."""
        top = self.path("lib/modules", self._at.kernel_release)
        if not os.path.isdir(top):
            return None
        found: dict[str, int] = {}
        for folder in _MODULE_FOLDERS:
            here = os.path.join(top, folder)
            for name in pci.listing(here):
                below = os.path.join(here, name)
                for path in [below, *(os.path.join(below, each) for each in pci.listing(below))]:
                    match = _MODULE.match(os.path.basename(path))
                    if match:
                        found[match.group(1)] = os.stat(path).st_size
        return found

    def flow_control(self, cards: list[Card]) -> list[Card]:
        """The cards with the state of flow control on their external ports."""
        if self._depth == QUICK or self._at.ports_script is None or not cards:
            return cards
        output = self.tool("manage_network_ifs.sh", self._at.ports_script, "--check-pfc") or ""
        states = dict(re.findall(r"^(accel\d+)\s*\n\s*pfc (enabled|disabled)", output, re.M))
        known = {name: state == "enabled" for name, state in states.items()}
        return [replace(card, flow_control=known.get(f"accel{card.index}")) for card in cards]

    def number(self, *parts: str) -> int | None:
        """A whole number in a file."""
        value = pci.read(self.path(*parts)) or ""
        return int(value) if value.isdigit() else None

    def clock_offset(self) -> float | None:
        """Seconds by which chrony says the clock is off; None where chrony is not there or knows no source."""
        try:
            code, output, _error = self._at.run(["chronyc", "-c", "tracking"])
            cells = output.strip().split(",")
            return float(cells[4]) if code == 0 and cells[2] != "0" else None
        except (OSError, HlSmiHung, IndexError, ValueError):
            return None

    def firewall(self) -> str | None:
        """What is wrong with the firewall's table; None where nothing is, and where this collection has loaded none."""
        record = firewall_table.read_record(self.path(firewall_table.RECORD.lstrip("/")))
        if record is None:
            return None
        try:
            code, output, error = self._at.run(firewall_table.list_argv(record.nft))
        except (OSError, HlSmiHung) as caught:
            self.faults.append(ReadFault("nft", str(caught)))
            return None
        if code != 0:
            said = " ".join((error or output).split())[:200]
            if firewall_table.NO_TABLE in said:
                return f"the firewall's table {firewall_table.TABLE} is not loaded"
            self.faults.append(ReadFault("nft", f"exit code {code}: {said or 'no text'}"))
            return None
        live = firewall_table.parse(output)
        if live is None or live.version != record.listing.version:
            return None  # another version of nft may write the same table in other words
        parts = firewall_table.drift(record.listing.lines, live.lines)
        return f"the firewall's table is not as it was loaded ({', '.join(parts[:5])})" if parts else None

    def governors(self) -> tuple[str, ...]:
        """The governors that processors run with."""
        top = self.path("sys/devices/system/cpu")
        names = (name for name in pci.listing(top) if re.fullmatch(r"cpu\d+", name))
        values = {pci.read(top, name, "cpufreq/scaling_governor") for name in names}
        return tuple(sorted(value for value in values if value))


def collect(sources: Sources, now: float, depth: str = QUICK, tools: tuple[ToolResult, ...] = ()) -> NodeReading:
    """One reading of a node at ``now``; ``tools`` are what longer tests ended with."""
    reader = _Reader(sources, depth)
    sysfs = reader.path("sys")
    on_bus = pci.cards(sysfs)
    version = pci.driver_version(sysfs)
    loaded = "habanalabs" in pci.modules(sysfs)
    cards = reader.hl_smi(loaded)
    hung = any(fault.source == _HL_SMI for fault in reader.faults)
    processes = None if hung or not cards else reader.processes()
    network = external_ports([card.bus_id for card in on_bus], sysfs)
    cards = reader.flow_control([_with_network(card, network, reader) for card in cards])
    files = reader.module_files() if on_bus else None
    installed = _installed(reader) if files and all(files.values()) else None
    problem = iommu.problem(on_bus)
    host = HostReading(
        pci_cards=len(on_bus),
        iommu=problem,
        driver_loaded=loaded,
        driver_version=version,
        installed_version=installed,
        module_files=files,
        uverbs=sum(name.startswith("uverbs") for name in pci.listing(reader.path("dev/infiniband"))),
        huge_pages=reader.number("proc/sys/vm/nr_hugepages"),
        huge_pages_wanted=sources.huge_pages_wanted,
        governors=reader.governors(),
        clock_offset_s=reader.clock_offset(),
        gaudinet=_text(reader.path("etc/habanalabs/gaudinet.json")),
        firewall=reader.firewall(),
        port_macs=tuple(port.mac for port in network if port.mac),
    )
    events = tuple(events_of(reader.kernel_log()))
    return NodeReading(now, tuple(cards), host, events, processes, tools, tuple(reader.faults))


def _with_network(card: Card, network: list[ExternalPort], reader: _Reader) -> Card:
    """The card whose external ports have what their network devices say."""
    mine = {port.port: port for port in network if port.bus_id == card.bus_id}
    ports = []
    for port in card.ports:
        device = mine.get(port.port)
        if device is None:
            ports.append(port)
            continue
        folder = ("sys/bus/pci/devices", card.bus_id, "net", device.name)
        flags = pci.read(reader.path(*folder, "flags"))
        enabled = None if flags is None else bool(int(flags, 16) & 1)
        ports.append(replace(port, enabled=enabled, mtu=reader.number(*folder, "mtu")))
    return replace(card, ports=tuple(ports))


def _with_errors(card: Card) -> Card:
    """The card whose ports have the counters that checks read, as far as the tool counted."""
    ports = tuple(
        replace(port, errors={name: value for name in PORT_COUNTERS if (value := port.counters.get(name)) is not None})
        if port.counters
        else port
        for port in card.ports
    )
    return replace(card, ports=ports)


def _installed(reader: _Reader) -> str | None:
    output = reader.tool("modinfo", "modinfo", "-F", "version", "habanalabs")
    return (output or "").strip() or None


def _text(path: str) -> str | None:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return None
