"""What happens when the node starts: the shadow trees, the kernel log, the driver that udev would load."""

from __future__ import annotations

import os
import shutil
import subprocess

from . import (
    boot_loader,
    faults,
    follower,
    hlml_energy,
    kernel,
    kernel_log,
    kmod_tools,
    node,
    paths,
    readings,
    releases,
    store,
    strictness,
    sysfs,
    sysfs_pci,
)

SHADOW = paths.RUN
_COPY_LIMIT = 4096


def boot() -> node.Node:
    """Bring the node up from its state file; on a running node, only make the trees right again."""
    with store.Lock():
        again = paths.read_text(paths.RUNTIME) is not None
        state = store.load_state()
        simulated = node.Node(state, store.load_runtime() if again else store.new_runtime())
        if not again:
            simulated.runtime["boot_options"] = boot_loader.options()
            simulated.clear_fault(faults.DEVICE_ACQUIRED)  # no process outlives a reboot
        if not paths.root():
            _mount_shadows(simulated.runtime["boot_options"])
            _make_group("render")
        if not again:
            kernel_log.clear()
            readings.create_sensors()
            hlml_energy.create()
            kernel_log.write(simulated.runtime["booted_at"], "gaudi3-simulator: simulated node, no Gaudi card is real")
        simulated.save()
        sysfs.apply(simulated)
        if not again and not simulated.has_fault(faults.DRIVER_NOT_LOADED):
            autoload(simulated)
    follower.start(simulated)
    return simulated


def autoload(simulated: node.Node) -> None:
    """Load what systemd-modules-load would, and with a lenient kernel the driver, which has no alias to be found by."""
    kept_out = kmod_tools.blacklisted()
    lenient = [] if strictness.is_on("modules-load-d") else releases.MODULES
    wanted = [*kernel.CORE, *lenient] if node.DRIVER not in kept_out else []
    wanted += [name for name in _modules_load() if name not in kept_out]
    for name in wanted:
        installed = name in kernel.CORE or paths.read_text(kernel.module_path(name)) is not None
        if installed and (name not in kernel.CORE or _installed(node.RDMA)):
            try:
                kernel.load(simulated, name, kmod_tools.configured_options(name))
            except kernel.KernelError:
                continue  # the kernel log says why; the boot goes on, as on hardware


def _installed(name: str) -> bool:
    return paths.read_text(kernel.module_path(name)) is not None


def _modules_load() -> list[str]:
    """Names of modules of ours in /etc/modules-load.d."""
    folder = "/etc/modules-load.d"
    try:
        files = sorted(os.listdir(paths.at(folder)))
    except OSError:
        return []
    lines = [line.strip().replace("-", "_") for file in files for line in _lines(f"{folder}/{file}")]
    return [line for line in lines if line in kernel.SERVED or line in kernel.CORE]


def _lines(path: str) -> list[str]:
    return (paths.read_text(path) or "").splitlines()


def _mount_shadows(boot_options: str) -> None:
    """Put writable copies over the kernel's read-only trees, once."""
    mounted = {line.split()[4] for line in _lines("/proc/self/mountinfo")}
    # The host's own PCI devices and their IOMMU groups are left out: none of them is the node's.
    empty = [sysfs_pci.BUS] if os.path.isdir(sysfs_pci.BUS) else []
    empty += [sysfs_pci.IOMMU] if os.path.isdir(sysfs_pci.IOMMU) else []
    for tree in ["/sys/class", "/sys/module", *([] if sysfs_pci.BUS in empty else ["/sys/bus"]), *empty]:
        if tree not in mounted:
            shadow = f"{SHADOW}{tree}"
            os.makedirs(shadow, exist_ok=True) if tree in empty else _copy(tree, shadow)
            if tree == "/sys/class":
                for name in ("accel", "hwmon"):  # the host's own cards and sensors are not the node's
                    shutil.rmtree(f"{shadow}/{name}", ignore_errors=True)
            _mount(shadow, tree)
    if "/proc/cmdline" not in mounted:
        host = (paths.read_text("/proc/cmdline") or "").rstrip("\n")
        shadow = f"{SHADOW}/proc_cmdline"
        paths.write_atomically(shadow, f"{host} {boot_options}".rstrip() + "\n")
        _mount(shadow, "/proc/cmdline")
    if os.path.exists("/proc/modules") and "/proc/modules" not in mounted:
        text = paths.read_text("/proc/modules") or ""
        paths.write_atomically(paths.PROC_MODULES + ".host", text)
        paths.write_atomically(paths.PROC_MODULES, text)
        _mount(paths.PROC_MODULES, "/proc/modules")


def _copy(source: str, target: str) -> None:
    """Copy a tree of sysfs: folders, links as they are, small readable files; the rest as empty files."""
    os.makedirs(target, exist_ok=True)
    for entry in os.scandir(source):
        place = f"{target}/{entry.name}"
        if entry.is_symlink():
            os.symlink(os.readlink(entry.path), place)
        elif entry.is_dir():
            _copy(entry.path, place)
        else:
            content = b""
            try:
                with open(entry.path, "rb") as file:
                    content = file.read(_COPY_LIMIT)
            except OSError:
                pass
            with open(place, "wb") as file:
                file.write(content)


def _make_group(name: str) -> None:
    """The group of device files, which udev brings on a whole system."""
    if not any(line.startswith(f"{name}:") for line in _lines("/etc/group")):
        subprocess.run(["/usr/sbin/groupadd", "--system", name], check=True)


def _mount(source: str, target: str) -> None:
    mount = shutil.which("mount", path="/usr/bin:/bin:/usr/sbin:/sbin") or "mount"
    subprocess.run([mount, "--bind", source, target], check=True)
