"""What the kernel shows of the node under /sys and /dev: computed as a whole, then made so.

``desired`` is pure. ``apply`` writes what differs and removes what an earlier call wrote and is no longer
wanted, so a module load, a fault or a port change are all the same operation.
"""

from __future__ import annotations

import json
import os
import shutil
import stat

from . import board, faults, modules, node, paths, releases

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

PCI = "/sys/bus/pci/devices"
ACCEL = "/sys/class/accel"
RDMA = "/sys/class/infiniband"
MODULE = "/sys/module"
DEV_ACCEL = "/dev/accel"
DEV_RDMA = "/dev/infiniband"

LINK = "link:"
DEVICE = "device:"

# Parameters of the public driver source, all read-only at run time, with their defaults.
PARAMETERS = {
    "habanalabs": {
        "timeout_locked": "30",
        "reset_on_lockup": "1",
        "memory_scrub": "0",
        "boot_error_status_mask": "0",
    },
    "habanalabs_cn": {"poll_enable": "0", "qp_drain_time": "0", "enable_events_tracing": "0"},
}


def desired(simulated: node.Node) -> dict[str, str]:
    """Every file that should exist: path to its text, ``link:<target>`` or ``device:``."""
    files: dict[str, str] = {}
    for card in simulated.cards:
        pci = f"{PCI}/{card.bus_id}"
        files.update(_under(pci, _pci_attributes(simulated, card)))
        if simulated.driver_up:
            files.update(_under(pci, _accel_attributes(simulated, card)))
            files[f"{pci}/driver"] = f"{LINK}../../../bus/pci/drivers/habanalabs"
            files[f"{ACCEL}/accel{card.index}/device"] = f"{LINK}../../../bus/pci/devices/{card.bus_id}"
            files[f"{DEV_ACCEL}/accel{card.index}"] = DEVICE
            files[f"{DEV_ACCEL}/accel_controlD{card.index}"] = DEVICE
            if simulated.loaded(node.ETHERNET) and simulated.loaded(node.NIC):
                for port in board.EXTERNAL_PORTS:
                    netdev = f"{pci}/net/{card.netdev(port)}"
                    files.update(_under(netdev, _netdev_attributes(simulated, card, port)))
            if simulated.loaded(node.RDMA) and simulated.loaded(node.NIC):
                files.update(_under(f"{RDMA}/hbl_{card.index}", _rdma_attributes(simulated, card)))
                files[f"{RDMA}/hbl_{card.index}/device"] = f"{LINK}../../../bus/pci/devices/{card.bus_id}"
                files[f"{DEV_RDMA}/uverbs{card.index}"] = DEVICE
    for module in simulated.runtime["modules"]:
        files.update(_under(f"{MODULE}/{module}", _module_attributes(simulated, module)))
    return files


def apply(simulated: node.Node) -> None:
    """Make the trees match ``desired``."""
    wanted = desired(simulated)
    before = json.loads(paths.read_text(paths.MANIFEST) or "[]")
    for path in before:
        if path not in wanted:
            _remove(path)
    for path, content in wanted.items():
        _make(path, content)
    os.makedirs(paths.at(ACCEL), exist_ok=True)
    paths.write_atomically(paths.MANIFEST, json.dumps(sorted(wanted)))
    _show_modules(simulated)


def _under(folder: str, attributes: dict[str, str]) -> dict[str, str]:
    return {f"{folder}/{name}": text + "\n" for name, text in attributes.items()}


def _pci_attributes(simulated: node.Node, card: node.Card) -> dict[str, str]:
    return {
        "vendor": f"0x{board.PCI_VENDOR}",
        "device": f"0x{board.PCI_DEVICE}",
        "class": board.PCI_CLASS,
        "revision": f"0x{board.PCI_REVISION}",
        "subsystem_vendor": f"0x{board.PCI_VENDOR}",
        "subsystem_device": f"0x{board.PCI_DEVICE}",
        "numa_node": str(card.numa_node),
        "max_link_speed": "32.0 GT/s PCIe",
        "current_link_speed": "32.0 GT/s PCIe",
        "max_link_width": str(board.PCIE_WIDTH),
        "current_link_width": str(simulated.pcie_width(card)),
        "enable": str(int(simulated.driver_up)),
        "uevent": f"PCI_CLASS={board.PCI_CLASS[2:]}\nPCI_ID={board.PCI_VENDOR.upper()}:{board.PCI_DEVICE}\n"
        f"PCI_SLOT_NAME={card.bus_id}",
    }


