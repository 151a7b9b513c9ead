"""habana-pyhlml, the vendor's Python package, unmodified."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest
from hlml_program import AIP_IS_LOST, DRIVER_NOT_LOADED, INVALID_ARGUMENT, install
from simulated_machine import Machine

from gaudi3_simulator.node import faults

# The package's own import of its own module.
pytestmark = pytest.mark.filterwarnings("ignore:pyhlml.hlml_types is deprecated:DeprecationWarning")


@pytest.fixture
def pyhlml(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The package, loading the library of this node."""
    import pyhlml
    from pyhlml import hlml_lib

    path = str(install(machine, "1.24.0-1007"))
    monkeypatch.setattr(hlml_lib.LibHLML.__init__, "__defaults__", (path,))
    yield pyhlml
    main: Any = sys.modules["pyhlml.main"]
    if main._hlmlOBJ is not None:
        main._hlmlOBJ.get_func_ptr("hlml_shutdown")()


def test_every_getter_answers(machine: Machine, pyhlml: Any) -> None:
    pyhlml.hlmlInit()
    assert pyhlml.hlmlDeviceGetCount() == 8
    fields = "bus_id,uuid,serial,module_id,name,memory.used,power.draw,temperature.aip,ecc.errors.dram.volatile.total"
    for index, shown in enumerate(machine.csv(fields)):
        device = pyhlml.hlmlDeviceGetHandleByIndex(index)
        told = [
            pyhlml.hlmlDeviceGetPCIInfo(device).bus_id.decode(),
            pyhlml.hlmlDeviceGetUUID(device).decode(),
            pyhlml.hlmlDeviceGetSerial(device).decode(),
            str(pyhlml.hlmlDeviceGetModuleID(device)),
            pyhlml.hlmlDeviceGetName(device).decode(),
            str(pyhlml.hlmlDeviceGetMemoryInfo(device).used >> 20),
            str(pyhlml.hlmlDeviceGetPowerUsage(device) // 1000),
            str(pyhlml.hlmlDeviceGetTemperature(device, 0)),
            str(pyhlml.hlmlDeviceGetMemoryErrorCounter(device, 1, 0, 1)),
        ]
        assert told == shown
    device = pyhlml.hlmlDeviceGetHandleByUUID(machine.csv("uuid")[3][0])
    assert pyhlml.hlmlDeviceGetMinorNumber(device) == 3
    assert pyhlml.hlmlDeviceGetUtilizationRates(device).memory == int(machine.csv("utilization.memory")[3][0])
    assert pyhlml.hlmlDeviceGetMacAddrInfo(device)[0] == ((1 << 24) - 1, 0)
    assert len(pyhlml.hlmlDeviceGetMACInfo(device, 24)) == 24
    assert pyhlml.hlmlDeviceNicGetLink(device, 0) is True
    assert pyhlml.hlmlDeviceNicGetStatistics(device, 0).num_of_counters_out[0] > 0
    assert pyhlml.hlmlDeviceGetECCMode(device).current == 1
    assert pyhlml.hlmlDeviceGetReplacedRowsCount(device, 1) == 0
    assert pyhlml.hlmlDeviceGetPowerManagementLimitConstraints(device)[0] > 0
    assert pyhlml.hlmlDeviceGetOperationStatus(device) == b"Operational"
    assert pyhlml.hlmlGetDriverVersion().decode() == machine.csv("driver_version")[0][0]
    assert b"Zephyr" in pyhlml.hlmlDeviceGetFWOSVersion(device)
    events = pyhlml.hlmlEventSetCreate()
    pyhlml.hlmlDeviceRegisterEvents(device, 2, events)
    machine.ok("node", "fault", faults.CARD_IN_RESET, "--card", "3")
    assert pyhlml.hlmlEventSetWait(events, 0).event_type == 2
    pyhlml.hlmlEventSetFree(events)
    pyhlml.hlmlShutdown()


def test_errors_are_its_exceptions(machine: Machine, pyhlml: Any) -> None:
    machine.ok("node", "fault", faults.DRIVER_NOT_LOADED)
    with pytest.raises(Exception, match=f"HLML Error with code {DRIVER_NOT_LOADED}"):
        pyhlml.hlmlInit()
    machine.load()
    pyhlml.hlmlInit()
    device = pyhlml.hlmlDeviceGetHandleByIndex(6)
    with pytest.raises(Exception, match=f"HLML Error with code {INVALID_ARGUMENT}"):
        pyhlml.hlmlDeviceGetHandleByIndex(8)
    machine.ok("node", "fault", faults.CARD_MISSING, "--card", "6")
    with pytest.raises(Exception, match=f"HLML Error with code {AIP_IS_LOST}"):
        pyhlml.hlmlDeviceGetSerial(device)
    assert pyhlml.hlmlDeviceGetCount() == 7
