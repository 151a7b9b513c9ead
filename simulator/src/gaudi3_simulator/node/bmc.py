"""What the node's stand-in management controller (BMC) shows: resources of Redfish by their paths.

The paths and the names of the fields are those of the map that Intel's BMC exporter has for Gaudi 3
(HabanaAI/gaudi-bmc-exporter 1.24.1-482, ``zarf/config/prod/g3redfish.yaml``), as far as the collection reads them.
Their values are the simulator's own, in words that the same program knows of Gaudi 2. ``gaudi3_simulator.controllers``
serves them.
"""

from __future__ import annotations

from . import board, faults, readings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .node import Card, Node
    from .readings import Reading

ROOT = "/redfish/v1"
PRODUCT = "gaudi3-simulator stand-in, no management controller is real"

_SERVICE = {"RedfishVersion": "1.15.1", "Product": PRODUCT, "Name": "Root Service"}
_CHASSIS = {"Id": "chassis", "Name": "chassis"}

# Which field a fault of the simulator shows in. The other faults are the host's own, and no controller sees them.
MIRRORED = {
    faults.CARD_MISSING: "the card stays in the list: the controller sees what the host has lost",
    faults.CPU_TIMEOUT: "Oem.Intel.Alert.Watchdog.Heartbeat",
    faults.RESET_FAILED: "Oem.Intel.Alert.Watchdog.Heartbeat",
    faults.TEMPERATURE_ZERO: "Reading of the temperatures",
    faults.THROTTLED_POWER: "Oem.Intel.ClockThrottlingCausedbyPower",
    faults.THROTTLED_THERMAL: "Oem.Intel.ClockThrottlingCausedbyThermal",
    faults.ECC_UNCORRECTED: "Oem.Intel.TotalDoubleECCErrorCount",
    faults.ECC_CORRECTED: "Oem.Intel.TotalSingleECCErrorCount",
    faults.ROW_PENDING: "Oem.Intel.StateSensors.HBMRowReplacements",
    faults.SPI_RELEASE: "Oem.Intel.ManagementFirmwareVersion",
    faults.PORT_DOWN: "Oem.Intel.PCSStatus",
    faults.MAC_TIMEOUT: "Oem.Intel.PHYStatus",
    faults.PORT_FLAPPING: "Oem.Intel.StateToggle",
    faults.PORT_SYMBOL_ERRORS: "Oem.Intel.HighBER",
}

_ALERTS = {
    "Checksum": ("EEPROM", "ppBootPrimary", "ppBootSecondary", "preBootPrimary", "preBootSecondary"),
    "D2D": ("D2DCoreIndex", "D2DErrorCount", "D2DErrorState", "D2DMACIndex"),
    "PLL": ("FirstPLLLockIndex",),
    "RMA": ("D2DFatalReplay", "D2DFatalTraining", "SPIGWFatalReplay"),
    "Security": ("PermissionAccessError",),
    "SecurityAgent": ("LastPublicKeyRevoked", "RevokedPublicKey", "Signature", "Zephyr"),
    "SecuritySPI": ("LastPublicKeyRevoked", "RevokedPublicKey", "Signature", "SVN"),
    "SPIGW": ("SPIGWErrorCount",),
    "VoltageMonitor": ("VoltageChannelIndex", "VoltageMonitorIndex", "VoltageState"),
    "Watchdog": ("Heartbeat", "HW", "TDR"),
}


def resources(simulated: Node) -> dict[str, Any]:
    """Every resource by its path. Cards that fell off the bus are there, too: they still stand in their places."""
    measured = readings.read_all(simulated)
    places = {f"OAM_{card.module_id}": card for card in sorted(simulated.all_cards, key=lambda each: each.module_id)}
    made: dict[str, Any] = {
        "": dict(_SERVICE),
        "Chassis/chassis": {**_CHASSIS, "PowerState": "On"},
        "Systems/system/Processors": _collection("Systems/system/Processors", places),
        "Systems/system/Memory": _collection("Systems/system/Memory", places),
        "Chassis": _collection("Chassis", ["chassis", *places]),
    }
    for name, card in places.items():
        processor = f"Systems/system/Processors/{name}"
        made[processor] = _module(simulated, card, name)
        made[f"{processor}/ProcessorMetrics"] = _metrics(simulated, card)
        made[f"{processor}/CacheMemory/0/MemoryMetrics"] = _sram()
        made[f"Systems/system/Memory/{name}"] = {"Id": name, "CapacityMiB": simulated.board.memory_total_mib}
        made[f"Systems/system/Memory/{name}/MemoryMetrics"] = _hbm(simulated, card)
        numbers = [str(port) for port in range(board.PORTS)]
        made[f"{processor}/Ports"] = _collection(f"{processor}/Ports", numbers)
        for port in range(board.PORTS):
            made[f"{processor}/Ports/{port}"] = _port(simulated, card, port)
        for sensor, content in _sensors(measured.get(card.index)).items():
            made[f"Chassis/{name}/Sensors/{sensor}"] = content
    return {
        f"{ROOT}/{path}".rstrip("/"): {"@odata.id": f"{ROOT}/{path}".rstrip("/"), **content}
        for path, content in made.items()
    }


