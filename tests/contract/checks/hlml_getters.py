"""habana-pyhlml over the node's libhlml: every getter of every card, compared with hl-smi."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pyhlml
from pyhlml import hlml_types

FIELDS = "index,module_id,bus_id,uuid,serial,name,memory.total,memory.used"
# name of the getter: arguments after the device
GETTERS: dict[str, tuple[Any, ...]] = {
    "Name": (), "PCIInfo": (), "ClockInfo": (), "MaxClockInfo": (), "UtilizationRates": (), "MemoryInfo": (),
    "Temperature": (0,), "TemperatureThreshold": (0,), "PowerUsage": (), "PowerManagementDefaultLimit": (),
    "ECCMode": (), "UUID": (), "MinorNumber": (), "HLRevision": (), "PCBInfo": (), "Serial": (), "ModuleID": (),
    "BoardID": (), "PCIEThroughput": (0,), "PCIEReplayCounter": (), "CurrPCIELinkGeneration": (),
    "CurrPCIELinkWidth": (), "CurrentClocksThrottleReasons": (), "TotalEnergyConsumption": (), "MacAddrInfo": (),
    "FirmwareFITVersion": (), "FirmwareSPIVersion": (), "FWBootVersion": (), "FWOSVersion": (),
    "ReplacedRowsCount": (0,), "ReplacedRowsPendingStatus": (),
}  # fmt: skip
# Genuine libraries answer "not supported" to these: see `hlml-pcie-link-unsupported` of simulator/strictness.yml.
UNSUPPORTED = {"CurrPCIELinkGeneration", "CurrPCIELinkWidth"}


def hl_smi() -> list[list[str]]:
    """The same cards by hl-smi, by index."""
    command = ["hl-smi", "-Q", FIELDS, "-f", "csv,noheader,nounits"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    # hl-smi may list them in another order.
    return sorted((line.split(", ") for line in done.stdout.splitlines()), key=lambda row: int(row[0]))


def text(value: Any) -> str:
    """A string of libhlml."""
    return value.decode() if isinstance(value, bytes) else str(value)


def getters(device: Any) -> list[str]:
    """What fails."""
    failed = []
    for name, arguments in GETTERS.items():
        function = getattr(pyhlml, f"hlmlDeviceGet{name}", None)
        if function is None:
            continue
        try:
            function(device, *arguments)
        except Exception as error:
            if name in UNSUPPORTED and "NotSupported" in type(error).__name__:
                continue
            failed.append(f"{name}: {type(error).__name__}: {error}")
    return failed


def main() -> None:
    """Init, count, every getter, shutdown."""
    pyhlml.hlmlInit()
    rows = hl_smi()
    assert pyhlml.hlmlDeviceGetCount() == len(rows) == 8, pyhlml.hlmlDeviceGetCount()
    failed: list[str] = []
    for index, (_, module, bus, uuid, serial, name, total, used) in enumerate(rows):
        device = pyhlml.hlmlDeviceGetHandleByIndex(index)
        failed += getters(device)
        memory = pyhlml.hlmlDeviceGetMemoryInfo(device)
        seen = {
            "module id": (pyhlml.hlmlDeviceGetModuleID(device), int(module)),
            "bus id": (text(pyhlml.hlmlDeviceGetPCIInfo(device).bus_id), bus),
            "uuid": (text(pyhlml.hlmlDeviceGetUUID(device)), uuid),
            "serial": (text(pyhlml.hlmlDeviceGetSerial(device)), serial),
            "name": (text(pyhlml.hlmlDeviceGetName(device)), name),
            "minor number": (pyhlml.hlmlDeviceGetMinorNumber(device), index),
            "memory total": (memory.total >> 20, int(total)),
            "memory used": (memory.used >> 20, int(used)),
        }
        failed += [
            f"card {index}: {what} is {ours!r}, hl-smi has {theirs!r}" for what, (ours, theirs) in seen.items()
            if ours != theirs
        ]  # fmt: skip
    same = pyhlml.hlmlDeviceGetHandleByPCIBusID(rows[3][2])
    assert text(pyhlml.hlmlDeviceGetUUID(same)) == rows[3][3]
    events = pyhlml.hlmlEventSetCreate()
    pyhlml.hlmlDeviceRegisterEvents(same, hlml_types.HLML_DEFINE.HLML_EVENT_CRITICAL_ERR, events)
    try:
        pyhlml.hlmlEventSetWait(events, 10)
    except Exception as error:  # nothing happens on a sound card
        assert "Timeout" in type(error).__name__ or "Timeout" in str(error), error
    pyhlml.hlmlEventSetFree(events)
    pyhlml.hlmlShutdown()
    print("\n".join(failed))
    if failed:
        sys.exit(f"GetterError: {len(failed)} of {len(rows)} cards' getters fail: {'; '.join(failed[:8])}")


if __name__ == "__main__":
    main()
