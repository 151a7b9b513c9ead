"""What the kernel shows of the node under /sys and /dev: computed as a whole, then made so.

``desired`` is pure. ``apply`` writes what differs and removes what an earlier call wrote and is no longer
wanted, so a module load, a fault or a port change are one and the same operation.
"""

from __future__ import annotations

import json
import os

from . import cards, faults, modules, node, paths, releases, store, sysfs_accel, sysfs_network, sysfs_pci, tree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from .tree import Entry

ACCEL = sysfs_accel.ACCEL
MODULE = "/sys/module"
# Folders that stay when they are empty.
_ROOTS = (
    sysfs_pci.DEVICES,
    sysfs_pci.DRIVERS,
    sysfs_pci.IOMMU,
    ACCEL,
    sysfs_accel.HWMON,
    sysfs_accel.DEV,
    sysfs_network.RDMA,
    sysfs_network.NET,
    sysfs_network.DEV,
    cards.FOLDER,
    MODULE,
    "/sys/class",
    "/dev",
    "/",
)

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


def desired(simulated: node.Node) -> dict[str, Entry]:
    """Every file that should exist."""
    files: dict[str, Entry] = {}
    driver_up = simulated.driver_up
    for card in simulated.cards:
        files.update(sysfs_pci.entries(simulated, card))
        if driver_up:
            files.update(sysfs_accel.entries(simulated, card))
            files.update(sysfs_network.entries(simulated, card))
    if simulated.has_fault(faults.RELEASE_MISMATCH):
        files[cards.ACQUIRE_STATUS] = tree.Text(f"{cards.OTHER_RELEASE}\n")
    for module in simulated.runtime["modules"]:
        for name, text in _module_attributes(simulated, module).items():
            files[f"{MODULE}/{module}/{name}"] = tree.Text(text + "\n")
    return files


def apply(simulated: node.Node) -> None:
    """Make the trees match ``desired``."""
    if sysfs_network.note_carriers(simulated):
        store.save_runtime(simulated.runtime)
    wanted = desired(simulated)
    before = json.loads(paths.read_text(paths.MANIFEST) or "[]")
    for path in before:
        if path not in wanted:
            tree.remove(path, _ROOTS)
    tree.make(wanted)
    os.makedirs(paths.at(ACCEL), exist_ok=True)
    if wanted.keys() != set(before):
        paths.write_atomically(paths.MANIFEST, json.dumps(sorted(wanted)))
    _show_modules(simulated)


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
    held = len(cards.holders()) if module == node.DRIVER else 0
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
