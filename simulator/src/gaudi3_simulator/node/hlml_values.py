"""Every value of a card that libhlml gives, by the name that the library asks for.

What hl-smi shows too comes from ``hlml_shown``. The rest has no place in hl-smi and stands here, with where it is from:
[report] is a public monitor of Gaudi 2 cards whose author probed libhlml 1.24 with firmware 62.6.2 call by call.
"""

from __future__ import annotations

from . import hl_smi, hlml_energy, node, paths, releases
from .hlml_codes import AIP_IS_LOST, INVALID_ARGUMENT, NO_DATA, NOT_SUPPORTED, Refused, number
from .hlml_shown import Shown
from .strictness import is_on

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Field = str | int

# All four thresholds are 90 C in [report]; for Gaudi 3 this is UNCONFIRMED.
_THRESHOLD_C = 90
_THRESHOLDS = 4
_CORRECTED, _UNCORRECTED = 0, 1
_VOLATILE, _AGGREGATE = 0, 1
_SOC, _CLOCKS = 0, 4
# What a card moves over PCIe for each percent of its load: a simulator value, nothing at rest.
_PCIE_BYTES_PER_PERCENT = 10_000_000
_MIB = 1024 * 1024
_WORD = 64
_PORT_WORDS = 2


class Question:
    """A question about one card."""

    __slots__ = ("card", "choices", "info", "shown", "simulated")

    def __init__(self, simulated: node.Node, info: releases.Release, arguments: list[str]) -> None:
        index = number(arguments[0])
        self.simulated = simulated
        self.info = info
        self.choices = arguments[1:]
        cards = [card for card in simulated.cards if card.index == index]
        if not cards:
            raise Refused(AIP_IS_LOST)  # it was there when the program asked for its handle
        self.card = cards[0]
        self.shown = Shown(simulated, self.card, info)

    def choice(self, limit: int) -> int:
        """The number that the program chose, below ``limit``."""
        return self._below(number(self.choices[0]), limit)

    def field(self, name: str) -> str:
        """A field of ``hl-smi -Q``."""
        return _given(self.shown.field(name))

    def entry(self, section: str, label: str) -> str:
        """A value of ``hl-smi -q``."""
        return _given(self.shown.entry(section, label))

    def since(self, *release: int) -> bool:
        """Whether the library is of this release or a later one."""
        return releases.version_key(self.info.release) >= release

    @staticmethod
    def _below(value: int, limit: int) -> int:
        if value >= limit:
            raise Refused(INVALID_ARGUMENT)
        return value


def _digits(text: str) -> int:
    """The number in a text such as ``x16``, ``850 W`` or ``0x1da31060``."""
    text = text.split()[0]
    return int(text, 16) if text.startswith("0x") else int("".join(letter for letter in text if letter.isdigit()))


def _given(text: str | None) -> str:
    if text is None:
        raise Refused(NO_DATA)
    return text


def _pci(asked: Question) -> list[Field]:
    bus_id = asked.field("bus_id")
    domain, bus, place = bus_id.split(":")
    device = _digits(asked.entry("BUS", "Device Id"))
    revision = int(asked.entry("BUS", "Rev"), 16)
    subsystem = _digits(asked.entry("BUS", "Sub System Id"))
    # Speeds as hl-smi prints them; the vendor's page calls them numbers of an enumeration. UNCONFIRMED.
    caps = [asked.field(f"pcie.link.{what}.{when}") for when in ("current", "max") for what in ("speed", "width")]
    return [int(domain, 16), int(bus, 16), int(place[:2], 16), device, revision, subsystem, bus_id, *caps]


def _clock(asked: Question, field: str) -> list[Field]:
    # [report]: only the clock of the SoC can be read.
    if asked.choice(_CLOCKS) != _SOC:
        raise Refused(NOT_SUPPORTED)
    return [int(asked.field(field))]


def _memory(asked: Question) -> list[Field]:
    return [int(asked.field(f"memory.{part}")) * _MIB for part in ("free", "total", "used")]


def _process_utilization(asked: Question) -> list[Field]:
    return [int(asked.field("utilization.aip"))]


_SENSORS = ("AIP", "On Board", "OTHER", "HBM", "VRM", "CTEMP")


