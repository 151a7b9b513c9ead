"""A simulated host of the plays: a folder that its modules take for the whole machine."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shlex
import shutil
import stat
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import ansible

from ansible_collections.gaudi3.scale.plugins.module_utils._apt import node as apt_node
from ansible_collections.gaudi3.scale.plugins.module_utils._apt.openpgp import fingerprints
from ansible_collections.gaudi3.scale.plugins.module_utils._apt.packages import preferences
from ansible_collections.gaudi3.scale.plugins.module_utils._apt.repository import Source
from gaudi3_simulator.node import boot_loader, cli, kmod_tools, modules, releases
from gaudi3_simulator.vendor import catalogue

CHECKOUT = Path(__file__).resolve().parents[2]
STAND_INS = Path(__file__).resolve().parent / "stand_ins"
SIMULATOR = CHECKOUT / "simulator/src"
RELEASE = "1.23.0-695"
SYSTEMS = {
    "ubuntu": 'NAME="Ubuntu"\nID=ubuntu\nID_LIKE=debian\nVERSION_ID="22.04"\nVERSION_CODENAME=jammy\n'
    'VERSION="22.04 LTS (Jammy Jellyfish)"\nPRETTY_NAME="Ubuntu 22.04 LTS"\n',
    "redhat": 'NAME="Red Hat Enterprise Linux"\nID="rhel"\nID_LIKE="fedora"\nVERSION_ID="9.4"\nVERSION="9.4 (Plow)"\n'
    'PRETTY_NAME="Red Hat Enterprise Linux 9.4 (Plow)"\n',
    "debian": 'NAME="Debian GNU/Linux"\nID=debian\nVERSION_ID="12"\nVERSION="12 (bookworm)"\n'
    'VERSION_CODENAME=bookworm\nPRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\n',
    "debian-11": 'NAME="Debian GNU/Linux"\nID=debian\nVERSION_ID="11"\nVERSION="11 (bullseye)"\n'
    'VERSION_CODENAME=bullseye\nPRETTY_NAME="Debian GNU/Linux 11 (bullseye)"\n',
}
#: Packages of the vendor, as the driver role wants them.
PACKAGES = tuple(
    f"habanalabs-{name}"
    for name in ("firmware", "dkms", "thunk", "rdma-core", "graph", "firmware-tools", "firmware-odm", "qual")
)
#: Programs of the simulator, by module and function.
TOOLS = {
    "hl-smi": ("hl_smi", "main", True),
    "modprobe": ("kmod_tools", "modprobe", False),
    "rmmod": ("kmod_tools", "rmmod", False),
}
#: A keyring of one public key of version 4, which nothing is verified with.
_KEY = b"\xc6\x07\x04" + b"gaudi3"
PYTHON = os.path.realpath(sys.executable)


class Host:
    """One machine of the inventory, its folder, and what happened to it."""

    def __init__(self, folder: Path, name: str) -> None:
        self.name = name
        self.folder = folder
        self.root = folder / "root"

    #: Fingerprint of the key that the host trusts for the vendor's packages.
    key = fingerprints(_KEY)[0]

    @property
    def interpreter(self) -> Path:
        """The Python whose world is this host."""
        return self.folder / "python"

    def path(self, absolute: str) -> Path:
        """A path of the host."""
        return self.root / absolute.lstrip("/")

    def write(self, absolute: str, text: str, mode: int = 0o644) -> Path:
        """Put a file on the host."""
        place = self.path(absolute)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")
        place.chmod(mode)
        return place

    def mode(self, absolute: str) -> int:
        """A file's permissions."""
        return stat.S_IMODE(self.path(absolute).stat().st_mode)

    def give(self, **files: Any) -> None:
        """Tell the stand-ins something: packages, faults, courses."""
        for name, value in files.items():
            (self.folder / f"{name}.json").write_text(json.dumps(value), encoding="utf-8")

    @property
    def calls(self) -> list[str]:
        """What was asked of the host's programs in the last run, in order."""
        path = self.folder / "calls"
        return path.read_text(encoding="utf-8").splitlines() if path.exists() else []

    def acts(self) -> list[str]:
        """The calls of the last run that change something."""
        looks = ("systemctl show", "systemctl is-", "apt-mark manual", "nft -j list", "nft -c")
        return [call for call in self.calls if not call.startswith(looks)]

    def unit(self, name: str, word: str = "running", enabled: bool = True) -> None:
        """Say in which state systemd has a unit."""
        now = time.monotonic() * 1e6
        times = {"ActiveEnterTimestampMonotonic": now, "StateChangeTimestampMonotonic": now}
        state = {"word": word, "enabled": enabled, "course": [], **times}
        (self.folder / "units" / name).with_suffix(".service.json").write_text(json.dumps(state), encoding="utf-8")

    def files(self) -> dict[str, tuple[int, bytes]]:
        """Every file that the host has, to be compared later; what programs keep of themselves left out."""
        return {
            str(path.relative_to(self.root)): (stat.S_IMODE(path.stat().st_mode), path.read_bytes())
            for path in sorted(self.root.rglob("*"))
            if path.is_file() and not path.is_symlink() and path.relative_to(self.root).parts[0] not in ("run", "proc")
        }


