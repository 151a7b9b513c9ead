# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Gathers the evidence of a certificate on a node. Quick parts only read; long ones are kept as they end.

What hl_qual and the training step ended with is written down after each mode and each card, so that a run that was cut
off goes on where it was. It counts for the same cards and driver only, and for some days.
"""

from __future__ import annotations

import json
import os
import pkgutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Optional

from .._cards import accel, pci
from .._certificate import evidence as said
from .._certificate import step as program
from .._certificate.sources import MODES
from .._files import make_folder, write_file
from .._health.actions import INFO, SEVERITIES
from .._health.checks import STANDARD
from .._health.collect import Sources, collect
from .._health.readings import NodeReading
from .._health.tools import last_line, qualify
from .._hl_smi.card import Card, CardPort
from .._hl_smi.command import HlSmiHung
from .._hl_smi.hl_smi import HlSmiError
from .._kinds import count, exact, mapping, moment, parsed

Run = Callable[[list[str]], "tuple[int, str, str]"]

FOLDER = "/var/lib/gaudi3-scale/certificate"
PROGRESS = "progress.json"
DAY_S = 86400
_RATE, _EXPONENT = "pre_FEC_SER_int", "pre_FEC_SER_exp (negative)"
_EVER = {
    "corrected_ever": "ecc.corrected_aggregate",
    "uncorrected_ever": "ecc.uncorrected_aggregate",
    "dram_corrected_ever": "ecc.dram_corrected_aggregate",
    "dram_ever": "ecc.dram_aggregate",
}


@dataclass(frozen=True)
class Long:
    """What of the long parts is asked for, and with which programs; None where there is none."""

    qual: Optional[str] = None
    python: Optional[str] = None
    environment: Mapping[str, str] = field(default_factory=dict)
    why_no_qual: str = ""
    why_no_step: str = ""


class Progress:
    """Results of long parts, kept in a folder for one set of cards and one driver."""

    def __init__(
        self, folder: str, identity: Mapping[str, Any], now: float, days: float, restart: bool = False
    ) -> None:
        self._path, self._identity, self._now = os.path.join(folder, PROGRESS), dict(identity), now
        self._results: dict[str, list[dict[str, Any]]] = {"qual": [], "steps": []}
        self.changed = False
        kept = {} if restart else mapping(parsed(_content(self._path)))
        if kept.get("identity") == self._identity:
            for part in self._results:
                found = kept.get(part)
                self._results[part] = [
                    dict(mapping(each))
                    for each in (found if isinstance(found, list) else [])
                    if now - days * DAY_S <= (moment(mapping(each).get("at")) or 0) <= now + DAY_S
                ]

    def results(self, part: str) -> list[dict[str, Any]]:
        """What is known of ``qual`` or ``steps``."""
        return list(self._results[part])

    def keep(self, part: str, found: list[said.Result]) -> None:
        """Write down what ended."""
        self._results[part] += [asdict(each) for each in found]
        make_folder(os.path.dirname(self._path), 0o700)
        write_file(self._path, json.dumps({"identity": self._identity, **self._results}, sort_keys=True) + "\n", 0o600)
        self.changed = True


def todo(progress: Progress, reading: NodeReading, long: Long) -> list[str]:
    """The modes and cards that are asked for and have no result yet, in words."""
    modes = [f"hl_qual {mode}" for mode in _modes(progress)] if long.qual else []
    return modes + [f"training step of accel{card.index}" for card in _cards(progress, reading)] * bool(long.python)


def run_long(
    progress: Progress, reading: NodeReading, long: Long, qual: Run, step: Run, now: Callable[[], float]
) -> dict[str, str]:
    """Run what is asked for and has no result; why a part has none, by source."""
    silent: dict[str, str] = {}
    if long.qual:
        addresses = [(card.index, card.bus_id) for card in reading.cards]
        generation = pci.generation_of(pci.cards()) or ""
        for mode in _modes(progress):
            why = _held()
            found = [] if why else qualify(qual, long.qual, generation, addresses, (mode,))
            why = why or _held() or next((f"{each.name}: {each.message}" for each in found if each.passed is None), "")
            if why:
                silent[said.QUAL] = why
                break
            progress.keep("qual", [said.Result(mode, each.passed, each.card, each.message, now()) for each in found])
    if long.python:
        for card in _cards(progress, reading):
            why = _held()
            result = said.Result("step", None, card.index, why) if why else _step(long, card, step, now)
            if result.passed is None:
                silent[said.STEP] = f"accel{card.index}: {result.message}"
                break
            progress.keep("steps", [result])
    return silent


def gather(
    sources: Sources, node: str, now: float, reading: NodeReading, silent: Mapping[str, str], progress: Progress
) -> dict[str, Any]:
    """The evidence, as ``_certificate.evidence.read`` takes it."""
    rows, why_rows = _rows(sources)
    unanswered = dict(_faults(reading))
    unanswered.update({said.ROWS: why_rows} if why_rows else {})
    unanswered.update(silent)
    on_bus = pci.cards(sources.root + "/sys")
    known = {card.uuid: card.bus_id for card in map(_with_uuid, reading.cards)}
    if not why_rows and set(rows) - set(known):
        unanswered[said.ROWS] = "it names a card that hl-smi does not show"
    return {
        "format": said.FORMAT,
        "node": node,
        "taken_at": now,
        "board": reading.cards[0].name if reading.cards else None,
        "generation": pci.generation_of(on_bus),
        "machine_serial": (pci.read(sources.root + "/sys/class/dmi/id/product_serial") or "").strip() or None,
        "driver": reading.host.driver_version,
        "uptime_s": _uptime(sources.root),
        "pci_cards": reading.host.pci_cards,
        "cards": [_card(card, rows) for card in reading.cards],
        "events": list(_events(reading)),
        "disks": list(_disks(sources.run)),
        "qual": progress.results("qual"),
        "steps": progress.results("steps"),
        "unanswered": unanswered,
    }


def look(sources: Sources, now: float) -> NodeReading:
    """One reading with the counters of all ports."""
    return collect(sources, now, STANDARD)


def identity(reading: NodeReading) -> dict[str, Any]:
    """Of what results of long parts hold: the cards and the driver."""
    return {"driver": reading.host.driver_version, "serials": sorted(card.serial or "" for card in reading.cards)}


def _modes(progress: Progress) -> list[str]:
    ended = {exact(each.get("name")) for each in progress.results("qual")}
    return [mode for mode in MODES if mode not in ended]


def _cards(progress: Progress, reading: NodeReading) -> list[Card]:
    ended = {count(each.get("card")) for each in progress.results("steps")}
    return [card for card in reading.cards if card.index not in ended]


def _held() -> str:
    holders = [user for user in accel.users() if not user.control]
    return f"process {holders[0]} holds a card" if holders else ""


def _step(long: Long, card: Card, run: Run, now: Callable[[], float]) -> said.Result:
    """The training step of one card, by a program of its own in the Python that has torch."""
    text = (pkgutil.get_data(program.__package__ or "", "step.py") or b"").decode()
    module = str(card.module_id)
    chosen = {**long.environment, "HLS_MODULE_ID": module, "HABANA_VISIBLE_MODULES": module}
    variables = [f"{name}={value}" for name, value in sorted(chosen.items())]
    try:
        code, output, error = run(["env", *variables, long.python or "", "-c", text, "hpu", module])
    except (OSError, HlSmiHung) as caught:
        return said.Result("step", None, card.index, str(caught))
    answer = mapping(parsed(last_line(output)))
    passed, message = answer.get("passed"), answer.get("message")
    if code != 0 or not isinstance(passed, (bool, type(None))) or not isinstance(message, str):
        return said.Result("step", None, card.index, f"exit code {code}: {last_line(error or output)}")
    return said.Result("step", passed, card.index, message, now())


def _rows(sources: Sources) -> tuple[dict[str, list[dict[str, str]]], str]:
    """The replaced rows by the card's UUID, and why they are not known."""
    if sources.hl_smi is None:
        return {}, "hl-smi was not found on this host"
    try:
        found = sources.hl_smi.replaced_rows()
    except HlSmiError as error:
        return {}, str(error)
    rows: dict[str, list[dict[str, str]]] = {}
    for each in found:
        row = {"address": each["replaced_rows.address"], "cause": each["replaced_rows.cause"]}
        rows.setdefault(each["uuid"], []).append(row)
    return rows, ""


