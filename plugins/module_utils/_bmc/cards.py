# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""What a management controller says of its Gaudi 3 cards, by the published model.

Resources and fields are those of the map in HabanaAI/gaudi-bmc-exporter (``zarf/config/prod/g3redfish.yaml``, release
1.24.1-482), whose program looks names up without regard to case, and so does this. What kinds of values the fields have
is not published: a number, a text and a truth value are each taken as they are.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Optional, Union

from .._health.ras_alerts import ALERT_FIELDS, AlertField
from .._kinds import ENTRIES, mapping, number, text
from .._printable import printable
from .redfish import ROOT, Controller, Unread

Value = Union[int, float, str, bool, None]

#: No machine of the vendor has more cards; a longer list is cut.
MOST_CARDS = 16
#: A card has 24 ports.
MOST_PORTS = 24
#: Resources that are named as missing.
NAMED = 20
_OAM = re.compile(r"OAM_(\d{1,3})")
_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_NUMBER = re.compile(r"[+-]?\d{1,30}(?:\.\d{1,30})?(?:[eE][+-]?\d{1,3})?")

FIRMWARE = {
    "management": "ManagementFirmwareVersion",
    "source": "FWImageSource",
    "cpld_timestamp": "CPLDVersionTimestamp",
    "driver": "KMDVersion",
    "rdma_driver": "RDMADriverVersion",
    "security_version": "CurrentSVN",
    "least_security_version": "MinimalSVN",
    **{f"key{index}_revocation": f"key{index}Revocation" for index in range(1, 6)},
}
STATUS = {
    "boot_stage": "BootStage",
    "chip": "ChipStatus",
    "power": "PowerState",
    "activity": "DeviceActivity",
    "throttled_by_power": "ClockThrottlingCausedbyPower",
    "throttled_by_heat": "ClockThrottlingCausedbyThermal",
    "hbm_throttled": "HBMThrottling",
    "power_reduced": "PowerReduction",
    "emergency_brake": "EmergencyBreak",
    "serdes": "SERDESAvailability",
    "interconnect_errors": "InternalInterconnectErrors",
}
MEMORY = {
    "single_errors": "TotalSingleECCErrorCount",
    "double_errors": "TotalDoubleECCErrorCount",
    "fatal_errors": "TotalFatalErrorCount",
    "fatal_parity_errors": "FatalParityErrorsCount",
    "rows_replaced_changeable": "TotalChangeableRowReplacements",
    "rows_replaced_for_good": "TotalNonChangeableRowReplacements",
    "banks_with_many_replaced_rows": "BanksWithHighReplacedRows",
    "spare_rows": "StateSensors.HBMSpareRowAvailability",
    "row_replacements": "StateSensors.HBMRowReplacements",
    "unrepairable": "StateSensors.HBMMBISTUnrepairable",
}
SRAM = {
    "single_errors": "TotalSingleECCErrorCount",
    "double_errors": "TotalDoubleECCErrorCount",
    "fatal_errors": "FatalECCCount",
    "repair_failure": "StateSensors.SRAMRepairFailure",
}
ALARMS = {
    "corrected": "HealthData.AlarmTrips.CorrectableECCError",
    "uncorrected": "HealthData.AlarmTrips.UncorrectableECCError",
    "address_parity": "HealthData.AlarmTrips.AddressParityError",
}
PORT = {
    "link": "ExternalLinkStatus",
    "pcs": "PCSStatus",
    "phy": "PHYStatus",
    "high_ber": "HighBER",
    "ber_corrected": "BERCorrectable",
    "ber_uncorrected": "BERUncorrectable",
    "initialised_again": "ReInitializations",
    "toggled": "StateToggle",
}
TEMPERATURES = {
    "soc": "currentSOCTemperature",
    "hbm": "currentHBMTemperature",
    "card": "cTemp",
    "board": "current_board_temperature",
    "vrm": "current_vrm_temperature",
}
RAILS = {"soc_54v": "currentSOC54VPower", "soc_12v": "currentSOC12VPower"}
#: Redfish's units of a sensor, with the unit that they become here and by which factor.
UNITS = {"Cel": ("Cel", 1.0), "W": ("W", 1.0), "mW": ("W", 0.001)}

QUIET, RAISED, UNCLEAR = "quiet", "raised", "unclear"
#: What the same program takes texts of Gaudi 2's alerts for; a Gaudi 3's are not published.
QUIET_WORDS = frozenset({"", "normal", "no failure", "false"})
RAISED_WORDS = frozenset({"true", "fail"})