def make(
    folder: Path,
    name: str,
    cards: int = 8,
    system: str = "ubuntu",
    driver: bool = True,
    packages: bool | None = None,
    kernel: str = "",
    trainer: bool = False,
    tools: Iterable[str] = ("hl-smi",),
    boards: Path | None = None,
    passthrough: bool = True,
    profile: str = "cluster",
    board: str = "HL-325L",
) -> Host:
    """Make a host: with ``driver`` it is as the driver role leaves it, without it is bare.

    With ``packages`` the vendor's repository and packages are there in any case.

    Without ``passthrough`` its IOMMU translates the cards' addresses. ``boards`` is a folder in which hardware is kept
    that other hosts have too.
    """
    host = Host(folder, name)
    for each in ("bin", "units", "tmp", "root.owners"):
        (folder / each).mkdir(parents=True)
    host.write("/etc/os-release", SYSTEMS[system])
    if system == "redhat":
        host.write("/etc/redhat-release", "Red Hat Enterprise Linux release 9.4 (Plow)\n")
    else:
        host.write("/etc/debian_version", "11.11\n" if system == "debian-11" else "bookworm/sid\n")
    host.write("/usr/bin/dnf" if system == "redhat" else "/usr/bin/apt-get", "", 0o755)
    host.write("/proc/stat", "cpu 0\nbtime 1700000000\n")
    host.write("/proc/1/comm", "systemd\n")
    host.path("/proc/1/root").symlink_to("/")
    host.path("/run/systemd/system").mkdir(parents=True)
    for each in (
        "/etc/systemd/system",
        "/etc/modules-load.d",
        "/etc/security/limits.d",
        "/etc/default",
        "/etc/prometheus",
        "/var/lib",
    ):
        host.path(each).mkdir(parents=True, exist_ok=True)
    host.path("/usr/bin").mkdir(parents=True, exist_ok=True)
    host.write("/usr/bin/python3", f'#!/bin/sh\nexec {shlex.quote(str(host.interpreter))} "$@"\n', 0o755)
    host.give(packages=_vendor(host, kernel) if driver or packages else {}, faults=[], courses={})
    _programs(host, tools if driver and cards else ())
    environment = {
        "STAND_IN_HOST": str(folder),
        "STAND_IN_ROOT": str(host.root),
        "STAND_IN_REAL": ":".join({str(folder.parent), str(CHECKOUT), sys.prefix, _prefix()}),
        "STAND_IN_KERNEL": kernel,
        "STAND_IN_ANSIBLE": str(Path(ansible.__file__).parents[1]),
        "GAUDI3_SIMULATOR_ROOT": str(host.root),
        "PYTHONPATH": str(STAND_INS),
        "PATH": f"{folder}/bin:/usr/bin:/bin",
    }
    settings = "\n".join(f"export {key}={shlex.quote(value)}" for key, value in environment.items() if value)
    python = shlex.quote(PYTHON)
    script = f"""#!/bin/sh
{settings}
case "$STAND_IN_MODULES $# $1" in
  /*" 0 " | /*" 1 "*/AnsiballZ_*) set -- -IS {shlex.quote(str(STAND_INS / "ask.py"))} {python} "$@" ;;
esac
exec {python} "$@"
"""
    host.interpreter.write_text(script)
    host.interpreter.chmod(0o755)
    if cards:
        _board(host, (cards, driver, passthrough, profile, board), boards or folder.parent)
    if driver or trainer:
        _runtime(host)
    if trainer:
        for program in ("python", "gaudi3-train"):
            host.write(f"/opt/gaudi3-scale/venv/bin/{program}", "", 0o755)
    return host


def _prefix() -> str:
    """Python's own folder, unless that is the system's /usr, where hosts have things too."""
    return "" if sys.base_prefix in ("/", "/usr", "/usr/local") else sys.base_prefix


def _vendor(host: Host, kernel: str) -> dict[str, str]:
    """The vendor's repository and its packages, as the driver role leaves them."""
    source = Source("https://vault.habana.ai/artifactory/debian", "jammy", "")
    host.write(apt_node.KEYRING, "").write_bytes(_KEY)
    host.write(apt_node.SOURCE, source.entry(apt_node.KEYRING, fingerprints(_KEY)[0]))
    host.write(apt_node.PIN, preferences(RELEASE))
    running = kernel or os.uname().release
    needed = ("build-essential", f"linux-headers-{running}", f"linux-modules-extra-{running}", "ethtool")
    return {**dict.fromkeys(PACKAGES, RELEASE), **dict.fromkeys(needed, "1")}


