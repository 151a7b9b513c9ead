"""Life of the driver: installed, loaded, in use, unloaded, gone after a reboot and loaded again at boot."""

from __future__ import annotations

import os
from collections.abc import Callable

from simulated_machine import Machine

KERNEL = os.uname().release
ALL_OFF = ["habanalabs_ib", "habanalabs_en", "habanalabs_cn", "habanalabs", "habanalabs_compat"]


def modules(machine: Machine) -> list[str]:
    return sorted(line.split()[0] for line in machine.ok("lsmod").lines[1:])


def test_nothing_loads_before_the_package_is_installed(bare: Callable[..., Machine]) -> None:
    machine = bare()
    result = machine.run("modprobe", "habanalabs")
    assert result.code == 1
    assert result.err == f"modprobe: FATAL: Module habanalabs not found in directory /lib/modules/{KERNEL}\n"
    assert machine.run("modinfo", "habanalabs").err == "modinfo: ERROR: Module habanalabs not found.\n"
    assert machine.run("modprobe", "-q", "habanalabs") == (1, "", "")
    assert machine.names("/dev/accel") == []
    assert machine.names("/sys/class/accel") == []


def test_cards_are_on_the_bus_without_a_driver(bare: Callable[..., Machine]) -> None:
    machine = bare(cards=2)
    lines = machine.lspci("-d", "1da3:", "-nn").splitlines()
    for line, bus_id in zip(lines, machine.names("/sys/bus/pci/devices"), strict=True):
        assert line.startswith(f"{bus_id[5:]} Processing accelerators [1200]: Habana Labs Ltd.")
        assert line.endswith("[1da3:1060] (rev 01)")
    device = f"/sys/bus/pci/devices/{machine.names('/sys/bus/pci/devices')[0]}"
    assert machine.read(f"{device}/vendor") == "0x1da3"
    assert machine.read(f"{device}/device") == "0x1060"
    assert machine.read(f"{device}/class") == "0x120000"
    assert machine.read(f"{device}/current_link_width") == "16"
    assert machine.read(f"{device}/current_link_speed") == "32.0 GT/s PCIe"
    assert machine.run("hl-smi").code == 1


def test_loading_makes_devices_attributes_and_log_lines(machine: Machine) -> None:
    assert machine.names("/dev/accel") == [f"accel{n}" for n in range(8)] + [f"accel_controlD{n}" for n in range(8)]
    assert machine.names("/sys/class/infiniband") == [f"hbl_{n}" for n in range(8)]
    assert machine.read("/sys/module/habanalabs/version") == "1.23.0-2eae87a"
    assert machine.read("/sys/module/habanalabs/parameters/timeout_locked") == "30"
    assert machine.read("/sys/class/accel/accel5/device/status") == "Operational"
    assert machine.read("/sys/class/accel/accel5/device/device_type") == "GAUDI3"
    assert machine.read("/sys/class/accel/accel5/device/driver_ver") == "1.23.0-2eae87a"
    bus_id = machine.csv("bus_id")[5][0]
    log = machine.ok("dmesg", "-t").lines
    assert f"habanalabs {bus_id}: habanalabs device found [1da3:1060] (rev 1)" in log
    assert f"habanalabs {bus_id}: Successfully added device {bus_id} to habanalabs driver" in log
    assert "habanalabs_cn: loading driver, version: 1.23.0-2eae87a" in log


def test_unloading_in_the_documented_order_leaves_nothing(machine: Machine) -> None:
    for name in ALL_OFF:
        machine.ok("modprobe", "-r", name)
    assert modules(machine) == ["ib_core", "ib_uverbs"]
    assert machine.names("/dev/accel") == []
    assert machine.names("/sys/class/accel") == []
    assert machine.names("/sys/class/infiniband") == []
    assert machine.names("/sys/module") == ["ib_core", "ib_uverbs"]
    assert len(machine.names("/sys/bus/pci/devices")) == 8
    assert "net" not in machine.names(f"/sys/bus/pci/devices/{machine.names('/sys/bus/pci/devices')[0]}")


def test_a_module_in_use_is_not_unloaded(machine: Machine) -> None:
    for name in ("habanalabs_compat", "habanalabs_cn", "ib_uverbs", "ib_core"):
        result = machine.run("modprobe", "-r", name)
        assert (result.code, result.err) == (1, f"modprobe: FATAL: Module {name} is in use.\n")
    assert len(modules(machine)) == 7


