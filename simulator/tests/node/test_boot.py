"""What a start of the node loads, and what it cannot."""

from __future__ import annotations

import json
import os
from collections.abc import Callable

import pytest
from simulated_machine import Machine

from gaudi3_simulator.node import releases
from gaudi3_simulator.vendor.catalogue import MODULES_LOAD, modules_load


def driver_up(machine: Machine) -> bool:
    return bool(json.loads(machine.ok("node", "status").out)["driver_up"])


@pytest.mark.parametrize("release", ["1.22.0-740", "1.23.0-695"])
def test_the_vendor_s_file_lacks_the_driver_itself(release: str) -> None:
    names = modules_load(release).split()
    assert "habanalabs" not in names
    assert {"habanalabs_en", "habanalabs_cn", "habanalabs_ib"} <= set(names)
    assert ("habanalabs_compat" in names) == releases.release_info(release).has_compat


@pytest.mark.parametrize("release", ["1.22.0-740", "1.23.0-695"])
def test_only_modules_load_d_loads_the_driver(bare: Callable[..., Machine], release: str) -> None:
    machine = bare()
    machine.install(release, at_boot=False)
    machine.write(MODULES_LOAD, modules_load(release))
    machine.reboot()
    assert not driver_up(machine)
    machine.write("/etc/modules-load.d/gaudi.conf", "# the driver itself\nhabanalabs\n")
    machine.reboot()
    assert driver_up(machine)


@pytest.mark.parametrize("name", ["habanalabs", "habanalabs_cn"])
def test_an_empty_module_does_not_load(machine: Machine, name: str) -> None:
    for each in ("habanalabs_ib", "habanalabs_en", "habanalabs_cn", "habanalabs"):
        machine.ok("modprobe", "-r", each)
    machine.write(f"/lib/modules/{os.uname().release}/updates/dkms/{name}.ko", "")
    result = machine.run("modprobe", name)
    assert (result.code, result.err) == (1, f"modprobe: ERROR: could not insert '{name}': Invalid argument\n")
    assert name not in machine.names("/sys/module")
    machine.reboot()
    assert name not in machine.names("/sys/module")
