"""The cards as the kernel shows them: on the PCI bus, as device files, with their ports and counters."""

from __future__ import annotations

import contextlib
import grp
import json
import os
import pwd
import re
import statistics
import time
from typing import Any

from .host import NOBODY, Host, Options, Result, User, mode_text, user_named

VENDOR = "0x1da3"
PCI = "/sys/bus/pci/devices"
ACCEL = "/sys/class/accel"
RDMA = "/sys/class/infiniband"
GAUDINET = "/etc/habanalabs/gaudinet.json"
_DEVICES = ("/dev/accel", "/dev/infiniband")
_UDEV = ("/etc/udev/rules.d", "/run/udev/rules.d", "/usr/lib/udev/rules.d", "/lib/udev/rules.d")
_PCI_TEXTS = (
    "device", "revision", "subsystem_vendor", "subsystem_device", "numa_node", "current_link_speed",
    "current_link_width", "max_link_speed", "max_link_width", "module_id", "status", "device_type", "driver_ver",
    "hard_reset_cnt", "security_enabled", "clk_cur_freq_mhz", "clk_max_freq_mhz", "max_power",
)  # fmt: skip
_NET_TEXTS = ("dev_port", "operstate", "carrier", "flags", "mtu", "speed", "carrier_changes")
_TORN = 1 << 32
_CAN_OPEN = 'for file; do if test -r "$file" && test -w "$file"; then echo "$file"; fi; done'


def addresses(host: Host) -> list[str]:
    """PCI addresses of the cards."""
    return [name for name in host.names(PCI) if host.value(f"{PCI}/{name}/vendor") == VENDOR]


def translated(host: Host) -> list[str]:
    """PCI addresses of the cards whose memory accesses the IOMMU translates."""
    types = {address: host.value(f"{PCI}/{address}/iommu_group/type") for address in addresses(host)}
    return [address for address, kind in types.items() if kind not in (None, "identity")]


def accel_names(host: Host) -> dict[str, str]:
    """`accelN` of each PCI address that has a driver."""
    found = {}
    for name in host.names(ACCEL):
        address = host.target(f"{ACCEL}/{name}/device")
        if address and re.fullmatch(r"accel\d+", name):
            found[address] = name
    return found


def holders(host: Host) -> dict[str, list[str]]:
    """Who has device files of cards open: the file, and the processes' ids with their names. Root sees all."""
    found: dict[str, list[str]] = {}
    for pid in filter(str.isdigit, host.names("/proc")):
        for number in host.names(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):
                target = os.readlink(host.at(f"/proc/{pid}/fd/{number}"))
                if target.startswith("/dev/accel/"):
                    who = f"{pid} ({host.value(f'/proc/{pid}/comm') or '?'})"
                    if who not in found.setdefault(target, []):
                        found[target].append(who)
    return found


def held_cards(host: Host) -> list[str]:
    """Cards that a process holds, in words; those of the control files, which tools open, are left out."""
    return [f"{file} by {', '.join(who)}" for file, who in sorted(holders(host).items()) if "control" not in file]


def cards(host: Host, options: Options) -> Result:
    """Each card on the PCI bus: attributes, IOMMU group, module, ports as network and RDMA devices, who holds it."""
    names = accel_names(host)
    result = Result({"cards": [_card(host, address, names.get(address)) for address in addresses(host)]})
    found = result.data["cards"]
    result.data["rdma"] = [_rdma(host, name) for name in host.names(RDMA)]
    result.data["held"] = held_cards(host)
    result.data["addresses_file"] = _addresses_file(host)
    if not found:
        result.odd.append("no Gaudi card is on the PCI bus")
    spoiled = translated(host)
    if spoiled:
        result.odd.append(
            f"the IOMMU translates addresses of {len(spoiled)} cards, so results may be wrong: boot with iommu=pt, "
            "and with intel_iommu=on on Intel's processors"
        )
    bare = [each["address"] for each in found if each["accel"] is None]
    if bare:
        result.odd.append(f"cards without a device of the driver: {', '.join(bare)}")
    unwell = [f"{each['address']} {each['status']}" for each in found if each["status"] not in (None, "Operational")]
    if unwell:
        result.odd.append(f"cards whose status is not Operational: {', '.join(unwell)}")
    narrow = [each["address"] for each in found if each["current_link_width"] != each["max_link_width"]]
    if narrow:
        result.odd.append(f"PCIe links narrower than they could be: {', '.join(narrow)}")
    if found and not any(each["net"] for each in found):
        result.odd.append("no card has a network device for a port")
    said = _complaint(result.data["addresses_file"])
    if said:
        result.odd.append(f"{GAUDINET} {said}")
    return result


def device_files(host: Host, options: Options) -> Result:
    """Owner, group and mode of the device files, the rules that set them, and who can open them."""
    files: dict[str, Any] = {}
    for folder in _DEVICES:
        for name in host.names(folder):
            status = host.status(f"{folder}/{name}")
            if status is not None:
                files[f"{folder}/{name}"] = {
                    "owner": _name(pwd.getpwuid, status.st_uid),
                    "group": _name(grp.getgrgid, status.st_gid),
                    "mode": mode_text(status.st_mode),
                }
    rules = {}
    for folder in _UDEV:
        for name in host.names(folder):
            text = host.read(f"{folder}/{name}") or ""
            if "habana" in name:
                rules[f"{folder}/{name}"] = text
            else:
                lines = [line for line in text.splitlines() if re.search(r'"accel"|habana|"infiniband', line)]
                if lines:
                    rules[f"{folder}/{name}"] = "\n".join(lines)
    asked: list[User | None] = [None]
    asked += [user for name in dict.fromkeys([options.user, NOBODY]) if name for user in [user_named(name)] if user]
    opened = {(user.name if user else "the one who asks"): _openable(host, list(files), user) for user in asked}
    result = Result({"files": files, "udev_rules": rules, "can_open": opened})
    job = opened.get(options.user) if options.user else opened["the one who asks"]
    closed = [path for path in files if job is not None and path not in job and "accel_control" not in path]
    if closed:
        who = options.user or "the one who asks"
        result.odd.append(f"{who} cannot open {len(closed)} of {len(files)} device files, such as {closed[0]}")
    if not any(path.startswith("/dev/accel/") for path in files):
        result.odd.append("there is no device file below /dev/accel")
    return result