def _temperature(asked: Question) -> list[Field]:
    sensor = _SENSORS[asked.choice(len(_SENSORS) if asked.since(1, 17) else 4)]
    if sensor == "AIP":
        return [int(asked.field("temperature.aip"))]
    # [report]: the library knows no VRM and no CTEMP. The hottest of the others stands for all of a kind: UNCONFIRMED.
    entries = asked.shown.entries("TEMPERATURE") if sensor in ("On Board", "HBM") else []
    shown = [text for label, text in entries if label.startswith(sensor)]
    if not shown:
        raise Refused(NOT_SUPPORTED)
    return [max(_digits(_given(None if text == "N/A" else text)) for text in shown)]


def _temperature_threshold(asked: Question) -> list[Field]:
    asked.choice(_THRESHOLDS)
    return [_THRESHOLD_C]


def _unsupported(asked: Question) -> list[Field]:
    raise Refused(NOT_SUPPORTED)


def _performance_state(asked: Question) -> list[Field]:
    # hl-smi shows P0 from the release on whose library knows a list of states; before, the header calls it unsupported.
    if not asked.since(1, 20):
        raise Refused(NOT_SUPPORTED)
    return [0]


def _default_limit(asked: Question) -> list[Field]:
    # This node is this question's own: without a limit that somebody set, it shows the default.
    asked.simulated.runtime["power_limit"] = {}
    return [_milliwatts(asked.field("power.max"))]


def _milliwatts(watts: str) -> int:
    return int(watts) * 1000


def _limit_range(asked: Question) -> list[Field]:
    return [watts * 1000 for watts in asked.simulated.board.power_cap_range_w]


def _set_limit(asked: Question) -> list[Field]:
    if not paths.is_root():
        raise Refused(NOT_SUPPORTED)  # guess: the header has no code for a missing permission
    low, high = asked.simulated.board.power_cap_range_w
    watts = number(asked.choices[0]) // 1000
    if not low <= watts <= high:
        raise Refused(INVALID_ARGUMENT)
    hl_smi._change({"device": asked.card.bus_id, "power": str(watts)}, [asked.card])
    return [watts * 1000]


def _ecc_mode(asked: Question) -> list[Field]:
    return [int(asked.field(f"ecc.mode.{when}") == "Enabled") for when in ("current", "pending")]


def _errors(asked: Question) -> list[Field]:
    error, counter = (Question._below(number(word), 2) for word in asked.choices[:2])
    location = asked.choices[2]
    if location == "none":
        raise Refused(INVALID_ARGUMENT)
    if error == _CORRECTED and not asked.since(1, 20):
        raise Refused(NOT_SUPPORTED)  # the headers' note on corrected errors goes with 1.20
    total, dram = ("uncorrected", "dram") if error == _UNCORRECTED else ("corrected", "dram-corrected")
    kind = "volatile" if counter == _VOLATILE else "aggregate"
    everywhere, in_dram = (int(asked.field(f"ecc.errors.{which}.{kind}.total")) for which in (total, dram))
    return [{"all": everywhere, "dram": in_dram, "sram": max(0, everywhere - in_dram)}[location]]


def _macs(asked: Question) -> list[Field]:
    # Numbered from 1, as hl-smi numbers them and as habana-pyhlml asks by default.
    first = number(asked.choices[0])
    addresses = [text for label, text in asked.shown.entries("NET") if label == "MAC"]
    answered: list[Field] = []
    for place, address in enumerate(addresses, 1):
        if place >= first:
            answered += [place, *(int(byte, 16) for byte in address.split(":"))]
    return answered


def _throughput(asked: Question) -> list[Field]:
    asked.choice(2)
    return [int(asked.field("utilization.aip")) * _PCIE_BYTES_PER_PERCENT]


def _pcie_link(asked: Question, field: str) -> list[Field]:
    if is_on("hlml-pcie-link-unsupported"):
        raise Refused(NOT_SUPPORTED)
    return [_digits(asked.field(field))]


def _throttle_reasons(asked: Question) -> list[Field]:
    return [int(asked.shown.throttled("Power Slowdown")) | int(asked.shown.throttled("Thermal Slowdown")) << 1]


def _violation(asked: Question) -> list[Field]:
    # [report]: the start of the last throttling in microseconds, and nanoseconds of throttling in all.
    field = ("stats.violation.power", "stats.violation.thermal")[asked.choice(2)]
    spent = int(asked.field(field))
    return [int(paths.now() * 1_000_000) if spent else 0, spent]


_CAUSES = ("Single Bit ECC", "Double Bit ECC")


def _rows(asked: Question) -> list[Field]:
    count = int(asked.entry("ROW_REPLACEMENT", _CAUSES[asked.choice(2)]))
    places: list[Field] = []
    for row in range(count):
        places += [(asked.card.index + row) % 8, 0, 0, row % 16, 1 + row]  # made up: no tool shows them
    return [count, *places]