def _accel_attributes(simulated: node.Node, card: node.Card) -> dict[str, str]:
    firmware = simulated.firmware
    return {
        "status": simulated.status(card),
        "device_type": "GAUDI3",
        "module_id": str(card.module_id),
        "pci_addr": card.bus_id,
        "driver_ver": simulated.driver_version,
        "fw_os_ver": f"Zephyr 2.7.2-{firmware}",
        "preboot_btl_ver": f"Preboot version {card.spi}",
        "uboot_ver": f"U-Boot 2021.04-{firmware}",
        "armcp_ver": firmware,
        "cpucp_ver": firmware,
        "armcp_kernel_ver": f"Linux gaudi3 5.10.18-{firmware}",
        "cpld_ver": f"0x{board.CPLD_VERSION:08x}",
        "max_power": str(simulated.power_limit(card) * 1000),  # mW in the driver's interface
        "clk_cur_freq_mhz": str(board.CLOCK_SOC_MHZ),
        "clk_max_freq_mhz": str(board.CLOCK_SOC_MHZ),
        "hard_reset_cnt": str(simulated.runtime["resets"].get(str(card.index), 0)),
        "security_enabled": "1",
        "parent_device": card.bus_id,
    }


def _netdev_attributes(simulated: node.Node, card: node.Card, port: int) -> dict[str, str]:
    up = simulated.port_up(card, port)
    return {
        "dev_port": str(port),
        "address": card.mac(port),
        "operstate": "up" if up else "down",
        "carrier": "1" if up else "0",
        "mtu": "1500",
    }


def _rdma_attributes(simulated: node.Node, card: node.Card) -> dict[str, str]:
    mac = card.mac(board.EXTERNAL_PORTS[0]).replace(":", "")
    guid = f"{mac[:6]}fffe{mac[6:]}"
    attributes = {
        "node_type": "1: CA",
        "node_guid": ":".join(guid[start : start + 4] for start in range(0, 16, 4)),
    }
    for port in board.EXTERNAL_PORTS:
        up = simulated.port_up(card, port)
        attributes[f"ports/{port}/state"] = "4: ACTIVE" if up else "1: DOWN"
        attributes[f"ports/{port}/phys_state"] = "5: LinkUp" if up else "3: Disabled"
        attributes[f"ports/{port}/link_layer"] = "Ethernet"
        attributes[f"ports/{port}/rate"] = board.PORT_RATE
    return attributes


def _module_attributes(simulated: node.Node, module: str) -> dict[str, str]:
    content = simulated.runtime["modules"][module]
    attributes = {"initstate": "live", "refcnt": str(reference_count(simulated, module))}
    if content["version"]:
        attributes["version"] = simulated.module_version(module)
    for name, value in {**PARAMETERS.get(module, {}), **content.get("parameters", {})}.items():
        attributes[f"parameters/{name}"] = str(value)
    return attributes


def users(simulated: node.Node, module: str) -> list[str]:
    """Loaded modules that hold this one."""
    held_by = modules.holders(module, simulated.loaded(releases.COMPAT))
    return [name for name in simulated.runtime["modules"] if name in held_by]


def reference_count(simulated: node.Node, module: str) -> int:
    """How often a module is held: by modules, and the driver also by processes that hold cards."""
    held = len(list(simulated.faults(faults.DEVICE_ACQUIRED))) if module == node.DRIVER else 0
    return len(users(simulated, module)) + held


def proc_modules(simulated: node.Node) -> Iterator[str]:
    """The lines of ``/proc/modules`` for the simulated modules, newest first."""
    for module in reversed(list(simulated.runtime["modules"])):
        held_by = "".join(name + "," for name in users(simulated, module)) or "-"
        count = reference_count(simulated, module)
        yield f"{module} {modules.SIZES[module]} {count} {held_by} Live 0x0000000000000000 (OE)"


def _show_modules(simulated: node.Node) -> None:
    """Rewrite the file mounted over /proc/modules: in place, since a new file would not be mounted."""
    shown = paths.at(paths.PROC_MODULES)
    if os.path.exists(shown):
        host = paths.read_text(paths.PROC_MODULES + ".host") or ""
        with open(shown, "w", encoding="utf-8") as file:
            file.write("".join(line + "\n" for line in proc_modules(simulated)) + host)


def _make(path: str, content: str) -> None:
    target = paths.at(path)
    special = content == DEVICE or content.startswith(LINK)
    if os.path.lexists(target) if special else paths.read_text(path) == content:
        return
    os.makedirs(os.path.dirname(target), exist_ok=True)
    if content == DEVICE:
        _make_device(target)
    elif special:
        os.symlink(content[len(LINK) :], target)
    else:
        with open(target, "w", encoding="utf-8") as file:
            file.write(content)


def _make_device(target: str) -> None:
    """A device node that accepts and forgets everything; a plain file where nothing is real."""
    if paths.root():
        with open(target, "w", encoding="utf-8"):
            pass
        return
    os.mknod(target, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    os.chmod(target, 0o666)


def _remove(path: str) -> None:
    """Remove a file and the folders that it leaves empty, up to the roots that are always there."""
    target = paths.at(path)
    if os.path.isdir(target) and not os.path.islink(target):
        shutil.rmtree(target)
    elif os.path.lexists(target):
        os.unlink(target)
    folder = os.path.dirname(path)
    while folder not in (PCI, ACCEL, RDMA, MODULE, DEV_ACCEL, DEV_RDMA, "/sys/class", "/dev", "/"):
        try:
            os.rmdir(paths.at(folder))
        except OSError:
            break
        folder = os.path.dirname(folder)
