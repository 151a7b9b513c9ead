"""The machine under the cards: kernel, system, memory, and what the kernel says of the driver."""

from __future__ import annotations

import os
import platform
import re
import resource
from typing import Any

from .host import Host, Options, Result

_OS_FIELDS = ("ID", "VERSION_ID", "PRETTY_NAME")
_MEMORY_FIELDS = ("MemTotal", "MemFree", "MemAvailable", "HugePages_Total", "HugePages_Free", "Hugepagesize")
_EFI_SECURE_BOOT = "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
_LOG_LINES = 400
_OF_THE_DRIVER = re.compile(
    r"habanalabs|\bhbl\b|gaudi|\baccel\d|DMAR|AMD-Vi|iommu|Corrupted page table|Bad pagetable"
    # What Secure Boot has the kernel say names no module.
    r"|Loading of (?:unsigned )?module\b.{0,40}rejected",
    re.IGNORECASE,
)

# Lines about a process hold its name and a file's, which any user can choose.
_OF_A_PROCESS = re.compile(
    r"\[\d+\](?::|\s+(?:trap|general protection|bad|segfault))"
    r"|\b(?:segfault at |traps?: |general protection fault|Killed process |Out of memory|oom-killer|oom-kill:"
    r"|oom_reaper|page allocation failure|core ?dump|audit[:(]|Comm: |used greatest stack depth"
    r"|potentially unexpected fatal signal|INFO: task |(?:user )?process ['`\"])",
    re.IGNORECASE,
)


def machine(host: Host, options: Options) -> Result:
    """Kernel, system, processors, memory, huge pages, memlock, Secure Boot."""
    meminfo = dict(_pairs(host.read("/proc/meminfo") or "", ":"))
    memory = {name: meminfo.get(name) for name in _MEMORY_FIELDS}
    secure_boot = _secure_boot(host)
    soft, hard = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    result = Result(
        {
            "kernel": platform.release(),
            "architecture": platform.machine(),
            "python": platform.python_version(),
            "system": {name: value for name, value in _release(host).items() if name in _OS_FIELDS},
            "maker": [host.value(f"/sys/class/dmi/id/{name}") for name in ("sys_vendor", "product_name")],
            "virtualisation": host.run(["systemd-detect-virt"], 5).out.strip() or None,
            "processors": _processors(host),
            "memory": memory,
            "kernel_command_line": host.value("/proc/cmdline"),
            "secure_boot": secure_boot,
            "selinux_enforcing": host.value("/sys/fs/selinux/enforce"),
            "transparent_huge_pages": host.value("/sys/kernel/mm/transparent_hugepage/enabled"),
            "numa_balancing": host.value("/proc/sys/kernel/numa_balancing"),
            "nr_hugepages": host.value("/proc/sys/vm/nr_hugepages"),
            "governor": host.value("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
            "memlock_here": [_limit(soft), _limit(hard)],
            "limit_files": {name: host.read(f"/etc/security/limits.d/{name}", 4096) for name in _limit_files(host)},
            "time_synchronised": host.exists("/run/systemd/timesync/synchronized"),
        }
    )
    if secure_boot:
        result.odd.append("Secure Boot is on: the kernel loads only modules signed with an enrolled key")
    if (memory["HugePages_Total"] or "0").split()[0] == "0":
        result.odd.append("no huge pages are set aside")
    return result


def kernel_log(host: Host, options: Options) -> Result:
    """What the kernel wrote of the driver, the IOMMU and the cards since it started."""
    outcome = host.run(["dmesg"], 20)
    if outcome.code != 0:  # journalctl's `cat` has no host name in its lines
        outcome = host.run(["journalctl", "-k", "-b", "-o", "cat", "--no-pager"], 30)
    if outcome.code != 0:
        return Result(not_tried=f"the kernel log cannot be read ({outcome.failure}): ask as root")
    lines = [
        line for line in outcome.out.splitlines() if _OF_THE_DRIVER.search(line) and not _OF_A_PROCESS.search(line)
    ]
    errors = [line for line in lines if re.search(r"error|fail|panic|Corrupted|timeout", line, re.IGNORECASE)]
    result = Result({"lines": len(lines), "first": lines[:_LOG_LINES], "last": lines[_LOG_LINES:][-_LOG_LINES:]})
    if errors:
        result.odd.append(
            f"{len(errors)} lines of the kernel log speak of errors, the last: {errors[-1].strip()[:160]}"
        )
    return result


def _pairs(text: str, separator: str) -> list[tuple[str, str]]:
    found = (line.partition(separator) for line in text.splitlines() if separator in line)
    return [(name.strip(), value.strip().strip('"')) for name, _, value in found]


def _release(host: Host) -> dict[str, str]:
    return dict(_pairs(host.read("/etc/os-release") or "", "="))


def _processors(host: Host) -> dict[str, Any]:
    pairs = _pairs(host.read("/proc/cpuinfo", 4 * 1024 * 1024) or "", ":")
    models = sorted({value for name, value in pairs if name == "model name"})
    sockets = {value for name, value in pairs if name == "physical id"}
    nodes = [name for name in host.names("/sys/devices/system/node") if re.fullmatch(r"node\d+", name)]
    return {"model": models, "count": os.cpu_count(), "sockets": len(sockets), "numa_nodes": len(nodes)}


def _secure_boot(host: Host) -> bool | None:
    """Its EFI variable is four bytes of attributes and one of value; None without EFI."""
    try:
        with open(host.at(_EFI_SECURE_BOOT), "rb") as file:
            return file.read(5)[4:] == b"\x01"
    except OSError:
        return None


def _limit(value: int) -> str:
    return "unlimited" if value == resource.RLIM_INFINITY else str(value)


def _limit_files(host: Host) -> list[str]:
    return [name for name in host.names("/etc/security/limits.d") if re.search(r"gaudi|habana|memlock", name)]
