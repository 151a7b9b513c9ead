"""A simulated node in mount and process namespaces of its own: `machine.py FOLDER SIMULATOR FAULTS COMMAND...`.

The node is built below FOLDER from the files of its own packages, its driver is loaded, and COMMAND runs where FOLDER
lies over `/`. Programs find `/usr/bin/hl-smi`, `/dev/accel` and `/sys/class/accel` where a node has them. Neither root
nor a container is needed, only the kernel's user namespaces; without them the exit code is 77.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

RELEASE = "1.23.0-695"
NO_NAMESPACE = 77
INSIDE = "--inside"
MERGED = ("usr/lib", "usr/bin", "usr/local", "opt", "etc", "var/lib")
DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
NODE_TOOL = "/usr/local/sbin/gaudi3-simulator-node"


def build(root: Path, simulator: Path) -> None:
    """A booted node with the vendor's packages, the driver loaded and its ports up."""
    sys.path.insert(0, str(simulator))
    os.environ["GAUDI3_SIMULATOR_ROOT"] = str(root)
    from gaudi3_simulator.node import cli, kmod_tools, launchers, manage_network_ifs, modules, releases
    from gaudi3_simulator.vendor import catalogue

    def write(path: str, text: str | bytes, mode: int) -> None:
        target = root / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(text.encode() if isinstance(text, str) else text)
        target.chmod(mode)

    (root / "usr" / "lib").mkdir(parents=True)
    (root / "lib").symlink_to("usr/lib")
    for package in catalogue.packages(RELEASE):
        for path, file in package.files.items():
            write(path, file.text, file.mode)
    for path, (mode, text) in launchers.image_files().items():
        write(path, text, mode)
    library = root / launchers.LIBRARY.lstrip("/")
    library.mkdir(parents=True, exist_ok=True)
    (library / launchers.PACKAGE).symlink_to(simulator / "gaudi3_simulator" / "node")
    kernel_modules = f"/lib/modules/{os.uname().release}/updates/dkms"
    for name in releases.module_names(RELEASE):
        write(f"{kernel_modules}/{name}.ko", modules.module_text(name, RELEASE), 0o644)
    for arguments in (["init", "--node", "gaudi-1"], ["boot"]):
        if cli.main(arguments):
            raise SystemExit(f"gaudi3-simulator-node {arguments[0]} failed")
    kmod_tools.modprobe(["ib_uverbs"])
    for name in ("habanalabs_compat", "habanalabs", "habanalabs_cn", "habanalabs_en", "habanalabs_ib"):
        if kmod_tools.modprobe([name]):
            raise SystemExit(f"modprobe {name} failed")
    if manage_network_ifs.main(["--up"], release=RELEASE):
        raise SystemExit("manage_network_ifs.sh --up failed")


def mount(*arguments: str | Path) -> None:
    """Mount, or end with what mount said."""
    subprocess.run(["mount", *map(str, arguments)], check=True)


def enter(root: Path) -> None:
    """Lay the node over `/` of this namespace."""
    for folder in MERGED:
        if (root / folder).is_dir():
            mount("-t", "overlay", "overlay", "-o", f"lowerdir={root / folder}:/{folder}", f"/{folder}")
    mount("--bind", root / "var/lib/gaudi3-simulator", "/var/lib/gaudi3-simulator")
    (root / "sys/devices/system").mkdir(parents=True, exist_ok=True)
    mount("--rbind", "/sys/devices/system", root / "sys/devices/system")
    mount("--rbind", root / "sys", "/sys")
    _devices(root)
    mount("--bind", root / "run", "/run")
    shown = Path("/run/gaudi3-simulator/proc_modules")
    if shown.exists():
        mount("--bind", shown, "/proc/modules")


def _devices(root: Path) -> None:
    """A `/dev` with the machine's plain devices, the node's cards and its kernel log."""
    folder = root / "devices"
    folder.mkdir()
    for name in DEVICES:
        (folder / name).touch()
        mount("--bind", f"/dev/{name}", folder / name)
    for name in ("pts", "shm"):
        (folder / name).mkdir()
        mount("--rbind", f"/dev/{name}", folder / name)
    for name, target in (("fd", "/proc/self/fd"), ("stdout", "/proc/self/fd/1"), ("stderr", "/proc/self/fd/2")):
        (folder / name).symlink_to(target)
    for source in (root / "dev").iterdir():
        if source.is_dir():
            (folder / source.name).mkdir()
        else:
            (folder / source.name).touch()
        mount("--bind", source, folder / source.name)
    mount("--rbind", folder, "/dev")


def profile() -> dict[str, str]:
    """The variables that the vendor's packages set at a login."""
    read = "for file in /etc/profile.d/habanalabs*.sh; do . $file; done; env -0"
    done = subprocess.run(["bash", "-c", read], capture_output=True, text=True, check=True)
    return dict(entry.partition("=")[::2] for entry in done.stdout.split("\0") if "=" in entry)


def inside(root: Path, faults: list[str], command: list[str]) -> None:
    """In the namespaces: become the node, and become the command."""
    enter(root)
    for fault in faults:
        kind, _, card = fault.partition(":")
        subprocess.run([NODE_TOOL, "fault", kind, *(["--card", card] if card else [])], check=True)
    environment = profile()
    environment.pop("_", None)
    os.execvpe(command[0], command, environment)


def main(arguments: list[str]) -> None:
    """Build the node outside of the namespaces, then go into them."""
    if arguments[0] == INSIDE:
        inside(Path(arguments[1]), [name for name in arguments[2].split(",") if name], arguments[3:])
    root, simulator, faults, *command = arguments
    spaces = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
    if os.geteuid():
        spaces.append("--map-root-user")
    if subprocess.run([*spaces, "true"], capture_output=True, check=False).returncode:
        raise SystemExit(NO_NAMESPACE)
    before = dict(os.environ)
    build(Path(root), Path(simulator))
    again = [*spaces, sys.executable, __file__, INSIDE, root, faults, *command]
    print(f"on a simulated node: {shlex.join(command)}", flush=True)
    os.execvpe(again[0], again, before)


if __name__ == "__main__":
    main(sys.argv[1:])
