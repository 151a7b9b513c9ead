"""The vendor's tools: what they print, how long they take, and as whom they work."""

from __future__ import annotations

import os
import re
import threading
from typing import Any

from .cards import PCI, addresses, held_cards
from .host import NOBODY, Host, Options, Outcome, Result, User, scratch, user_named

# Every field of `-Q` that a public source names; `power.max`, `ecc.errors.hbm.sram.critical` have one source each.
FIELDS = (
    "timestamp", "index", "module_id", "bus_id", "name", "driver_version", "nic_driver_version", "memory.total",
    "memory.used", "memory.free", "power.draw", "power.max", "temperature.aip", "utilization.aip",
    "utilization.memory", "ecc.mode.current", "ecc.mode.pending", "ecc.errors.uncorrected.volatile.total",
    "ecc.errors.uncorrected.aggregate.total", "ecc.errors.corrected.volatile.total",
    "ecc.errors.corrected.aggregate.total", "ecc.errors.dram.volatile.total", "ecc.errors.dram.aggregate.total",
    "ecc.errors.dram-corrected.volatile.total", "ecc.errors.dram-corrected.aggregate.total",
    "ecc.errors.hbm.sram.critical", "pcie.link.gen.current", "pcie.link.gen.max", "pcie.link.width.current",
    "pcie.link.width.max", "pcie.link.speed.current", "pcie.link.speed.max", "clocks.current.soc", "clocks.max.soc",
    "clocks.limit.soc", "clocks.limit.tpc", "stats.violation.power", "stats.violation.thermal",
)  # fmt: skip
SLOW = 8.0
"""Seconds that the exporter gives hl-smi (hpu_exporter_timeout)."""
_SCRIPTS = tuple(f"/opt/habanalabs/qual/{kind}/bin/manage_network_ifs.sh" for kind in ("gaudi3", "gaudi2"))
_FIRMWARE = (
    "preboot_btl_ver", "uboot_ver", "fw_os_ver", "armcp_ver", "cpucp_ver", "armcp_kernel_ver", "cpucp_kernel_ver",
    "cpld_ver", "fuse_ver", "thermal_ver", "vrm_ver", "infineon_ver",
)  # fmt: skip


def hl_smi(host: Host, options: Options) -> Result:
    """All texts of hl-smi, the cells of every field with and without units, ten timings, and other users."""
    program = _program(host)
    if program is None:
        return Result(not_tried="there is no hl-smi on the path")
    with scratch(None) as folder:
        environment = host.environment(None, HABANA_LOGS=folder)

        def ask(*arguments: str) -> Outcome:
            return host.run([program, *arguments], 60, None, environment)

        table = ask()
        result = Result({"held": held_cards(host), "version": ask("-v").as_dict(), "help": ask("-h").as_dict()})
        result.data.update({"table": table.as_dict(), "topology": ask("topo", "-c", "-N").as_dict()})
        if table.code != 0:
            result.odd.append(f"hl-smi fails: {table.failure}")
            return result
        result.data["csv"] = _cells(ask, "csv")
        result.data["csv_without_units"] = _cells(ask, "csv,nounits")
        result.data["log"] = ask("-L").as_dict()
        result.data["ports"] = {address: _ports(ask, address) for address in addresses(host)}
        result.data["timings"] = _timings(host, options, ask)
        result.data["as_users"] = _as_users(host, options, program)
    slow = [f"{name} {times[-1]:.1f} s" for name, times in result.data["timings"].items() if times and times[-1] > SLOW]
    if slow:
        result.odd.append(f"hl-smi takes more than {SLOW:g} s ({', '.join(slow)}): raise hpu_exporter_timeout")
    refused = result.data["csv"]["refused"]
    if refused:
        result.odd.append(f"hl-smi refuses {len(refused)} fields: {', '.join(sorted(refused))}")
    failed = [f"{user} ({each['failure']})" for user, each in result.data["as_users"].items() if each["failure"]]
    if failed:
        result.odd.append(f"hl-smi does not work as {', '.join(failed)}")
    return result


def firmware(host: Host, options: Options) -> Result:
    """Versions of each card's firmware, as the driver and as hl-smi give them."""
    versions = {}
    for address in addresses(host):
        found = {name: host.value(f"{PCI}/{address}/{name}") for name in _FIRMWARE}
        versions[address] = {name: value for name, value in found.items() if value is not None}
    result = Result({"sysfs": versions})
    program = _program(host)
    if program is not None:
        with scratch(None) as folder:
            environment = host.environment(None, HABANA_LOGS=folder)
            result.data["hl_smi"] = host.run([program, "--fw-versions"], 60, None, environment).as_dict()
    loader = host.program("hl-fw-loader")
    if loader is not None:
        result.data["loader_help"] = host.run([loader, "--help"], 20).as_dict()
    differing = [
        name for name in _FIRMWARE if len({each[name] for each in versions.values() if name in each}) > 1
    ]  # fmt: skip
    if differing:
        result.odd.append(f"the cards differ in {', '.join(differing)}")
    if not versions:
        result.not_tried = "no Gaudi card is on the PCI bus"
    return result