def _runtime(host: Host) -> None:
    """What the vendor's packages bring for programs on the cards: profile files and kernels."""
    for package in catalogue.packages(RELEASE):
        for path, file in package.files.items():
            if path.startswith(("/etc/profile.d/", "/usr/lib/habanalabs/lib")):
                host.write(path, file.data.decode(errors="replace"), file.mode)


def _programs(host: Host, tools: Iterable[str]) -> None:
    for name in ("systemctl", "journalctl", "dpkg-query", "ip", "nft"):
        _launch(host.folder / "bin" / name, str(STAND_INS / "bin" / name))
    for name in ("apt-get", "apt-mark", "useradd", "usermod", "sysctl", "setpriv"):
        _launch(host.folder / "bin" / name, str(STAND_INS / "bin/other"), name)
    for name in (*tools, "modprobe", "rmmod"):
        module, function, versioned = TOOLS[name]
        program(host, name, module, function, f", release={RELEASE!r}" if versioned else "")
    if "hl-smi" in tools:
        host.path("/usr/bin/hl-smi").symlink_to(host.folder / "bin/hl-smi")
        host.write("/opt/habanalabs/qual/gaudi3/bin/manage_network_ifs.sh", "#!/bin/sh\n", 0o755)


def program(host: Host, name: str, module: str, function: str, more: str = "") -> None:
    """Give a host a program of the simulator, whose function takes ``more`` arguments than the command line."""
    text = (
        f"import sys; sys.path.insert(0, {str(SIMULATOR)!r}); "
        f"from gaudi3_simulator.node.{module} import {function}; sys.exit({function}(sys.argv[1:]{more}))"
    )
    _run_python(host.folder / "bin" / name, text)


def _launch(place: Path, script: str, name: str = "") -> None:
    """A program of the stand-ins under a name, started without the redirection of the modules."""
    more = f"init_globals={{'PROGRAM': {name or place.name!r}}}, run_name='__main__'"
    _run_python(place, f"import runpy; runpy.run_path({script!r}, {more})")


def _run_python(place: Path, text: str) -> None:
    place.write_text(f'#!/bin/sh\nexec {shlex.quote(PYTHON)} -IS -c {shlex.quote(text)} "$@"\n')
    place.chmod(0o755)


def _board(host: Host, kind: tuple[int, bool, bool, str, str], boards: Path) -> None:
    """The cards, and with ``driver`` its modules loaded; made once for each kind of host and copied."""
    board = boards / "-".join(["board", *map(str, kind)])
    if not board.exists():
        _install(board, *kind)
    shutil.copytree(board, host.root, symlinks=True, dirs_exist_ok=True)
    for link in (path for path in host.path("/sys").rglob("*") if path.is_symlink()):
        target = str(link.readlink())
        if target.startswith(str(board)):
            link.unlink()
            link.symlink_to(str(host.root) + target[len(str(board)) :])


def _install(root: Path, cards: int, driver: bool, passthrough: bool, profile: str, board: str) -> None:
    root.mkdir(parents=True)
    (root / "proc").mkdir()
    (root / "proc/stat").write_text("cpu 0\nbtime 1700000000\n")
    options = "iommu=pt intel_iommu=on" if passthrough else ""
    (root / "etc/default/grub.d").mkdir(parents=True)
    (root / "etc/default/grub.d/60-host.cfg").write_text(f'GRUB_CMDLINE_LINUX_DEFAULT="{options}"\n')
    (root / "proc/cmdline").write_text(f"BOOT_IMAGE=/vmlinuz root=/dev/sda1 {options}\n")
    with _environment({"GAUDI3_SIMULATOR_ROOT": str(root)}), contextlib.redirect_stdout(io.StringIO()):
        assert boot_loader.update_grub([]) == 0
        kind = ["--profile", profile, "--board", board]
        assert cli.main(["init", "--node", "gaudi-1", "--cards", str(cards), *kind]) == 0
        assert cli.main(["boot"]) == 0
        if not driver:
            return
        folder = root / f"lib/modules/{os.uname().release}/updates/dkms"
        folder.mkdir(parents=True)
        for name in releases.module_names(RELEASE):
            (folder / f"{name}.ko").write_text(modules.module_text(name, RELEASE))
        for path, text in releases.firmware_files(RELEASE).items():
            (root / path.lstrip("/")).parent.mkdir(parents=True, exist_ok=True)
            (root / path.lstrip("/")).write_text(text)
        for name in ("ib_uverbs", "habanalabs_compat", "habanalabs", "habanalabs_cn", "habanalabs_en", "habanalabs_ib"):
            if name == "ib_uverbs" or (folder / f"{name}.ko").exists():
                assert kmod_tools.modprobe([name]) == 0, name


@contextlib.contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    before = {key: os.environ.get(key) for key in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for key, value in before.items():
            if value is None:
                del os.environ[key]
            else:
                os.environ[key] = value
