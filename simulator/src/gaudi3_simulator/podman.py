"""Podman with settings and storage of our own, so that nothing else on the machine is touched.

The settings are what makes systemd boot in containers on hosts with hybrid cgroups, without a registry and with
low hard limits: runc (crun refuses hybrid cgroups), cgroupfs, and limits under the host's own. ``static_dir`` and
``volume_path`` stay unset: with them podman's clean-up process looks in another database, and restarts fail.
"""

from __future__ import annotations

import fcntl
import os
import resource
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from . import SimulatorError
from .home import home, write_atomically

PACKAGES = (
    "podman",
    "runc",
    "netavark",
    "mmdebstrap",
    "openssh-client",
    "iptables",
    "nftables",
    "uidmap",
    "gnupg",
    "gcc",
    "libc6-dev",
)
"""Debian and Ubuntu packages that the simulator needs."""

_CONTAINERS = """\
[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
runtime = "runc"
tmp_dir = "{root}/tmp"
[network]
network_backend = "netavark"
network_config_dir = "{root}/net"
[containers]
log_driver = "k8s-file"
default_ulimits = [ "nofile={nofile}:{nofile}", "nproc={nproc}:{nproc}" ]
"""

_STORAGE = """\
[storage]
driver = "overlay"
graphroot = "{root}/storage"
runroot = "{root}/run"
"""


def missing_packages() -> list[str]:
    """Packages of ``PACKAGES`` whose programs are not on this machine."""
    programs = {
        "podman": "podman", "runc": "runc", "mmdebstrap": "mmdebstrap", "openssh-client": "ssh-keygen",
        "iptables": "iptables", "nftables": "nft", "uidmap": "newuidmap", "gnupg": "gpg", "gcc": "cc",
    }  # fmt: skip
    missing = [package for package, program in programs.items() if not shutil.which(program)]
    if not any(Path(folder, "netavark").exists() for folder in ("/usr/lib/podman", "/usr/libexec/podman")):
        missing.append("netavark")
    if not Path("/usr/include/stdio.h").exists():
        missing.append("libc6-dev")
    return missing


def _forget_the_last_boot(root: Path) -> None:
    """Remove what podman notes for as long as the machine is up.

    It expects these folders to be empty after a boot, as its own are. Ours outlive one: podman would look for network
    namespaces and mounts that went with it, and fail in each command.
    """
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    mark = root / "boot"
    root.mkdir(parents=True, exist_ok=True)
    with (root / "boot.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        known = mark.read_text().strip() if mark.exists() else boot
        for name in ("run", "tmp") if known != boot else ():
            shutil.rmtree(root / name, ignore_errors=True)
        if known != boot or not mark.exists():
            write_atomically(mark, f"{boot}\n")


class Podman:
    """Runs podman with the simulator's own configuration; errors carry podman's last line."""

    def __init__(self) -> None:
        root = home() / "podman"
        nofile = min(20000, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
        nproc = min(32768, int(Path("/proc/sys/kernel/pid_max").read_text()))
        _forget_the_last_boot(root)
        write_atomically(root / "containers.conf", _CONTAINERS.format(root=root, nofile=nofile, nproc=nproc))
        write_atomically(root / "storage.conf", _STORAGE.format(root=root))
        self.environment = {
            **os.environ,
            "CONTAINERS_CONF": str(root / "containers.conf"),
            "CONTAINERS_STORAGE_CONF": str(root / "storage.conf"),
        }

    def run(self, *arguments: str, check: bool = True, timeout: float = 600) -> subprocess.CompletedProcess[str]:
        """Run ``podman ARGUMENTS``, with absolute paths, and return its result."""
        command = ["podman", *arguments]
        try:
            # From a folder that stays: a container that ends is started again from where it was started first, and is
            # left off, without a word, where that folder has been removed.
            result = subprocess.run(
                command, env=self.environment, cwd="/", capture_output=True, text=True, timeout=timeout, check=False
            )
        except subprocess.TimeoutExpired:
            raise SimulatorError(
                f"'podman {' '.join(arguments[:2])}' did not end in {timeout:g} s: run the command again when the "
                "machine has less to do."
            ) from None
        if check and result.returncode:
            last = (result.stderr.strip().splitlines() or ["no message"])[-1]
            raise SimulatorError(f"'podman {' '.join(arguments[:2])}' failed: {last}")
        return result

    def ok(self, *arguments: str) -> bool:
        """Whether ``podman ARGUMENTS`` exits with 0."""
        return self.run(*arguments, check=False).returncode == 0

    def names(self, label: str, *, running: bool = False) -> list[str]:
        """Names of the containers with ``label``: all, or those that run."""
        scope = [] if running else ["--all"]
        return self.run("ps", *scope, "--filter", f"label={label}", "--format", "{{.Names}}").stdout.split()

    def remove(self, names: Sequence[str]) -> None:
        """Remove containers at once, with what they hold."""
        if names:
            self.run("rm", "--force", "--time", "0", "--volumes", *names)
