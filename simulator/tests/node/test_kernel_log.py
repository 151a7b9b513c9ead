"""What the driver says in the kernel log, by release, line by line against public transcripts and driver source."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from simulated_machine import Machine

# Lines of the kernel log that a public source shows: <bdf> a PCI address, <n> a number, <v> a version.
KNOWN = {
    # InstructLab's page on Gaudi, release 1.18.0 on a Gaudi 3
    "habanalabs: loading driver, version: <v>",
    "habanalabs_cn: loading driver, version: <v>",
    "habanalabs_en: loading driver, version: <v>",
    "habanalabs_ib: loading driver, version: <v>",
    "habanalabs <bdf>: habanalabs device found [1da3:1060] (rev 1)",
    "habanalabs <bdf> hbl_<n>: IB device registered",
    "accel accel<n>: Successfully added device <bdf> to habanalabs driver",
    # the Gaudi 2E manual for 1.23.0
    "habanalabs <bdf>: Successfully added device <bdf> to habanalabs driver",
    # InstructLab's page, release 1.15.1, there after "habanalabs hl0:"
    "<device> Loading secured firmware to device, may take some time...",
    "<device> preboot full version: 'Preboot version <v> (Jan 01 1970 - 00:00:00)'",
    "<device> boot-fit version <v>",
    "<device> Successfully loaded firmware to device",
    "<device> Linux version <v>",
    "<device> Found GAUDI3 device with 128GB DRAM",
    "<device> hwmon<n>: add sensors information",
    # Linux: drivers/base/firmware_loader/main.c, kernel/module/signing.c, kernel/module/main.c, kernel/params.c
    "<device> Direct firmware load for habanalabs/gaudi3/gaudi3-boot-fit.itb failed with error -2",
    "Loading of module with unavailable key is rejected",
    "habanalabs_ib: Unknown symbol ib_uverbs_get_ucontext_file (err -2)",
    "habanalabs: unknown parameter 'huge_pages' ignored",
    # Linux: drivers/accel/habanalabs/common/firmware_if.c and device.c
    "<device> Firmware file habanalabs/gaudi3/gaudi3-boot-fit.itb is not found! (error -2)",
    "habanalabs: Failed to initialize accel<n>. Device <bdf> is NOT usable!",
    "<device> Successfully finished resetting the <bdf> device",
    "<device> Going to reset device",
    "<device> Device heartbeat failed! PCI link is healthy",
    "<device> <bdf> Failed to reset! Device is NOT usable",
    # HabanaAI/Setup_and_Install#1, and the driver's gaudi.c
    "<device> Failed to communicate with Device CPU (CPU-CP timeout)",
    "<device> failed to initialize CPU H/W queues -5",
    "<device> failed to initialize the H/W",
    # docs.habana.ai, Kernel Module Diagnostics, Dmesg Error Causes
    "<device> Timeout while MAC channel 0 reset",
    # Linux: arch/x86/mm/fault.c and kernel/dumpstack.c
    "python3: Corrupted page table at address <n>f<n>",
    "Bad pagetable: 000d [#1] PREEMPT SMP NOPTI",
    # the NIC driver's source (hbl_cn, hbl_en)
    "habanalabs_cn: driver removed",
    "habanalabs_en: driver removed",
    # the simulator's own
    "gaudi3-simulator: simulated node, no Gaudi card is real",
}
PARTS = {
    "<bdf>": r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.0",
    "<n>": r"\d+",
    "<v>": r"[\w.-]+",
    "<device>": r"(?:accel accel\d+:|habanalabs [0-9a-f:]{10}\.0:)",
}
EVERY_RELEASE = ["1.17.1-40", "1.18.0-524", "1.20.1-97", "1.21.0-555", "1.22.0-740", "1.23.0-695", "1.24.2-481"]


def expression(line: str) -> re.Pattern[str]:
    text = re.escape(line)
    for part, meaning in PARTS.items():
        text = text.replace(re.escape(part), meaning)
    return re.compile(text)


def log(machine: Machine) -> list[str]:
    return machine.ok("dmesg", "-t").lines


def on(bare: Callable[..., Machine], release: str, cards: int = 2) -> Machine:
    machine = bare(cards=cards)
    machine.install(release)
    machine.load()
    return machine


@pytest.mark.parametrize("release", EVERY_RELEASE)
def test_no_line_is_without_a_source(bare: Callable[..., Machine], release: str) -> None:
    machine = on(bare, release)
    machine.ok("hl-smi", "-r", "-i", machine.csv("bus_id")[0][0], release=release)
    for kind in ("reset-failed", "cpu-timeout", "mac-timeout", "bad-pagetable", "no-firmware"):
        machine.ok("node", "fault", kind)
    machine.ok("node", "fault", "--clear-all")
    for name in ("habanalabs_ib", "habanalabs_en", "habanalabs_cn", "habanalabs", "ib_uverbs"):
        machine.ok("modprobe", "-r", name)
    machine.run("modprobe", "habanalabs_ib")
    machine.ok("modprobe", "habanalabs", "huge_pages=1")
    machine.ok("node", "fault", "driver-not-loaded")
    machine.ok("node", "fault", "module-rejected")
    machine.run("modprobe", "habanalabs")
    expressions = [expression(line) for line in KNOWN]
    unknown = [line for line in log(machine) if not any(each.fullmatch(line) for each in expressions)]
    assert unknown == []


@pytest.mark.parametrize("release", EVERY_RELEASE)
@pytest.mark.parametrize("cards", [1, 3])
def test_a_card_is_added_under_the_name_that_its_release_uses(
    bare: Callable[..., Machine], release: str, cards: int
) -> None:
    machine = on(bare, release, cards)
    older = tuple(int(number) for number in release.partition("-")[0].split(".")) < (1, 21)
    for index, bus_id in machine.csv("index,bus_id"):
        named = f"accel accel{index}:" if older else f"habanalabs {bus_id}:"
        other = f"habanalabs {bus_id}:" if older else f"accel accel{index}:"
        assert f"{named} Successfully added device {bus_id} to habanalabs driver" in log(machine)
        assert f"{other} Successfully added device {bus_id} to habanalabs driver" not in log(machine)
        assert (f"habanalabs {bus_id} hbl_{index}: IB device registered" in log(machine)) is older


@pytest.mark.parametrize(
    ("release", "driver", "nic"),
    [("1.23.0-695", "2eae87a", "2eae87a"), ("1.22.1-6", "97ec1a4", "97ec1a4"), ("1.18.0-524", "ee698fb", "95323a5")],
)
def test_modules_name_their_build(bare: Callable[..., Machine], release: str, driver: str, nic: str) -> None:
    lines = log(on(bare, release))
    version = release.partition("-")[0]
    assert f"habanalabs: loading driver, version: {version}-{driver}" in lines
    for name in ("habanalabs_cn", "habanalabs_en", "habanalabs_ib"):
        assert f"{name}: loading driver, version: {version}-{nic}" in lines


def test_missing_firmware_is_told_in_the_drivers_words(bare: Callable[..., Machine]) -> None:
    machine = bare(cards=2)
    machine.install(firmware=False)
    machine.ok("modprobe", "habanalabs")
    errors = machine.ok("dmesg", "-t", "-l", "err").lines
    for index, bus_id in enumerate(card["bus_id"] for card in machine.state()["cards"]):
        assert [line for line in errors if bus_id in line] == [
            f"habanalabs {bus_id}: Direct firmware load for habanalabs/gaudi3/gaudi3-boot-fit.itb failed with error -2",
            f"habanalabs {bus_id}: Firmware file habanalabs/gaudi3/gaudi3-boot-fit.itb is not found! (error -2)",
            f"habanalabs: Failed to initialize accel{index}. Device {bus_id} is NOT usable!",
        ]


def test_a_rejected_module_is_not_named(machine: Machine) -> None:
    machine.ok("node", "fault", "driver-not-loaded")
    machine.ok("node", "fault", "module-rejected")
    machine.run("modprobe", "habanalabs")
    assert machine.ok("dmesg", "-t", "-l", "notice").lines == ["Loading of module with unavailable key is rejected"]


def test_unloading_says_what_the_driver_says(machine: Machine) -> None:
    machine.ok("dmesg", "-C")
    for name in ("habanalabs_ib", "habanalabs_en", "habanalabs_cn", "habanalabs", "habanalabs_compat"):
        machine.ok("modprobe", "-r", name)
    assert log(machine) == ["habanalabs_en: driver removed", "habanalabs_cn: driver removed"]


def test_the_device_file_of_the_log_names_the_device_of_each_record(bare: Callable[..., Machine]) -> None:
    machine = on(bare, "1.23.0-695", 1)
    bus_id = machine.csv("bus_id")[0][0]
    records = re.split(r"\n(?! )", machine.read("/dev/kmsg"))
    assert [record.partition(";")[2].partition("\n")[0] for record in records] == log(machine)
    for record in records:
        header, _, text = record.partition(";")
        message, *fields = text.split("\n")
        assert re.fullmatch(r"[0-7],\d+,\d+,-", header)
        of_the_card = message.startswith(f"habanalabs {bus_id}: ")
        assert fields == ([" SUBSYSTEM=pci", f" DEVICE=+pci:{bus_id}"] if of_the_card else [])
    machine.ok("dmesg", "-C")
    assert machine.read("/dev/kmsg") == ""
