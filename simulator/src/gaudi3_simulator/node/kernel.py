"""Loading and unloading of the simulated kernel modules, with the refusals of the real ones."""

from __future__ import annotations

import os

from . import driver_log, fault_log, faults, kernel_log, node, paths, processes, releases, strictness, sysfs

FIRMWARE = "/lib/firmware/habanalabs"
SERVED = (releases.COMPAT, *releases.MODULES)
# Modules of the kernel package that the RDMA module builds on.
CORE = {"ib_core": (), "ib_uverbs": ("ib_core",)}


class KernelError(Exception):
    """The kernel refuses; the message is the one that modprobe prints."""


class NotFound(KernelError):
    """There is no such module in this kernel's folder."""


class InUse(KernelError):
    """Something holds the module: other modules, or processes alone."""

    def __init__(self, name: str, users: list[str]) -> None:
        super().__init__(f"Module {name} is in use.")
        self.for_rmmod = f"Module {name} is in use by: {' '.join(users)}" if users else f"Module {name} is in use"


def module_path(name: str) -> str:
    """Where the module's file is, if it is installed."""
    return f"/lib/modules/{paths.kernel_release()}/updates/dkms/{name}.ko"


def module_info(name: str) -> dict[str, str]:
    """The fields of an installed module."""
    if name in CORE:
        return {"name": name, "version": "", "depends": ",".join(CORE[name])}
    text = paths.read_text(module_path(name))
    if text is None:
        raise NotFound(f"Module {name} not found in directory /lib/modules/{paths.kernel_release()}")
    if not text and strictness.is_on("empty-module"):
        raise KernelError(f"could not insert '{name}': Invalid argument")
    fields = {"version": "", "depends": ""}
    for line in text.splitlines():
        key, separator, value = line.partition(":")
        if separator:
            fields[key.strip()] = value.strip()
    return fields


def dependencies(name: str) -> list[str]:
    """Modules that have to be there first, nearest last."""
    found: list[str] = []
    for needed in filter(None, module_info(name)["depends"].split(",")):
        found += [module for module in [*dependencies(needed.strip()), needed.strip()] if module not in found]
    return found


def is_loaded(simulated: node.Node, name: str) -> bool:
    """Whether the module is there, simulated or (ib_core, ib_uverbs) of the host's own kernel."""
    return simulated.loaded(name) or (name in CORE and os.path.exists(paths.at(f"{sysfs.MODULE}/{name}")))


def load(simulated: node.Node, name: str, parameters: dict[str, str] | None = None) -> list[str]:
    """Load a module and what it depends on; returns the names loaded, in order."""
    loaded = []
    try:
        for module in [*dependencies(name), name]:
            if not is_loaded(simulated, module):
                _insert(simulated, module, parameters or {} if module == name else {})
                loaded.append(module)
    finally:
        if loaded:
            simulated.save()
            sysfs.apply(simulated)
    return loaded


def _insert(simulated: node.Node, name: str, parameters: dict[str, str]) -> None:
    info = module_info(name)
    if name in SERVED and simulated.has_fault(faults.MODULE_REJECTED):
        _log(simulated, driver_log.REJECTED, level=kernel_log.NOTICE)
        raise KernelError(f"could not insert '{name}': Key was rejected by service")
    if name == node.RDMA and not is_loaded(simulated, "ib_uverbs"):
        _log(simulated, f"{name}: Unknown symbol ib_uverbs_get_ucontext_file (err -2)", level=kernel_log.ERROR)
        raise KernelError(f"could not insert '{name}': Unknown symbol in module, or unknown parameter (see dmesg)")
    known = sysfs.PARAMETERS.get(name, {})
    for parameter in parameters:
        if parameter not in known:
            _log(simulated, f"{name}: unknown parameter '{parameter}' ignored", level=kernel_log.WARNING)
    simulated.runtime["modules"][name] = {
        "version": info["version"],
        "loaded_at": paths.now(),
        "parameters": {key: value for key, value in parameters.items() if key in known},
    }
    if name in SERVED:
        _log(simulated, *driver_log.loading(name, info["version"]))
    if name == node.RDMA and simulated.driver_up:
        _log_rdma(simulated)
    if name == node.DRIVER:
        # The remedies that work on hardware: the driver is loaded now, and it is the installed one.
        for kind in faults.ENDS_WITH_LOAD:
            simulated.clear_fault(kind)
        probe(simulated)
    if name == node.NIC and simulated.driver_up:
        fault_log.write(simulated, faults.MAC_TIMEOUT)