def test_older_releases_unload_with_the_driver_first(bare: Callable[..., Machine]) -> None:
    machine = bare()
    machine.install("1.20.1-97")
    machine.load()
    assert "habanalabs_compat" not in modules(machine)
    for name in ("habanalabs", "habanalabs_cn", "habanalabs_ib", "habanalabs_en"):
        machine.ok("modprobe", "-r", name)
    assert modules(machine) == ["ib_core", "ib_uverbs"]


def test_rdma_module_needs_ib_uverbs(bare: Callable[..., Machine]) -> None:
    machine = bare()
    machine.install()
    result = machine.run("modprobe", "habanalabs_ib")
    assert result.code == 1
    assert "could not insert 'habanalabs_ib': Unknown symbol in module" in result.err
    assert machine.ok("dmesg", "-t", "-l", "err").lines == [
        "habanalabs_ib: Unknown symbol ib_uverbs_get_ucontext_file (err -2)"
    ]
    machine.ok("modprobe", "ib_uverbs")
    machine.ok("modprobe", "habanalabs_ib")


def test_dependencies_load_first_and_show_when_asked(bare: Callable[..., Machine]) -> None:
    machine = bare()
    machine.install()
    folder = machine.path(f"/lib/modules/{KERNEL}/updates/dkms")
    assert machine.ok("modprobe", "-v", "habanalabs").lines == [
        f"insmod {folder}/habanalabs_compat.ko",
        f"insmod {folder}/habanalabs.ko",
    ]
    assert machine.ok("modprobe", "-v", "habanalabs").lines == []
    assert machine.ok("modinfo", "-F", "version", "habanalabs").out == "1.23.0-2eae87a\n"
    assert machine.ok("modinfo", "-F", "depends", "habanalabs").out == "habanalabs_compat\n"


def test_unknown_parameters_are_logged_and_change_nothing(bare: Callable[..., Machine]) -> None:
    machine = bare()
    machine.install()
    machine.write("/etc/modprobe.d/gaudi.conf", "options habanalabs timeout_locked=0 huge_pages=1\n")
    machine.ok("modprobe", "habanalabs")
    assert machine.read("/sys/module/habanalabs/parameters/timeout_locked") == "0"
    assert "huge_pages" not in machine.names("/sys/module/habanalabs/parameters")
    assert machine.ok("dmesg", "-t", "--level=warn").lines == ["habanalabs: unknown parameter 'huge_pages' ignored"]


def test_without_firmware_no_card_comes_up(bare: Callable[..., Machine]) -> None:
    machine = bare(cards=2)
    machine.install(firmware=False)
    machine.ok("modprobe", "habanalabs")
    assert machine.names("/dev/accel") == []
    assert machine.run("hl-smi").code == 1
    bus_id = machine.names("/sys/bus/pci/devices")[0]
    assert (
        f"habanalabs {bus_id}: Direct firmware load for habanalabs/gaudi3/gaudi3-boot-fit.itb failed with error -2"
        in machine.ok("dmesg", "-t").lines
    )


def test_a_process_on_a_card_keeps_the_driver(bare: Callable[..., Machine]) -> None:
    machine = bare()
    machine.install("1.20.1-97")
    machine.load()
    machine.path("/proc/77/fd").mkdir(parents=True)
    machine.path("/proc/77/fd/9").symlink_to(machine.path("/dev/accel/accel0"))
    refused = machine.run("modprobe", "-r", "habanalabs")
    assert (refused.code, refused.err) == (1, "modprobe: FATAL: Module habanalabs is in use.\n")
    machine.path("/proc/77/fd/9").unlink()
    machine.ok("modprobe", "-r", "habanalabs")


def test_a_training_job_keeps_the_driver(bare: Callable[..., Machine]) -> None:
    machine = bare()
    machine.install("1.20.1-97")
    machine.load()
    pid = machine.hold(0)
    assert machine.run("modprobe", "-r", "habanalabs").code == 1
    machine.kill(pid)
    machine.ok("modprobe", "-r", "habanalabs")


