"""What a report says of its node, in the terms in which the simulator describes one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from .. import RequestError
from ..node import board, releases, store
from . import known, log, table
from .reports import DOCTOR, TABLE, Report
from .values import dicts, is_address, mapping, number, output, text

_LSPCI = re.compile(r"^((?:[0-9a-f]{4}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]) .*(?:Habana|\[1da3:)", re.M)
_VERSION = re.compile(r"^version:\s*(\d+\.\d+\.\d+-[\w.-]+)$", re.M)
_RELEASE = re.compile(r"\d+\.\d+\.\d+(?:-\d+)?")
#: Which simulated board stands for a card, by its PCI device id.
_BOARDS = {
    "1060": "HL-325L",
    "1061": "HL-325L",
    "1062": "HL-325L",
    "1063": "HL-325L",
    "1020": "HL-225",
    "1021": "HL-225",
}


@dataclass
class CardFacts:
    """One card, as far as the report says: what is None is made up for the twin."""

    index: int
    bus_id: str
    module_id: int | None = None
    serial: str | None = None
    uuid: str | None = None
    spi: str | None = None
    numa_node: int | None = None
    product: str | None = None


@dataclass
class Facts:
    """One node. ``notes`` are sentences on what the twin is not; ``unknown`` what nothing here knows, by its path."""

    cards: list[CardFacts]
    board: str
    release: str
    driver: str | None
    kernel: str | None
    system: str | None
    created: str | None
    simulated: bool | None
    translated: bool
    ports_up: bool
    flow_control: bool
    cabled: bool
    settings: dict[str, str] = field(default_factory=dict)
    measured: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    unknown: dict[str, Any] = field(default_factory=dict)


def facts_of(report: Report, name: str) -> Facts:
    """What the report says; ``RequestError`` where it names no card that can be simulated."""
    made = {DOCTOR: _of_doctor, TABLE: _of_table}.get(report.kind, _of_bundle)(report, name)
    made.cards.sort(key=lambda card: card.index)
    if len({card.index for card in made.cards}) < len(made.cards):
        raise RequestError(f"{name}'s report has two cards of one index: it is damaged, so make it again.")
    numbered = [card.module_id for card in made.cards if card.module_id is not None]
    if len({*numbered}) < len(numbered) or any(each >= board.MAX_CARDS for each in numbered):
        for card in made.cards:
            card.module_id = None
        made.notes.append("the report's module numbers are no map of the cards: the twin's are made up")
    shown = sorted({card.product for card in made.cards if card.product and card.product != made.board})
    if shown:
        made.notes.append(f"{', '.join(shown)} is not simulated: cards {made.board} stand for it")
    number = made.release.partition("-")[0]
    if number not in releases.RELEASES:
        made.notes.append(f"release {made.release} is not in the simulator's table: versions end in {releases.MADE_UP}")
    return made


def _of_doctor(report: Report, name: str) -> Facts:
    on_bus = [each for each in dicts(report.section("cards").get("cards")) if is_address(each.get("address"))]
    shown = log.cards(output(report.section("tools").get("log")))
    rows = _rows(output(report.section("tools").get("csv_without_units")))
    firmware = mapping(report.section("firmware").get("sysfs"))
    cards = []
    for place, each in enumerate(on_bus):
        address = str(each["address"]).lower()
        row, said = rows.get(address, {}), shown.get(address, {})
        index = number(row.get("index"), said.get("index"), str(each.get("accel") or "").replace("accel", ""))
        flashed = mapping(firmware.get(address)).get("preboot_btl_ver")
        cards.append(
            CardFacts(
                place if index is None else index,
                address,
                number(row.get("module_id"), each.get("module_id"), said.get("Module ID")),
                log.value(said, "Serial Number"),
                log.value(said, "AIP UUID"),
                log.preboot(said) or log.preboot({"spi": str(flashed)}, "spi"),
                number(each.get("numa_node")),
                row.get("name") or log.value(said, "Product Name"),
            )
        )
    devices = [str(each.get("device") or "") for each in on_bus]
    nets = [net for each in on_bus for net in dicts([*mapping(each.get("net")).values()])]
    machine, modules = report.section("machine"), report.section("modules")
    described = [str(each.get("modinfo") or "") for each in dicts(modules.get("files"))]
    loaded = mapping(mapping(modules.get("loaded")).get("habanalabs")).get("version")
    installed = next((match[1] for text in described if (match := _VERSION.search(text))), None)
    packages = [each for each in dicts(report.section("packages").get("packages")) if "habana" in str(each.get("name"))]
    driver = installed or (str(loaded) if loaded else None)
    system = mapping(machine.get("system"))
    flow = output(report.section("ports_script").get("--check-pfc"))
    up = any(_is_up(net) for net in nets)
    states = [str(net.get("operstate")) for net in nets]
    simulated = report.data.get("simulated")
    made = Facts(
        cards=_checked(cards),
        board=_board(devices, [card.product for card in cards], name),
        release=_release([str(each.get("version")) for each in packages], driver),
        driver=driver,
        kernel=text(machine.get("kernel")),
        system=text(system.get("PRETTY_NAME")),
        created=text(report.data.get("created")),
        simulated=simulated if isinstance(simulated, bool) else None,
        translated=any(each.get("iommu_type") not in (None, "none", "identity") for each in on_bus),
        ports_up=up or not nets,
        flow_control=flow.count("pfc enabled") * 2 > flow.count("pfc ") if "pfc " in flow else up or not nets,
        cabled=not up or "up" in states,
        settings=_settings(machine),
        measured={address: _measured(row) for address, row in rows.items()},
    )
    made.unknown, apart = known.unknown(report.data)
    made.notes += [f"{word} of the report is kept beside the twin and not simulated" for word in apart]
    return made


def _of_bundle(report: Report, name: str) -> Facts:
    shown = log.cards(report.texts["hl-smi-log.txt"])
    cards = [
        CardFacts(
            int(said["index"]),
            address,
            number(said.get("Module ID")),
            log.value(said, "Serial Number"),
            log.value(said, "AIP UUID"),
            log.preboot(said),
            None,
            log.value(said, "Product Name"),
        )
        for address, said in shown.items()
    ]
    seen = _LSPCI.findall(report.texts.get("lspci.txt", ""))
    every = sorted({address if address.count(":") == 2 else f"0000:{address}" for address in seen})
    if not cards:
        cards = _by_accel(report.texts.get("accel.txt", "")) or [
            CardFacts(place, address) for place, address in enumerate(every)
        ]
    match = _VERSION.search(report.texts.get("driver.txt", ""))
    packages = report.texts.get("packages-deb.txt", "") + report.texts.get("packages-rpm.txt", "")
    versions = re.findall(r"habana\S*?[\s-]+(\d+\.\d+\.\d+-\d+)", packages)
    pretty = re.search(r'^PRETTY_NAME="?([^"\n]+)', report.texts.get("files/etc/os-release", ""), re.M)
    kernel = re.search(r"^Linux version (\S+)", report.texts.get("files/proc/version", ""), re.M)
    ids = re.findall(r"(?:Habana.*?Device |1da3:)(10[0-9a-f]{2})", report.texts.get("lspci.txt", ""))
    types = re.findall(r"device_type: (\w+)", report.texts.get("accel.txt", ""))
    kind = _board(ids, [*(card.product for card in cards), *types], name)
    outside = [
        line.split(":")[1].strip()
        for text in (texts for part, texts in report.texts.items() if part.startswith("links-"))
        for line in text.splitlines()
        if (port := re.match(r"port\s+(\d+):", line)) and int(port[1]) in board.BOARDS[kind].external_ports
    ]
    driver = match[1] if match else None
    up = "UP" in outside or not outside
    made = Facts(
        cards=_checked(cards),
        board=kind,
        release=_release(versions, driver),
        driver=driver,
        kernel=kernel[1] if kernel else None,
        system=pretty[1] if pretty else None,
        created=None,
        simulated=None,
        translated=False,
        ports_up=up,
        flow_control=up,  # a bundle does not have it: what differs is a verdict
        cabled=True,
    )
    made.notes += [f"{part} is kept beside the twin and not simulated" for part in known.apart(report.texts)]
    return made


def _of_table(report: Report, name: str) -> Facts:
    text = report.texts["hl-smi.txt"]
    rows, driver = table.rows(text), table.driver(text)
    return Facts(
        cards=_checked([CardFacts(row.index, row.bus_id, product=row.product) for row in rows]),
        board=_board([], [row.product for row in rows], name),
        release=_release([], driver),
        driver=driver,
        kernel=None,
        system=None,
        created=None,
        simulated=None,
        translated=False,
        ports_up=True,
        flow_control=True,
        cabled=True,
        measured={
            row.bus_id: {
                "temperature.aip": str(row.temperature),
                "memory.used": str(row.memory_used),
                "utilization.aip": str(row.utilization),
            }
            for row in rows
        },
        notes=_events(rows),
    )


def _events(rows: Sequence[table.Row]) -> list[str]:
    """What no fault stands for, as a table does not say which error it was."""
    counted = [f"accel{row.index} {row.events}" for row in rows if row.events]
    return [f"uncorrectable events that the table counts are not in the twin: {', '.join(counted)}"] if counted else []


def _by_accel(text: str) -> list[CardFacts]:
    """Cards of a bundle whose hl-smi said nothing, by what sysfs had of each."""
    found: dict[int, dict[str, str]] = {}
    for place, label, value in re.findall(r"^accel(\d{1,3}) (\w+): (.*)$", text, re.M):
        found.setdefault(int(place), {})[label] = value
    return [
        CardFacts(
            index, each["pci_addr"].lower(), number(each.get("module_id")), spi=log.preboot(each, "preboot_btl_ver")
        )
        for index, each in found.items()
        if is_address(each.get("pci_addr"))
    ]


def _board(devices: list[str], products: list[str | None], name: str) -> str:
    for device in devices:
        kind = _BOARDS.get(device.lower().replace("0x", "", 1))
        if kind:
            return kind
    for product in filter(None, products):
        if product in board.BOARDS:
            return product
        if product.startswith(("HL-3", "GAUDI3")):
            return "HL-325L"
        if product.startswith(("HL-225", "HL-288", "GAUDI2")):
            return "HL-225"
    known_ones = ", ".join(board.BOARDS)
    raise RequestError(
        f"{name}'s report names no card that is simulated: make one of a node with cards like {known_ones}."
    )


def _checked(cards: list[CardFacts]) -> list[CardFacts]:
    if len(cards) > board.MAX_CARDS or any(card.index >= board.MAX_CARDS for card in cards):
        raise RequestError(
            f"The report has {len(cards)} cards or an index above {board.MAX_CARDS - 1}: "
            f"a simulated node has 1 to {board.MAX_CARDS} cards."
        )
    return cards


def _release(packages: list[str], driver: str | None) -> str:
    """``x.y.z-build``: that of the packages, else that of the driver, else the simulator's own."""
    named = re.match(r"\d+\.\d+\.\d+", driver or "")
    number = named.group() if named else ""
    found = [match.group() for version in packages if (match := _RELEASE.match(version))]
    of_driver = [each for each in found if not number or each.partition("-")[0] == number]
    if of_driver:
        return of_driver[0]
    number = number or (found[0] if found else "1.23.0")
    return f"{number}-{releases.release_info(number).build}"