def probe(simulated: node.Node) -> None:
    """What the driver does with every card: load firmware, add the device. External ports start down."""
    simulated.runtime["ports_up"] = {}
    firmware = _firmware(simulated)
    simulated.runtime["firmware"] = firmware
    simulated.runtime["devices_up"] = firmware is not None
    version, kind = simulated.driver_version, simulated.board
    for card in simulated.cards:
        _log(simulated, driver_log.found(card, kind.pci_device))
        if firmware is None:
            _log(simulated, *driver_log.no_firmware(card, version, kind.generation), level=kernel_log.ERROR)
        elif not simulated.has_fault(faults.CPU_TIMEOUT, card.index):
            _log(simulated, *driver_log.added(card, version, firmware, kind.device_type, kind.memory_total_mib))
    if firmware is not None:
        fault_log.write(simulated, faults.CPU_TIMEOUT)
        fault_log.write(simulated, faults.BAD_PAGETABLE)
    if firmware is not None and simulated.loaded(node.RDMA):
        _log_rdma(simulated)


def _log_rdma(simulated: node.Node) -> None:
    for card in simulated.cards:
        _log(simulated, *driver_log.rdma(card, simulated.driver_version))


def _firmware(simulated: node.Node) -> str | None:
    """Version of the installed firmware, or nothing when there is none."""
    if simulated.has_fault(faults.NO_FIRMWARE):
        return None
    folder = f"{FIRMWARE}/{simulated.board.generation}"
    try:
        images = sorted(os.listdir(paths.at(folder)))
    except OSError:
        return None
    for image in images:
        for line in (paths.read_text(f"{folder}/{image}") or "").splitlines():
            if line.startswith("version:"):
                return line.partition(":")[2].strip()
    if not images:
        return None
    return releases.preboot(simulated.runtime["modules"][node.DRIVER]["version"], simulated.board.generation)


def remove(simulated: node.Node, name: str) -> None:
    """Take one loaded module out of the kernel, which needs no file of it (rmmod)."""
    _refuse_in_use(simulated, name)
    _take_out(simulated, name)
    simulated.save()
    sysfs.apply(simulated)


def _refuse_in_use(simulated: node.Node, name: str) -> None:
    if sysfs.reference_count(simulated, name) or (name == node.DRIVER and processes.holders()):
        raise InUse(name, sysfs.users(simulated, name))


def unload(simulated: node.Node, name: str) -> list[str]:
    """Unload a module, then its dependencies that nothing else uses; returns the names unloaded, in order."""
    info = module_info(name)
    if not simulated.loaded(name):
        return []
    _refuse_in_use(simulated, name)
    unloaded = [name]
    _take_out(simulated, name)
    for needed in filter(None, info["depends"].split(",")):
        if simulated.loaded(needed) and not sysfs.reference_count(simulated, needed):
            _take_out(simulated, needed)
            unloaded.append(needed)
    simulated.save()
    sysfs.apply(simulated)
    return unloaded


def unload_all(simulated: node.Node) -> None:
    """Take every simulated driver module out, whatever holds it (a fault, not an operator's command)."""
    for name in list(simulated.runtime["modules"]):
        if name in SERVED:
            _take_out(simulated, name)


def _take_out(simulated: node.Node, name: str) -> None:
    del simulated.runtime["modules"][name]
    if name == node.DRIVER:
        simulated.runtime.update({"devices_up": False, "firmware": None, "ports_up": {}, "pfc": {}, "power_limit": {}})
    if name in SERVED:
        _log(simulated, *driver_log.removed(name))


def _log(simulated: node.Node, *messages: str, level: int = kernel_log.INFO) -> None:
    kernel_log.write(simulated.runtime["booted_at"], *messages, level=level)