def counters(host: Host, options: Options) -> Result:
    """Reads of one idle port's octets, one after the other: how long each takes, and whether the values are steady."""
    place = _idle_counter(host)
    if place is None:
        return Result(not_tried="no RDMA device of a card has counters of a port")
    folder, name = place
    seconds, values = [], []
    for _ in range(20 if options.quick else 200):
        started = time.perf_counter()
        text = host.value(f"{folder}/{name}")
        seconds.append(time.perf_counter() - started)
        values.append(int(text) if text and text.isdigit() else None)
    steps = [now - before for before, now in zip(values, values[1:]) if before is not None and now is not None]
    torn = [step for step in steps if step and step % _TORN == 0]
    result = Result(
        {
            "counter": f"{folder}/{name}",
            "names": host.names(folder),
            "reads": len(values),
            "unreadable": values.count(None),
            "seconds": {"least": min(seconds), "median": statistics.median(seconds), "most": max(seconds)},
            "first": values[0],
            "last": values[-1],
            "steps_of_2_to_32": len(torn),
            "steps": sorted(set(steps), key=abs)[:40],
        }
    )
    if torn:
        result.odd.append(f"{len(torn)} of {len(steps)} reads of an idle port are off by a multiple of 2**32")
    return result


def _addresses_file(host: Host) -> dict[str, Any] | None:
    """The file of the external ports' addresses, without the addresses: how many it has, and how many no port has."""
    text = host.read(GAUDINET)
    if text is None:
        return None
    try:
        named = {str(each["NIC_MAC"]).lower() for each in json.loads(text)["NIC_NET_CONFIG"]}
    except (ValueError, KeyError, TypeError):
        return {"empty": not text.strip(), "readable": False, "addresses": 0, "strange": 0}
    own = {
        (host.value(f"{PCI}/{address}/net/{name}/address") or "").lower()
        for address in addresses(host)
        for name in host.names(f"{PCI}/{address}/net")
    }
    return {"empty": False, "readable": True, "addresses": len(named), "strange": len(named - own) if own else 0}


def _complaint(found: dict[str, Any] | None) -> str:
    """What is wrong with that file; empty where nothing is, or where there is none."""
    if found is None:
        return ""
    if found["empty"]:
        return "is empty, which is neither layer 2 nor layer 3"
    if not found["readable"]:
        return "is not of the shape that the collective library reads"
    return f"has {found['strange']} addresses that no port of this node has" if found["strange"] else ""


def _card(host: Host, address: str, accel: str | None) -> dict[str, Any]:
    folder = f"{PCI}/{address}"
    card: dict[str, Any] = {"address": address, "accel": accel}
    card.update({name: host.value(f"{folder}/{name}") for name in _PCI_TEXTS})
    card["driver"] = host.target(f"{folder}/driver")
    card["iommu_group"] = host.target(f"{folder}/iommu_group")
    card["iommu_type"] = host.value(f"{folder}/iommu_group/type") or ("none" if card["iommu_group"] is None else None)
    card["net"] = {
        name: {each: host.value(f"{folder}/net/{name}/{each}") for each in _NET_TEXTS}
        for name in host.names(f"{folder}/net")
    }
    return card


def _rdma(host: Host, name: str) -> dict[str, Any]:
    folder = f"{RDMA}/{name}"
    ports = host.names(f"{folder}/ports")
    states = [host.value(f"{folder}/ports/{port}/state") or "?" for port in ports]
    return {
        "name": name,
        "card": host.target(f"{folder}/device"),
        "node_type": host.value(f"{folder}/node_type"),
        "ports": len(ports),
        "states": {state: states.count(state) for state in sorted(set(states))},
        "counters": host.names(f"{folder}/ports/{ports[0]}/hw_counters") if ports else [],
    }


def _idle_counter(host: Host) -> tuple[str, str] | None:
    """Folder and name of a counter of octets, of a port that is down if there is one: nothing arrives there."""
    choice = None
    for device in host.names(RDMA):
        if host.target(f"{RDMA}/{device}/device") not in addresses(host):
            continue
        for port in sorted(host.names(f"{RDMA}/{device}/ports"), key=lambda text: (len(text), text)):
            folder = f"{RDMA}/{device}/ports/{port}/hw_counters"
            names = [name for name in host.names(folder) if "octets" in name.lower() or "bytes" in name.lower()]
            if names and "DOWN" in (host.value(f"{RDMA}/{device}/ports/{port}/state") or ""):
                return folder, names[0]
            if names and choice is None:
                choice = folder, names[0]
    return choice


def _openable(host: Host, files: list[str], user: User | None) -> list[str] | None:
    """Those that the user may read and write. Permissions are asked for, no file is opened: that would take a card."""
    if user is not None and os.geteuid() != 0 and user.uid != os.getuid():
        return None
    outcome = host.run(["/bin/sh", "-c", _CAN_OPEN, "sh", *map(host.at, files)], 20, user)
    return [line[len(host.root) :] for line in outcome.out.splitlines()]


def _name(find: Any, number: int) -> str:
    try:
        return f"{find(number)[0]} ({number})"
    except KeyError:
        return str(number)