@dataclass(frozen=True)
class _Named:
    uuid: str
    bus_id: str


def _with_uuid(card: Card) -> _Named:
    return _Named(str(card.details.get("uuid")), card.bus_id)


def _faults(reading: NodeReading) -> Iterator[tuple[str, str]]:
    for fault in reversed(reading.faults):
        if fault.source in ("hl-smi", "kernel log"):
            yield (said.CARDS if fault.source == "hl-smi" else said.KERNEL), fault.reason


def _card(card: Card, rows: Mapping[str, list[dict[str, str]]]) -> dict[str, Any]:
    uuid = card.details.get("uuid")
    counters = {name: getattr(card, name) for name in said.SINCE_LOAD}
    counters.update({name: card.details.get(place) for name, place in _EVER.items()})
    return {
        "index": card.index,
        "serial": card.serial,
        "uuid": uuid,
        "bus_id": card.bus_id,
        "module_id": card.module_id,
        "status": card.status,
        "rows_pending": card.rows_pending,
        "counters": counters,
        "pcie": {
            "gen": card.pcie_gen, "gen_max": card.pcie_gen_max,
            "width": card.pcie_width, "width_max": card.pcie_width_max,
        },
        "firmware": dict(card.firmware),
        "rows": rows.get(str(uuid), []),
        "ports": [_port(port) for port in card.ports],
    }  # fmt: skip


