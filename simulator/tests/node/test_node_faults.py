"""Faults of a whole node: modules that are not there, memory translation, releases that do not fit, RDMA devices."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest
from simulated_machine import Machine

DKMS = f"/lib/modules/{os.uname().release}/updates/dkms"
MODULES = ["habanalabs.ko", "habanalabs_cn.ko", "habanalabs_compat.ko", "habanalabs_en.ko", "habanalabs_ib.ko"]


def active(machine: Machine) -> str:
    return machine.ok("node", "status").out.partition('"faults"')[2].partition("]")[0]


def test_modules_of_another_kernel(machine: Machine) -> None:
    machine.ok("node", "fault", "module-not-built")
    assert machine.names(DKMS) == []
    assert machine.names("/dev/accel") == []
    assert machine.run("hl-smi").code == 1
    missing = f"Module habanalabs not found in directory /lib/modules/{os.uname().release}"
    assert machine.run("modprobe", "habanalabs").err == f"modprobe: FATAL: {missing}\n"
    assert machine.run("modinfo", "habanalabs").code == 1
    machine.reboot()
    assert machine.run("hl-smi").code == 1
    machine.ok("node", "fault", "module-not-built", "--clear")
    assert machine.names(DKMS) == MODULES
    machine.load()
    machine.ok("hl-smi")


def test_modules_that_are_empty(machine: Machine) -> None:
    machine.ok("node", "fault", "module-empty")
    assert machine.names(DKMS) == MODULES
    assert {machine.read(f"{DKMS}/{name}") for name in MODULES} == {""}
    assert machine.run("modprobe", "habanalabs").err == (
        "modprobe: ERROR: could not insert 'habanalabs': Invalid argument\n"
    )
    machine.ok("node", "fault", "--clear-all")
    machine.load()


@pytest.mark.parametrize("kind", ["module-not-built", "module-empty"])
def test_building_the_modules_ends_it(machine: Machine, kind: str) -> None:
    machine.ok("node", "fault", kind)
    assert kind in active(machine)
    machine.install()
    assert active(machine) == ": ["
    machine.load()
    machine.ok("hl-smi")


@pytest.mark.parametrize("kind", ["module-not-built", "module-empty"])
def test_clearing_it_late_brings_nothing_old_back(machine: Machine, kind: str) -> None:
    machine.ok("node", "fault", kind)
    machine.install("1.20.1-97")
    built = machine.names(DKMS)
    assert built != MODULES, "a release without habanalabs_compat"
    machine.ok("node", "fault", "--clear-all")
    assert machine.names(DKMS) == built


@pytest.mark.parametrize("kind", ["module-not-built", "module-empty"])
def test_without_packages_there_is_no_module_to_lose(bare: Callable[..., Machine], kind: str) -> None:
    result = bare("gaudi-1", 1).run("node", "fault", kind)
    assert result.err == "gaudi3-simulator-node: no driver is installed: install the vendor's packages first\n"


def test_bad_page_tables_end_with_passthrough(machine: Machine) -> None:
    machine.ok("node", "fault", "bad-pagetable")
    lines = machine.ok("dmesg", "-t", "-l", "alert,emerg").lines
    assert [line.partition(" at address")[0].partition(": 000d")[0] for line in lines] == [
        "python3: Corrupted page table",
        "Bad pagetable",
    ]
    machine.reboot()
    assert "Bad pagetable: 000d [#1]" in machine.ok("dmesg").out
    assert "bad-pagetable" in active(machine)
    machine.write("/etc/default/grub", 'GRUB_CMDLINE_LINUX="iommu=pt intel_iommu=on"\n')
    machine.reboot()
    assert "bad-pagetable" in active(machine), "the boot loader was not told"
    machine.ok("update-grub")
    machine.reboot()
    assert "Bad pagetable" not in machine.ok("dmesg").out
    assert active(machine) == ": ["


def test_a_container_of_another_release(machine: Machine) -> None:
    path = "/run/gaudi3-simulator/acquire-status"
    machine.ok("node", "fault", "release-mismatch")
    assert machine.read(path) == "of a driver of another release than the container's"
    machine.reboot()
    machine.load()
    assert machine.read(path) == "of a driver of another release than the container's"
    machine.ok("node", "fault", "release-mismatch", "--clear")
    assert not machine.path(path).exists()


def test_rdma_devices_without_their_files(machine: Machine) -> None:
    before = machine.names("/dev/infiniband")
    assert before == [f"uverbs{card}" for card in range(8)]
    machine.ok("node", "fault", "no-uverbs")
    assert machine.names("/dev/infiniband") == []
    assert len(machine.names("/sys/class/infiniband")) == 8
    machine.ok("node", "fault", "no-uverbs", "--clear")
    assert machine.names("/dev/infiniband") == before


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("hccl-hang", "it takes two nodes and the vendor's own collectives"),
        ("memlock-small", "a limit belongs to a process and not to the node: start the job under 'ulimit -l'"),
        ("huge-pages-few", "they are this machine's own: set vm.nr_hugepages with sysctl"),
    ],
)
def test_what_cannot_be_simulated_is_refused_with_the_reason(machine: Machine, kind: str, reason: str) -> None:
    result = machine.run("node", "fault", kind)
    assert (result.code, result.err) == (1, f"gaudi3-simulator-node: {kind} cannot be simulated: {reason}\n")