@dataclass(frozen=True)
class Sensor:
    """A reading. Without a known unit it is shown as it came, and no metric is made of it."""

    reading: Optional[float]
    unit: Optional[str]
    upper_caution: Optional[float] = None
    upper_critical: Optional[float] = None


@dataclass(frozen=True)
class Alert:
    """A field of a card's alerts that is raised, or whose value has no known meaning."""

    field: str
    name: str
    state: str
    value: Value
    severity: str
    action: str
    message: str


@dataclass(frozen=True)
class Port:
    """A network port."""

    port: str
    speed_gbps: Value
    state: Mapping[str, Value]


@dataclass(frozen=True)
class Card:
    """One card, as far as the controller knows it."""

    oam: int
    serial: Optional[str] = None
    firmware: Mapping[str, Value] = field(default_factory=dict)
    status: Mapping[str, Value] = field(default_factory=dict)
    temperatures: Mapping[str, Sensor] = field(default_factory=dict)
    power: Mapping[str, Sensor] = field(default_factory=dict)
    memory: Mapping[str, Value] = field(default_factory=dict)
    sram: Mapping[str, Value] = field(default_factory=dict)
    alerts: tuple[Alert, ...] = ()
    ports: tuple[Port, ...] = ()


@dataclass(frozen=True)
class Machine:
    """All that was read."""

    read_at: float
    product: Optional[str]
    power: Optional[str]
    cards: tuple[Card, ...]
    absent: tuple[str, ...]
    """Resources that this controller does not have."""
    unread: tuple[str, ...]
    """Resources that it did not give, each with the reason."""

    @property
    def said(self) -> list[str]:
        """What a person has to know of it, a sentence each."""
        found = [] if self.power in ("On", None) else [f"the machine's power is {self.power}"]
        found += [alert.message for card in self.cards for alert in card.alerts]
        found += [] if self.cards or self.unread else ["the controller lists no card"]
        return found + ([f"{len(self.unread)} answers are missing: {self.unread[0]}"] if self.unread else [])

    def as_facts(self) -> dict[str, Any]:
        """As users see it."""
        facts = asdict(self)
        facts["absent"], facts["unread"] = list(self.absent[:NAMED]), list(self.unread[:NAMED])
        facts["cards"] = [
            {**card, "alerts": list(card["alerts"]), "ports": list(card["ports"])} for card in facts["cards"]
        ]
        return {**facts, "card_count": len(self.cards), "complete": not self.unread}


class Reader:
    """Reads resource by resource, and notes what is missing."""

    def __init__(self, controller: Controller, tell: Callable[[], float] = time.time) -> None:
        self._controller = controller
        self._tell = tell
        self._absent: list[str] = []
        self._unread: list[str] = []

    def machine(self, with_ports: bool = False) -> Machine:
        """Everything; refuses where the controller itself cannot be read."""
        root = self._controller.first()
        chassis = self._get("Chassis/chassis")
        processors = self._members("Systems/system/Processors")
        memories = self._members("Systems/system/Memory")
        trays = self._members("Chassis")
        cards = [
            self._card(oam, processors[oam], memories.get(oam), trays.get(oam), with_ports)
            for oam in sorted(processors)[:MOST_CARDS]
        ]
        return Machine(
            round(self._tell(), 3), text(look(root, "Product"), 200), text(look(chassis, "PowerState"), 40),
            tuple(cards), tuple(self._absent), tuple(self._unread),
        )  # fmt: skip

    def _card(self, oam: int, processor: str, memory: Optional[str], tray: Optional[str], with_ports: bool) -> Card:
        module = self._get(processor)
        metrics = self._get(f"{processor}/ProcessorMetrics")
        hbm = self._get(f"{memory}/MemoryMetrics") if memory else {}
        sram = self._get(f"{processor}/CacheMemory/0/MemoryMetrics")
        return Card(
            oam,
            text(look(module, "SerialNumber"), 100),
            values(module, FIRMWARE, "Oem.Intel."),
            values(metrics, STATUS, "Oem.Intel."),
            self._sensors(tray, TEMPERATURES, "Cel"),
            self._sensors(tray, RAILS, "W"),
            {
                **values(hbm, MEMORY, "Oem.Intel."),
                **{f"alarm_{name}": each for name, each in values(hbm, ALARMS).items()},
            },
            values(sram, SRAM, "Oem.Intel."),
            tuple(alerts_of(oam, metrics)),
            tuple(self._ports(processor)) if with_ports else (),
        )

    def _ports(self, processor: str) -> Iterable[Port]:
        for name in self._names(f"{processor}/Ports")[:MOST_PORTS]:
            port = self._get(f"{processor}/Ports/{name}")
            if port:
                yield Port(name, value_of(look(port, "currentSpeedGbps")), values(port, PORT, "Oem.Intel."))

    def _sensors(self, tray: Optional[str], names: Mapping[str, str], unit: str) -> dict[str, Sensor]:
        found = {name: self._get(f"{tray}/Sensors/{each}") for name, each in names.items()} if tray else {}
        return {name: sensor_of(content, unit) for name, content in found.items() if content}

    def _members(self, where: str) -> dict[int, str]:
        """The paths of the cards among the members of a collection; the first of a number counts."""
        made: dict[int, str] = {}
        for name in self._names(where):
            found = _OAM.search(name)
            if found:
                made.setdefault(int(found[1]), f"{where}/{name}")
        return made

    def _names(self, where: str) -> list[str]:
        """The last parts of a collection's links. Paths are made of them, so that a link leads nowhere else."""
        members = look(self._get(where), "Members")
        links = [look(mapping(each), "@odata.id") for each in members[:ENTRIES]] if isinstance(members, list) else []
        names = [link.rstrip("/").rpartition("/")[2] for link in links if isinstance(link, str)]
        return [name for name in names if _ID.fullmatch(name) and name.strip(".")]

    def _get(self, path: str) -> Mapping[str, Any]:
        """A resource; nothing where it is missing, which is noted."""
        try:
            return self._controller.get(f"{ROOT}/{path}")
        except Unread as error:
            if error.is_absent:
                self._absent.append(path)
            else:
                self._unread.append(f"{path}: {error}")
        return {}


