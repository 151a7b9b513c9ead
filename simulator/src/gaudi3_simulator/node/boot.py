"""What happens when the node starts: the shadow trees, the kernel log, the driver that udev would load."""

from __future__ import annotations

import os
import shutil
import subprocess

from . import faults, kernel, kernel_log, kmod_tools, node, paths, readings, releases, store, sysfs

SHADOW = paths.RUN
_COPY_LIMIT = 4096


def boot() -> node.Node:
    """Bring the node up from its state file; on a running node, only make the trees right again."""
    with store.Lock():
        again = paths.read_text(paths.RUNTIME) is not None
        state = store.load_state()
        simulated = node.Node(state, store.load_runtime() if again else store.new_runtime())
        if not paths.root():
            _mount_shadows()
        if not again:
            kernel_log.clear()
            readings.create_sensors()
            kernel_log.write(simulated.runtime["booted_at"], "gaudi3-simulator: simulated node, no Gaudi card is real")
        simulated.save()
        sysfs.apply(simulated)
        if not again and not simulated.has_fault(faults.DRIVER_NOT_LOADED):
            autoload(simulated)
    return simulated


def autoload(simulated: node.Node) -> None:
    """Load what udev and systemd-modules-load would: the driver of the cards, and names in modules-load.d."""
    kept_out = kmod_tools.blacklisted()
    wanted = [*kernel.CORE, *releases.MODULES] if node.DRIVER not in kept_out else []
    wanted += _modules_load()
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


def _mount_shadows() -> None:
    """Put writable copies over the kernel's read-only trees, once."""
    mounted = {line.split()[4] for line in _lines("/proc/self/mountinfo")}
    trees = [
        "/sys/class",
        "/sys/module",
        "/sys/bus/pci/devices" if os.path.isdir("/sys/bus/pci/devices") else "/sys/bus",
    ]
    for tree in trees:
        if tree not in mounted:
            shadow = f"{SHADOW}{tree}"
            # The host's own PCI devices are left out: none of them is the node's.
            _copy(tree, shadow) if tree != sysfs.PCI else os.makedirs(shadow, exist_ok=True)
            _mount(shadow, tree)
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


def _mount(source: str, target: str) -> None:
    mount = shutil.which("mount", path="/usr/bin:/bin:/usr/sbin:/sbin") or "mount"
    subprocess.run([mount, "--bind", source, target], check=True)