def test_boot_loads_an_installed_driver_and_keeps_the_identity(machine: Machine) -> None:
    before = machine.csv("index,module_id,bus_id,serial,uuid")
    for name in ALL_OFF:
        machine.ok("modprobe", "-r", name)
    machine.reboot()
    assert machine.csv("index,module_id,bus_id,serial,uuid") == before
    assert modules(machine) == sorted([*ALL_OFF, "ib_core", "ib_uverbs"])


def test_boot_loads_nothing_when_nothing_is_installed_or_it_is_blacklisted(bare: Callable[..., Machine]) -> None:
    machine = bare()
    machine.reboot()
    assert modules(machine) == []
    machine.install(at_boot=False)
    machine.write("/etc/modprobe.d/blacklist.conf", "blacklist habanalabs\n")
    machine.reboot()
    assert modules(machine) == []
    # systemd-modules-load honours the blacklist too.
    machine.write("/etc/modules-load.d/gaudi.conf", "habanalabs\n")
    machine.reboot()
    assert modules(machine) == []
    machine.path("/etc/modprobe.d/blacklist.conf").unlink()
    machine.reboot()
    assert "habanalabs" in modules(machine)


def test_booting_a_running_node_again_changes_nothing(machine: Machine) -> None:
    machine.ok("manage_network_ifs.sh", "--up")
    before = (machine.ok("lsmod").out, machine.ok("dmesg").out, machine.ok("hl-smi").out)
    machine.ok("node", "boot")
    assert (machine.ok("lsmod").out, machine.ok("dmesg").out, machine.ok("hl-smi").out) == before


def test_a_new_package_counts_only_after_a_reload(machine: Machine) -> None:
    machine.install("1.24.1-482")
    assert machine.csv("driver_version")[0] == ["1.23.0-2eae87a"]
    assert machine.ok("modinfo", "-F", "version", "habanalabs").out.startswith("1.24.1-")
    for name in ALL_OFF:
        machine.ok("modprobe", "-r", name)
    machine.load()
    assert machine.csv("driver_version")[0][0].startswith("1.24.1-")


def test_only_root_changes_modules(machine: Machine) -> None:
    machine.as_user(1000)
    assert "Operation not permitted" in machine.run("modprobe", "-r", "habanalabs_ib").err
    assert len(modules(machine)) == 7


def test_other_modules_are_left_to_the_real_tool(machine: Machine) -> None:
    result = machine.run("modprobe", "br_netfilter")
    assert (result.code, result.err) == (
        1,
        f"modprobe: FATAL: Module br_netfilter not found in directory /lib/modules/{KERNEL}\n",
    )


def test_preboot_firmware_is_flashed_only_without_the_driver(bare: Callable[..., Machine]) -> None:
    machine = bare(cards=2)
    machine.install("1.24.0-1007")
    shown = machine.ok("hl-fw-loader", "-s", release="1.24.0-1007").lines
    versions = [line.split(": ")[1] for line in shown if "SPI" in line]
    assert versions == ["Preboot version hl-gaudi3-1.23.0-fw-62.2.1-sec-9-sim (Jan 01 1970 - 00:00:00)"] * 2
    machine.ok("hl-fw-loader", "-y", release="1.24.0-1007")
    machine.load()
    assert machine.read("/sys/class/accel/accel0/device/preboot_btl_ver").startswith(
        "Preboot version hl-gaudi3-1.24.0-"
    )
    refused = machine.run("hl-fw-loader", "-s", release="1.24.0-1007")
    assert refused.err == "hl-fw-loader: the driver is loaded: unload the habanalabs modules first\n"


def test_proc_modules_is_kept_where_the_kernel_has_one(machine: Machine) -> None:
    machine.write("/run/gaudi3-simulator/proc_modules.host", "ext4 937984 1 - Live 0x0000000000000000\n")
    machine.write("/run/gaudi3-simulator/proc_modules", "")  # what boot mounts over the kernel's own
    machine.ok("modprobe", "-r", "habanalabs_ib")
    lines = machine.read("/run/gaudi3-simulator/proc_modules").splitlines()
    assert [line.split()[0] for line in lines][-2:] == ["ib_core", "ext4"]
    assert "habanalabs_ib" not in [line.split()[0] for line in lines]
    assert lines[1] == "habanalabs_cn 864256 1 habanalabs_en, Live 0x0000000000000000 (OE)"