def look(content: Mapping[str, Any], path: str) -> Any:
    """The value at a path of names, whatever their case; None where there is none."""
    found: Any = content
    # A name of Redfish itself, such as @odata.id, has a dot of its own.
    for part in [path] if path.startswith("@") else path.split("."):
        by_name = {name.lower(): each for name, each in mapping(found).items()}
        found = by_name.get(part.lower())
    return found


def values(content: Mapping[str, Any], names: Mapping[str, str], below: str = "") -> dict[str, Value]:
    """The values that are there, by their names in the facts."""
    found = {name: value_of(look(content, below + path)) for name, path in names.items()}
    return {name: each for name, each in found.items() if each is not None}


def value_of(value: object) -> Value:
    """A value of a known kind; a text that is a number as that number."""
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        stripped = value.strip()
        if not _NUMBER.fullmatch(stripped):
            return printable(stripped, 200)
        return number(int(stripped)) if stripped.lstrip("+-").isdigit() else number(float(stripped))
    return number(value)


def sensor_of(content: Mapping[str, Any], unit: str) -> Sensor:
    """A sensor's reading in the unit, where the controller names one that can become it."""
    given = text(look(content, "ReadingUnits"), 20)
    becomes, factor = UNITS.get(given or "", (None, 1.0))
    factor = factor if becomes == unit else 1.0

    def scaled(path: str) -> Optional[float]:
        found = value_of(look(content, path))
        is_number = isinstance(found, (int, float)) and not isinstance(found, bool)
        return round(found * factor, 3) if is_number and isinstance(found, (int, float)) else None

    return Sensor(
        scaled("Reading"), becomes if becomes == unit else None,
        scaled("Thresholds.UpperCaution.Reading"), scaled("Thresholds.UpperCritical.Reading"),
    )  # fmt: skip


def state_of(value: Value) -> str:
    """Whether a field of alerts is raised: by the vendor's own panels, where its number is not 0."""
    if value is None or value is False or value == 0:
        return QUIET
    if isinstance(value, str):
        word = value.strip().lower()
        return QUIET if word in QUIET_WORDS else RAISED if word in RAISED_WORDS else UNCLEAR
    return RAISED


def alerts_of(oam: int, metrics: Mapping[str, Any]) -> Iterable[Alert]:
    """The fields that are raised, and those whose value says nothing that is known."""
    for each in ALERT_FIELDS:
        value = value_of(look(metrics, f"Oem.Intel.Alert.{each.path}"))
        state = state_of(value)
        if state != QUIET and not each.is_place:
            yield Alert(
                each.path, each.name, state, value, each.severity, each.action, _sentence(oam, each, state, value)
            )


def _sentence(oam: int, alert: AlertField, state: str, value: Value) -> str:
    if state == UNCLEAR:
        return f'OAM_{oam}: {alert.path} has the value "{value}", whose meaning is not published'
    return f"OAM_{oam}: {alert.wording} ({alert.path} is {value})"