def switched_off(shown: dict[str, Any]) -> dict[str, Any]:
    """The same while the machine is off: its identity is known as far as it was shown before, nothing is measured."""
    where = ("Systems/system/Processors", "Systems/system/Memory", "Chassis")
    made = {f"{ROOT}/{path}": _collection(path, []) for path in where}
    made[ROOT] = dict(_SERVICE)
    made[f"{ROOT}/Chassis/chassis"] = dict(_CHASSIS)
    made.update({path: dict(content) for path, content in shown.items()})
    for path, content in made.items():
        if "/Sensors/" in path:
            content["Reading"] = None
        elif path == f"{ROOT}/Chassis/chassis":
            content["PowerState"] = "Off"
        elif "/Ports/" in path or path.endswith("Metrics"):
            content.pop("Oem", None)
    return made


def _collection(where: str, names: Any) -> dict[str, Any]:
    members = [{"@odata.id": f"{ROOT}/{where}/{name}"} for name in names]
    return {"Name": where.rpartition("/")[2], "Members": members, "Members@odata.count": len(members)}


def _count(simulated: Node, kind: str, card: Card) -> int:
    return sum(int(fault.get("count", 1)) for fault in simulated.faults(kind, card.index))


def _module(simulated: Node, card: Card, name: str) -> dict[str, Any]:
    keys = {f"key{index}Revocation": 0 for index in range(1, 6)}
    return {
        "Id": name,
        "Name": "Processor",
        "SerialNumber": card.serial,
        "Oem": {
            "Intel": {
                "ManagementFirmwareVersion": card.spi,
                "CPLDVersionTimestamp": simulated.board.cpld_timestamp,
                "KMDVersion": simulated.driver_version,
                "FWImageSource": "Primary",
                **keys,
            }
        },
    }


def _metrics(simulated: Node, card: Card) -> dict[str, Any]:
    alerts = {group: dict.fromkeys(names, 0) for group, names in _ALERTS.items()}
    alerts["Watchdog"]["Heartbeat"] = int(simulated.is_disabled(card))
    alive = not simulated.is_disabled(card)
    return {
        "Oem": {
            "Intel": {
                "BootStage": "Zephyr" if alive else "Preboot",
                "ChipStatus": "Idle",
                "ClockThrottlingCausedbyPower": _count(simulated, faults.THROTTLED_POWER, card),
                "ClockThrottlingCausedbyThermal": _count(simulated, faults.THROTTLED_THERMAL, card),
                "HBMThrottling": 0,
                "Alert": alerts,
            }
        }
    }


def _hbm(simulated: Node, card: Card) -> dict[str, Any]:
    corrected = _count(simulated, faults.ECC_CORRECTED, card)
    uncorrected = _count(simulated, faults.ECC_UNCORRECTED, card)
    return {
        "HealthData": {
            "AlarmTrips": {
                "AddressParityError": False,
                "CorrectableECCError": corrected > 0,
                "UncorrectableECCError": uncorrected > 0,
            }
        },
        "Oem": {
            "Intel": {
                "TotalSingleECCErrorCount": corrected,
                "TotalDoubleECCErrorCount": uncorrected,
                "TotalFatalErrorCount": 0,
                "FatalParityErrorsCount": 0,
                "TotalChangeableRowReplacements": 0,
                "TotalNonChangeableRowReplacements": 0,
                "StateSensors": {
                    "HBMRowReplacements": "Pending" if simulated.has_fault(faults.ROW_PENDING, card.index) else "Normal"
                },
            }
        },
    }


def _sram() -> dict[str, Any]:
    return {"Oem": {"Intel": {"TotalSingleECCErrorCount": 0, "TotalDoubleECCErrorCount": 0, "FatalECCCount": 0}}}


def _port(simulated: Node, card: Card, port: int) -> dict[str, Any]:
    up = port in simulated.ports_up(card)
    broken = simulated.port_fault(faults.MAC_TIMEOUT, card, port)
    return {
        "Id": str(port),
        "CurrentSpeedGbps": simulated.board.port_gbit if up else 0,
        "MaxSpeedGbps": simulated.board.port_gbit,
        "Oem": {
            "Intel": {
                "ExternalLinkStatus": "Active port" if port in simulated.board.external_ports else "Non-active port",
                "PCSStatus": "Connected" if up else "Not connected",
                "PHYStatus": "Not ready" if broken else "Ready",
                "HighBER": int(bool(simulated.port_fault(faults.PORT_SYMBOL_ERRORS, card, port))),
                "StateToggle": int(bool(simulated.port_fault(faults.PORT_FLAPPING, card, port))),
            }
        },
    }


def _sensors(measured: Reading | None) -> dict[str, Any]:
    """Sensors as Redfish has them; nothing is measured of a card off the bus, or that the driver has given up."""
    heat = measured.temperature_c if measured else None
    if heat == readings.ABSURD_TEMPERATURE_C:
        heat = None  # that number is the driver's
    rows = {
        "currentSOCTemperature": (heat, "Temperature", "Cel"),
        "currentHBMTemperature": (heat, "Temperature", "Cel"),
        "currentSOC54VPower": (measured.rail_54v_w if measured else None, "Power", "W"),
        "currentSOC12VPower": (measured.rail_12v_w if measured else None, "Power", "W"),
    }
    return {
        name: {"Name": name, "Reading": reading, "ReadingType": kind, "ReadingUnits": unit}
        for name, (reading, kind, unit) in rows.items()
    }