def _port(port: CardPort) -> dict[str, Any]:
    rate = None
    if _RATE in port.errors and _EXPONENT in port.errors:
        rate = port.errors[_RATE] * 10.0 ** -min(port.errors[_EXPONENT], 300)
    return {
        "port": port.port, "type": port.type, "link": port.link, "restores": port.errors.get("pcs_link_restores"),
        "uncorrected": port.errors.get("cw_uncorrect_accum"), "symbol_rate": rate,
    }  # fmt: skip


def _events(reading: NodeReading) -> Iterator[dict[str, str]]:
    """Events that are more than a note, each once, the worst first: of a long list the rest is cut."""
    distinct = {
        (each.component, each.severity, f"{each.wording}: {each.line}"): None
        for each in reading.events
        if each.severity != INFO
    }
    for component, severity, text in sorted(distinct, key=lambda each: -SEVERITIES.index(each[1])):
        yield {"component": component, "severity": severity, "text": text}


def _uptime(root: str) -> Optional[float]:
    words = (pci.read(root + "/proc/uptime") or "").split()
    try:
        return float(words[0])
    except (IndexError, ValueError):
        return None


def _disks(run: Run) -> Iterator[dict[str, Any]]:
    """Hours of the disks, where smartctl is there: nothing tells those of the cards."""
    for device in _asked(run, "--scan").get("devices") or []:
        name = mapping(device).get("name")
        if isinstance(name, str):
            hours = mapping(_asked(run, "--attributes", name).get("power_on_time")).get("hours")
            if isinstance(hours, int):
                yield {"name": name, "hours": hours}


def _asked(run: Run, *arguments: str) -> Mapping[str, Any]:
    try:
        return mapping(parsed(run(["smartctl", "--json=c", *arguments])[1]))
    except (OSError, HlSmiHung):
        return {}


def _content(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""
