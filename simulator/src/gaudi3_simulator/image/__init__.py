"""The node images: Debian with systemd and sshd, bare of PyTorch as a node is that nobody has installed it on.

There is one for each Debian that nodes run, one with dnf for nodes that present themselves as Red Hat's, and one with
torch, its device and what trains, which the vendor's container image is made of. Each is built once from packages and
pinned wheels, and named by the hash of all that goes into it. It carries this machine's extra certificate
authorities, so it is made here and never published.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import TextIO

from .. import SimulatorError
from ..home import home
from ..podman import Podman
from ..systems import DEFAULT, SYSTEMS, System
from . import hpu
from .pins import BESIDE_TORCH, pip_runs, requirements_file, requirements_files, torch_arguments, torch_index_arguments

_HERE = Path(__file__).resolve().parent
_DEBIAN = (
    "systemd,systemd-sysv,dbus,libpam-systemd,python3,python3-apt,openssh-server,iproute2,procps,iputils-ping,kmod,"
    "sudo,ca-certificates,curl,gpgv,gpg,ethtool,pciutils,python3-venv,nftables"
)
# Mounts that systemd must leave alone at shutdown: all below /run/node-shadow, and the one that others lie in.
_LEFT_MOUNTED = ("run-node\\x2dshadow-.mount", "proc-sys-kernel.mount")
_DNF = "dnf,python3-dnf,dnf-plugins-core,rpm,createrepo-c,gnupg,file"

__all__ = [
    "BESIDE_TORCH", "device_wheel", "ensure_device", "ensure_image", "image_name", "mounts_below", "pip_runs",
    "requirements_file", "requirements_files", "torch_arguments", "torch_index_arguments",
]  # fmt: skip

Log = Callable[[str], None]


def image_name(system: System = SYSTEMS[DEFAULT], *, dnf: bool = False, torch: bool = False) -> str:
    """Name of the image of a Debian, by the hash of its inputs."""
    digest = hashlib.sha256()
    inputs = sorted(path for path in _HERE.iterdir() if path.is_file())
    if torch:
        inputs += [*requirements_files(), *hpu.source_files()]
    for path in inputs:
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    for path in sorted(Path("/usr/local/share/ca-certificates").glob("*.crt")):
        digest.update(path.read_bytes())
    variant = (
        ("" if system.name == DEFAULT else f"-{system.name}") + ("-dnf" if dnf else "") + ("-torch" if torch else "")
    )
    return f"localhost/gaudi3-node{variant}:{digest.hexdigest()[:16]}"


def ensure_image(
    podman: Podman, log: Log, system: System = SYSTEMS[DEFAULT], *, dnf: bool = False, torch: bool = False
) -> str:
    """Build the image of a Debian unless it is there; returns its name."""
    name = image_name(system, dnf=dnf, torch=torch)
    if podman.ok("image", "exists", name):
        return name
    log_file = home() / f"image-{name.rsplit('/', 1)[1].replace(':', '-').removeprefix('gaudi3-node-')}.txt"
    content = ", torch for CPU" if torch else ""
    log(f"building the node image once ({system.title}{content}); log: {log_file}")
    work = Path(tempfile.mkdtemp(dir=home(), prefix="image-"))
    try:
        with log_file.open("w") as output:
            _debian(work / "root", system, _DEBIAN + (f",{_DNF}" if dnf else ""), output, log)
            if torch:
                folder = work / "root" / system.packages_folder
                _python(folder, pip_runs(system, work), output, log)
                with zipfile.ZipFile(_device(lambda: folder, system, work, output, log)) as wheel:
                    wheel.extractall(folder)
            # Empty, and old: Ansible's apt module then knows that it has to update first.
            os.utime(work / "root" / "var/lib/apt/lists", (0, 0))
            log("  importing it into podman")
            _import(podman, work / "root", name)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    _remove_older(podman, name)
    return name


def device_wheel() -> Path:
    """Where the simulated device is kept, built of the sources as they are."""
    return hpu.kept_wheel(requirements_file("torch"), SYSTEMS[DEFAULT].python)


def ensure_device(log: Log) -> Path:
    """Build the simulated device for the nodes' Python unless it is there; returns its wheel."""
    kept = device_wheel()
    if kept.exists():
        return kept
    system = SYSTEMS[DEFAULT]
    log_file = home() / "image-hpu.txt"
    log(f"building the simulated hpu device of torch once; log: {log_file}")
    work = Path(tempfile.mkdtemp(dir=home(), prefix="device-"))

    def packages() -> Path:
        _python(work / "packages", pip_runs(system, work, BESIDE_TORCH), output, log, "--no-compile")
        return work / "packages"

    try:
        with log_file.open("w") as output:
            return _device(packages, system, work, output, log)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _remove_older(podman: Podman, current: str) -> None:
    """Images of earlier inputs are of no more use; podman keeps those that a node still runs on."""
    listed = podman.run("images", "--format", "{{.Repository}}:{{.Tag}}", current.rsplit(":", 1)[0]).stdout.split()
    for name in set(listed) - {current}:
        podman.run("image", "rm", name, check=False)


