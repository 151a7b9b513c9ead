"""Which fields of a report are known. What is not known is kept and named by its path, never dropped."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

_TOP = {"format", "created", "asked", "simulated", "signs_of_simulation", "sections", "shortened"}
_ENTRY = {"title", "state", "seconds", "odd", "why", "error", "data"}
#: What a twin is made of: the fields of each section's data.
_USED: dict[str, set[str]] = {
    "machine": {
        "kernel", "architecture", "python", "system", "maker", "virtualisation", "processors", "memory",
        "kernel_command_line", "secure_boot", "selinux_enforcing", "transparent_huge_pages", "numa_balancing",
        "nr_hugepages", "governor", "memlock_here", "limit_files", "time_synchronised",
    },
    "packages": {"packages", "sources", "installation_log", "dkms_status", "dkms_log"},
    "modules": {"kernel", "loaded", "files", "firmware", "texts"},
    "kernel_log": {"lines", "first", "last"},
    "device_files": {"files", "udev_rules", "can_open"},
    "cards": {"cards", "rdma", "held", "addresses_file"},
    "firmware": {"sysfs", "hl_smi", "loader_help"},
    "tools": {
        "held", "version", "help", "table", "topology", "csv", "csv_without_units", "log", "timings", "as_users",
        "ports",
    },
    "ports_script": {"script", "--status", "--check-pfc", "-v", "-h"},
}  # fmt: skip
_CARD = {
    "address", "accel", "driver", "iommu_group", "iommu_type", "net", "device", "revision", "subsystem_vendor",
    "subsystem_device", "numa_node", "current_link_speed", "current_link_width", "max_link_speed", "max_link_width",
    "module_id", "status", "device_type", "driver_ver", "hard_reset_cnt", "security_enabled", "clk_cur_freq_mhz",
    "clk_max_freq_mhz", "max_power",
}  # fmt: skip
#: Sections that the doctor has and that say nothing of what a simulated node can be.
_APART = {
    "power", "counters", "environment", "python", "metrics", "numbers", "first_step", "copies", "types", "attention",
    "memory", "experts", "compiled", "collective", "sharded", "elastic", "killed_holder", "lost_peer", "part_of_node",
}  # fmt: skip
_BUNDLE = (
    "hl-smi.txt", "hl-smi-log.txt", "links-", "counters-", "ports.txt", "kernel-log.txt", "lspci.txt", "driver.txt",
    "packages-", "accel.txt", "health.json", "files/",
)  # fmt: skip


def unknown(report: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Fields that nothing here knows, by path, and the sections that are known and not simulated."""
    found = {name: value for name, value in report.items() if name not in _TOP}
    apart = []
    for name, entry in report["sections"].items():
        if name not in _USED and name not in _APART:
            found[f"sections.{name}"] = entry
            continue
        fields = entry if isinstance(entry, dict) else {}
        found.update({f"sections.{name}.{key}": value for key, value in fields.items() if key not in _ENTRY})
        data = fields.get("data")
        if name in _APART:
            apart += [f"section {name}"] if data else []
        elif isinstance(data, dict):
            allowed = {*_USED[name], "error"}
            found.update({f"sections.{name}.data.{key}": value for key, value in data.items() if key not in allowed})
            if name == "cards":
                found.update(_of_cards(data.get("cards")))
        elif data is not None:
            found[f"sections.{name}.data"] = data
    return found, apart


def _of_cards(cards: Any) -> dict[str, Any]:
    return {
        f"sections.cards.data.cards[{number}].{key}": value
        for number, card in enumerate(cards if isinstance(cards, list) else [])
        if isinstance(card, dict)
        for key, value in card.items()
        if key not in _CARD
    }


def apart(texts: Iterable[str]) -> list[str]:
    """Names of a bundle's texts that say nothing of what a simulated node can be."""
    return [name for name in texts if not name.startswith(_BUNDLE)]