def _settings(machine: dict[str, Any]) -> dict[str, str]:
    """Files of the host that a check reads, by path."""
    governor = machine.get("governor")
    if isinstance(governor, str) and governor.isalnum():
        return {"/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": governor}
    return {}


def _measured(row: dict[str, str]) -> dict[str, str]:
    names = ("temperature.aip", "power.draw", "memory.used", "utilization.aip")
    return {name: row[name] for name in names if name in row}


def _rows(text: str) -> dict[str, dict[str, str]]:
    """The cells of a csv with its header, by PCI address."""
    lines = [[cell.strip() for cell in line.split(",")] for line in text.splitlines() if "," in line]
    if not lines:
        return {}
    head = [cell.partition(" [")[0] for cell in lines[0]]
    rows = [dict(zip(head, line, strict=False)) for line in lines[1:] if len(line) == len(head)]
    return {row["bus_id"].lower(): row for row in rows if is_address(row.get("bus_id"))}


def _is_up(net: dict[str, Any]) -> bool:
    flags = str(net.get("flags") or "")
    try:
        return bool(int(flags, 16) & 1)
    except ValueError:
        return net.get("operstate") == "up"


def state(facts: Facts, name: str, wanted: int) -> dict[str, Any]:
    """The simulator's state of such a node with ``wanted`` cards, without faults.

    What the report does not say is made up, as for any node; a card that it does not have gets a place of its own.
    """
    count = max([wanted, *(card.index + 1 for card in facts.cards)])
    profile = "cluster" if facts.cabled else "single"
    made = store.new_state(name, count, facts.release.partition("-")[0], facts.board, profile)
    told = {card.index: card for card in facts.cards}
    addresses, modules = {card.bus_id for card in facts.cards}, {card.module_id for card in facts.cards}
    free = [address for address in board.BUS_IDS if address not in addresses]
    numbers = [number for number in range(board.MAX_CARDS) if number not in modules]
    for place in made["cards"]:
        card = told.get(place["index"], CardFacts(place["index"], ""))
        place["bus_id"] = card.bus_id or free.pop(0)
        place["module_id"] = numbers.pop(0) if card.module_id is None else card.module_id
        said = {"serial": card.serial, "uuid": card.uuid, "spi": card.spi, "numa_node": card.numa_node}
        place.update({key: value for key, value in said.items() if value is not None})
    return made


def missing(facts: Facts, wanted: int) -> list[int]:
    """Indexes of the cards that the report lacks, of ``wanted`` cards and up to the highest index that it has."""
    there = {card.index for card in facts.cards}
    return [index for index in range(max([wanted - 1, *there]) + 1) if index not in there]