def _run(command: list[str], output: TextIO, what: str) -> None:
    result = subprocess.run(command, stdout=output, stderr=subprocess.STDOUT, check=False)
    if result.returncode:
        raise SimulatorError(f"{what} failed with exit code {result.returncode}; the log is {output.name}.")


def _mirror(system: System) -> list[str]:
    """The host's own sources where it runs the same Debian, else Debian's address and key."""
    release = Path("/etc/os-release").read_text()
    if f"VERSION_CODENAME={system.codename}" in release:
        for source in ("/etc/apt/sources.list.d/debian.sources", "/etc/apt/sources.list"):
            if Path(source).exists():
                return [source]
    key = "/usr/share/keyrings/debian-archive-keyring.gpg"
    if not Path(key).exists():
        raise SimulatorError(
            f"The node image is {system.title} and its key is missing: install debian-archive-keyring."
        )
    signed = f"[signed-by={key}]"
    return [
        f"deb {signed} http://deb.debian.org/debian {system.codename} main",
        f"deb {signed} http://deb.debian.org/debian {system.codename}-updates main",
        f"deb {signed} http://deb.debian.org/debian-security {system.codename}-security main",
    ]


def _debian(root: Path, system: System, packages: str, output: TextIO, log: Log) -> None:
    log(f"  {system.title} with systemd and sshd")
    certificates = "/usr/local/share/ca-certificates"
    hooks = [
        f"copy-in {_HERE}/node-shadow /usr/local/sbin",
        f"copy-in {_HERE}/node-shadow.service /etc/systemd/system",
        *(
            f'install -D -m 0644 {_HERE}/node-shadow.conf "$1/etc/systemd/system/{mount}.d/node-shadow.conf"'
            for mount in _LEFT_MOUNTED
        ),
        f'mkdir -p "$1{certificates}" && cp -a {certificates}/. "$1{certificates}/"',
        'chroot "$1" update-ca-certificates',
        'chroot "$1" systemctl enable node-shadow.service',
        # A node's machine-id and host keys are its own, made at first boot; getty has no terminal here.
        'chroot "$1" systemctl mask systemd-remount-fs.service getty.target apt-daily.timer apt-daily-upgrade.timer',
        ': > "$1/etc/machine-id"; mkdir -p "$1/root/.ssh"; chmod 700 "$1/root/.ssh"',
    ]
    _bootstrap(root, system, packages, hooks, output)


def _bootstrap(root: Path, system: System, packages: str, hooks: list[str], output: TextIO) -> None:
    command = [
        "mmdebstrap", "--mode=root", "--variant=apt", "--format=directory", f"--include={packages}",
        "--dpkgopt=path-exclude=/usr/share/man/*", "--dpkgopt=path-exclude=/usr/share/doc/*",
        "--dpkgopt=path-exclude=/usr/share/locale/*",
        '--aptopt=Acquire::Languages "none"', '--aptopt=APT::Install-Recommends "false"',
        *(f"--customize-hook={hook}" for hook in hooks),
        system.codename, str(root), *_mirror(system),
    ]  # fmt: skip
    _run(command, output, f"Building {system.title} with mmdebstrap")
    # Where a process still looks into it, mmdebstrap leaves the new system's /proc mounted, with a warning.
    for place in mounts_below(root, Path("/proc/self/mounts").read_text()):
        subprocess.run(["umount", "--lazy", place], check=False)


def mounts_below(folder: Path, table: str) -> list[Path]:
    """Mount points below a folder, the innermost first; ``table`` is the text of /proc/self/mounts."""
    places = [
        Path(re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), line.split()[1]))
        for line in table.splitlines()
    ]
    return [place for place in reversed(places) if folder in place.parents]


def _python(target: Path, runs: list[list[str]], output: TextIO, log: Log, *options: str) -> None:
    log("  torch for CPU, and what comes with it")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-warn-script-location", "--target", str(target)]
    command += ["--require-hashes", "--only-binary=:all:", *options]
    for arguments in runs:
        _run([*command, *arguments], output, "Installing torch with pip")
        # Not into the image; and pip leaves out what the second run has in a folder of the first.
        shutil.rmtree(target / "bin", ignore_errors=True)


def _device(packages: Callable[[], Path], system: System, work: Path, output: TextIO, log: Log) -> Path:
    if hpu.source_folder() is None:
        raise SimulatorError("The simulated hpu device cannot be built, as its sources (simulator/torch) are not here.")
    log("  the simulated hpu device of torch")
    return hpu.ensure_wheel(
        packages,
        work,
        requirements_file("torch"),
        system.python,
        lambda root, wanted: _bootstrap(root, system, wanted, [], output),
        lambda command, what: _run(command, output, what),
    )


def _import(podman: Podman, root: Path, name: str) -> None:
    tar = subprocess.Popen(["tar", "-C", str(root), "--numeric-owner", "-c", "."], stdout=subprocess.PIPE)
    result = subprocess.run(
        [
            "podman", "import", "--quiet", "--change", 'CMD ["/lib/systemd/systemd"]',
            "--change", "STOPSIGNAL SIGRTMIN+3", "--change", "ENV container=podman", "-", name,
        ],
        stdin=tar.stdout, env=podman.environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if tar.wait() or result.returncode:
        raise SimulatorError(f"podman could not import the node image: {result.stderr.strip()[-300:]}")
