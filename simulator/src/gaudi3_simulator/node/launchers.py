"""Text of the node's programs and unit: short launchers that call this package, and the boot unit."""

from __future__ import annotations

LIBRARY = "/usr/lib/gaudi3-simulator"
PACKAGE = "gaudi3_simulator_node"

_LAUNCHER = """\
#!/usr/bin/python3 -IS
# {comment}
import sys

sys.path.insert(0, "{library}")
from {package}.{module} import {function}

sys.exit({function}(sys.argv[1:]{more}))
"""

# path: (module, function)
_IMAGE_TOOLS = {
    "/usr/local/sbin/gaudi3-simulator-node": ("cli", "main"),
    "/usr/local/sbin/modprobe": ("kmod_tools", "modprobe"),
    "/usr/local/sbin/rmmod": ("kmod_tools", "rmmod"),
    "/usr/local/bin/lsmod": ("kmod_tools", "lsmod"),
    "/usr/local/bin/modinfo": ("kmod_tools", "modinfo"),
    "/usr/local/bin/dmesg": ("dmesg", "main"),
}

# The boot loader's tool, by whether the node presents itself as Red Hat's: (path, function).
_BOOT_LOADERS = {False: ("/usr/sbin/update-grub", "update_grub"), True: ("/usr/sbin/grubby", "grubby")}

_VENDOR_TOOLS = {
    "hl-smi": "hl_smi",
    "hl-fw-loader": "hl_fw_loader",
    "hl_qual": "hl_qual",
    "manage_network_ifs.sh": "manage_network_ifs",
}

UNIT_PATH = "/etc/systemd/system/gaudi3-simulator.service"

UNIT = """\
[Unit]
Description=Simulated Gaudi cards: hardware and kernel interface of a gaudi3.scale simulator node
DefaultDependencies=no
After=systemd-tmpfiles-setup.service systemd-journald.socket local-fs.target node-shadow.service
Before=sysinit.target shutdown.target
Conflicts=shutdown.target
ConditionPathExists=/var/lib/gaudi3-simulator/state.json

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/local/sbin/gaudi3-simulator-node boot

[Install]
WantedBy=sysinit.target
"""


def image_files() -> dict[str, tuple[int, str]]:
    """Every file that the node image carries for this package: path to (mode, text)."""
    files = {
        path: (0o755, _text(module, function, "Part of the gaudi3.scale simulator.", ""))
        for path, (module, function) in _IMAGE_TOOLS.items()
    }
    files[UNIT_PATH] = (0o644, UNIT)
    return files


def boot_loader_files(red_hat: bool) -> dict[str, tuple[int, str]]:
    """The stand-in for the boot loader's tool, which the node's system would have: path to (mode, text)."""
    path, function = _BOOT_LOADERS[red_hat]
    comment = f"Stand-in for {path.rpartition('/')[2]} (gaudi3.scale simulator)."
    return {path: (0o755, _text("boot_loader", function, comment, ""))}


def vendor_text(tool: str, release: str) -> str:
    """The launcher that the simulated vendor package of ``release`` installs as ``tool``."""
    if tool not in _VENDOR_TOOLS:
        raise ValueError(f"{tool} is not simulated: it has to be one of {', '.join(_VENDOR_TOOLS)}")
    comment = f"Simulated {tool} of release {release} (gaudi3.scale simulator)."
    return _text(_VENDOR_TOOLS[tool], "main", comment, f', release="{release}"')


def _text(module: str, function: str, comment: str, more: str) -> str:
    return _LAUNCHER.format(
        comment=comment, library=LIBRARY, package=PACKAGE, module=module, function=function, more=more
    )