def _rows_pending(asked: Question) -> list[Field]:
    return [int(asked.entry("ROW_REPLACEMENT", "Pending") == "Yes")]


def _ports(asked: Question) -> list[Field]:
    masks = [[0] * _PORT_WORDS, [0] * _PORT_WORDS]
    for port, external in asked.shown.ports().items():
        masks[0][port // _WORD] |= 1 << port % _WORD
        masks[1][port // _WORD] |= int(external) << port % _WORD
    return [*masks[0], *masks[1]]


def _port(asked: Question) -> int:
    port = number(asked.choices[0])
    if port not in asked.shown.ports():
        raise Refused(INVALID_ARGUMENT)
    return port


def _counters(asked: Question) -> list[Field]:
    answered: list[Field] = []
    for name, count in asked.shown.counters(_port(asked)):
        if count.isdigit():
            answered += [name, count]
    return answered


def _processors(asked: Question) -> list[Field]:
    asked.choice(2)
    listed = paths.read_text(f"/sys/bus/pci/devices/{asked.card.bus_id}/local_cpulist")
    if not listed or not listed.strip():
        raise Refused(NOT_SUPPORTED)
    processors: list[Field] = []
    for part in listed.strip().split(","):
        first, _, last = part.partition("-")
        processors += range(int(first), int(last or first) + 1)
    return processors


def _memory_nodes(asked: Question) -> list[Field]:
    asked.choice(2)
    return [asked.card.numa_node]


def _text(field: str) -> Callable[[Question], list[Field]]:
    return lambda asked: [asked.field(field)]


def _product(label: str) -> Callable[[Question], list[Field]]:
    return lambda asked: [asked.entry("PRODUCT", label)]


OF_A_CARD: dict[str, Callable[[Question], list[Field]]] = {
    "name": _text("name"),
    "uuid": _text("uuid"),
    "serial": _text("serial"),
    "minor": lambda asked: [asked.card.index],
    "module": lambda asked: [int(asked.field("module_id"))],
    "board": lambda asked: [int(asked.field("module_id"))],  # "slot number between 0 and 7" in habana-pyhlml
    "status": lambda asked: [asked.simulated.status(asked.card)],
    "pci": _pci,
    "clock": lambda asked: _clock(asked, "clocks.current.soc"),
    "clock-max": lambda asked: _clock(asked, "clocks.max.soc"),
    "clock-limit": lambda asked: _clock(asked, "clocks.limit.soc"),
    "utilization": lambda asked: [int(asked.field("utilization.aip")), int(asked.field("utilization.memory"))],
    "process-utilization": _process_utilization,
    "memory": _memory,
    "temperature": _temperature,
    "temperature-threshold": _temperature_threshold,
    "unsupported": _unsupported,
    "performance-state": _performance_state,
    "power": lambda asked: [_milliwatts(asked.field("power.draw"))],
    "power-mode": lambda asked: [1],
    "power-limit": lambda asked: [_milliwatts(asked.field("power.max"))],
    "power-default-limit": _default_limit,
    "power-limit-range": _limit_range,
    "set-power-limit": _set_limit,
    "energy": lambda asked: [hlml_energy.millijoules(asked.simulated, asked.card, asked.shown)],
    "ecc-mode": _ecc_mode,
    "errors": _errors,
    "rows": _rows,
    "rows-pending": _rows_pending,
    "macs": _macs,
    "ports": _ports,
    "link": lambda asked: [int(asked.shown.link(_port(asked)))],
    "counters": _counters,
    "pcie-throughput": _throughput,
    "pcie-replays": lambda asked: [0],
    "pcie-generation": lambda asked: _pcie_link(asked, "pcie.link.gen.current"),
    "pcie-width": lambda asked: _pcie_link(asked, "pcie.link.width.current"),
    "throttle-reasons": _throttle_reasons,
    "violation": _violation,
    "processors": _processors,
    "memory-nodes": _memory_nodes,
    "revision": _product("HL Revision"),
    "model": _product("Model Number"),
    "pcb-version": _product("PCB Version"),
    "pcb-assembly": _product("PCB Assembly Version"),
    "firmware-fit": _product("Firmware [FIT] Version"),
    "firmware-spi": _product("Firmware [SPI] Version"),
    "firmware-boot": _product("Firmware [UBOOT] Version"),
    "firmware-os": _product("Firmware [OS] Version"),
    "cpld": _product("CPLD Version"),
}