def ports_script(host: Host, options: Options) -> Result:
    """What the vendor's script for the ports prints and returns, in forms that change nothing."""
    script = host.program(*_SCRIPTS)
    if script is None:
        return Result(not_tried="manage_network_ifs.sh is not installed")
    result = Result({"script": script[len(host.root) :]})
    for form in ("--status", "--check-pfc", "-v", "-h"):
        result.data[form] = host.run([script, form], 120).as_dict()
    status = result.data["--status"]
    if status["exit_code"] != 0:
        result.odd.append(f"manage_network_ifs.sh --status ends with exit code {status['exit_code']}")
    return result


def power(host: Host, options: Options) -> Result:
    """Power of all cards from three places of hl-smi, asked for at the same time."""
    program = _program(host)
    if program is None:
        return Result(not_tried="there is no hl-smi on the path")
    forms = {
        "table": [],
        "csv": ["-Q", "timestamp,index,bus_id,power.draw", "-f", "csv"],
        "log": ["-q", "-d", "POWER"],
    }
    found: dict[str, Outcome] = {}
    with scratch(None) as folder:
        environment = host.environment(None, HABANA_LOGS=folder)

        def ask(name: str, arguments: list[str]) -> None:
            found[name] = host.run([program, *arguments], 60, None, environment)

        threads = [threading.Thread(target=ask, args=each, daemon=True) for each in forms.items()]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    result = Result({name: outcome.as_dict() for name, outcome in found.items()})
    result.odd = [f"hl-smi's {name} fails: {outcome.failure}" for name, outcome in found.items() if outcome.failure]
    result.data["hwmon"] = {
        address: _watts(host, f"{PCI}/{address}/hwmon") for address in addresses(host)
    }  # fmt: skip
    return result


def _program(host: Host) -> str | None:
    return host.program("hl-smi", "/usr/bin/hl-smi", "/usr/local/bin/hl-smi")


def _cells(ask: Any, form: str) -> dict[str, Any]:
    """The csv of all fields that this hl-smi knows: where it refuses the list, each field is asked for alone."""
    whole = ask("-Q", ",".join(FIELDS), "-f", form)
    if whole.code == 0:
        return {"refused": {}, **whole.as_dict()}
    alone = {name: ask("-Q", name, "-f", form) for name in FIELDS}
    refused = {name: outcome.failure for name, outcome in alone.items() if outcome.code != 0}
    known = [name for name in FIELDS if name not in refused]
    return {"refused": refused, "whole": whole.as_dict(), **(ask("-Q", ",".join(known), "-f", form).as_dict())}


def _ports(ask: Any, address: str) -> dict[str, Any]:
    """Links and counters of a card's ports; without their numbers, hl-smi tells of links of internal ones only."""
    ports = ask("-n", "ports", "-i", address)
    numbers = ",".join(re.findall(r"^port\s+(\d+)", ports.out, re.MULTILINE))
    chosen = ("-P", numbers) if numbers else ()
    views = {"ports": ports, **{view: ask("-n", view, "-i", address, *chosen) for view in ("link", "stats")}}
    return {view: outcome.as_dict() for view, outcome in views.items()}


def _timings(host: Host, options: Options, ask: Any) -> dict[str, list[float]]:
    """Seconds of repeated calls, the shortest first."""
    found = addresses(host)
    card = found[0] if found else "0000:00:00.0"
    ports = ",".join(re.findall(r"^port\s+(\d+)", ask("-n", "ports", "-i", card).out, re.MULTILINE))
    forms = {
        "-Q": ("-Q", "index,module_id,bus_id,memory.used,power.draw,temperature.aip", "-f", "csv,noheader,nounits"),
        "-L": ("-L",),
        "-n ports": ("-n", "ports", "-i", card),
        "-n link": ("-n", "link", "-i", card, *(["-P", ports] if ports else [])),
    }
    return {
        name: sorted(round(ask(*arguments).seconds, 3) for _ in range(options.repetitions))
        for name, arguments in forms.items()
    }


def _as_users(host: Host, options: Options, program: str) -> dict[str, dict[str, Any]]:
    """Whether hl-smi works as the jobs' user and as one without any rights; only root can try."""
    if os.geteuid() != 0:
        return {}
    found = {}
    for name in dict.fromkeys([options.user, NOBODY]):
        user: User | None = user_named(name) if name else None
        if user is None:
            continue
        with scratch(user) as folder:
            outcome = host.run([program, "-L"], 60, user, host.environment(user, HABANA_LOGS=folder, HOME=folder))
        found[name] = {
            "failure": outcome.failure,
            "seconds": round(outcome.seconds, 3),
            "lines": outcome.out.count("\n"),
        }
    return found


def _watts(host: Host, folder: str) -> dict[str, str | None]:
    return {
        f"{monitor}/{name}": host.value(f"{folder}/{monitor}/{name}")
        for monitor in host.names(folder)
        for name in host.names(f"{folder}/{monitor}")
        if re.fullmatch(r"(power|curr|in)\d+_(input|average|label)", name)
    }
