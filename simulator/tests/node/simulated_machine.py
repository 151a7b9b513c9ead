"""A simulated node in a temporary folder: no root, no mounts, a clock that the test sets."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pytest

from gaudi3_simulator.node import modules, releases

RELEASE = "1.23.0-695"
START = 1_700_000_000.0
KERNEL_STARTED = 1_699_990_000

TOOLS = {
    "hl-smi": ("hl_smi", "main"),
    "hl-fw-loader": ("hl_fw_loader", "main"),
    "hl_qual": ("hl_qual", "main"),
    "manage_network_ifs.sh": ("manage_network_ifs", "main"),
    "modprobe": ("kmod_tools", "modprobe"),
    "rmmod": ("kmod_tools", "rmmod"),
    "lsmod": ("kmod_tools", "lsmod"),
    "modinfo": ("kmod_tools", "modinfo"),
    "dmesg": ("dmesg", "main"),
    "update-grub": ("boot_loader", "update_grub"),
    "grubby": ("boot_loader", "grubby"),
    "node": ("cli", "main"),
}
MIB = 1024 * 1024
HOLDER = Path(__file__).with_name("card_holder.py")
REPOSITORY = Path(__file__).parents[3]
VENDOR_TOOLS = ("hl-smi", "hl-fw-loader", "hl_qual", "manage_network_ifs.sh")


class Result(NamedTuple):
    """What a tool left behind."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        """Lines of standard output."""
        return self.out.splitlines()


def of_the_product(path: str) -> ModuleType:
    """A file of the collection that does not need Ansible, as a module by its own name, which others import."""
    utilities = str(REPOSITORY / "plugins/module_utils")
    if utilities not in sys.path:
        sys.path.append(utilities)  # where its families are packages, as they are on a node
    spec = importlib.util.spec_from_file_location(Path(path).stem, REPOSITORY / path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


class Machine:
    """One simulated node and the hands of its operator."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root = root
        self._monkeypatch = monkeypatch
        monkeypatch.setenv("GAUDI3_SIMULATOR_ROOT", str(root))
        monkeypatch.delenv("ENABLE_CONSOLE", raising=False)
        self._held: dict[int, tuple[subprocess.Popen[str], float, float, str]] = {}
        self.at(START)
        self.write("/proc/stat", f"cpu 0\nbtime {KERNEL_STARTED}\n")

    def at(self, moment: float) -> None:
        """Set the clock."""
        self.now = moment
        self._monkeypatch.setenv("GAUDI3_SIMULATOR_NOW", str(moment))
        for pid, (_, started, share, name) in self._held.items():
            self._stat(pid, name, started, (moment - started) * share)

    def as_user(self, uid: int) -> None:
        """Run what follows as another user."""
        self._monkeypatch.setenv("GAUDI3_SIMULATOR_EUID", str(uid))

    def path(self, absolute: str) -> Path:
        """A path of the node."""
        return self.root / absolute.lstrip("/")

    def write(self, absolute: str, text: str) -> None:
        """Put a file on the node."""
        self.path(absolute).parent.mkdir(parents=True, exist_ok=True)
        self.path(absolute).write_text(text)

    def read(self, absolute: str) -> str:
        """A file's text without the last newline."""
        return self.path(absolute).read_text().rstrip("\n")

    def names(self, absolute: str) -> list[str]:
        """Sorted names in a folder; none when it is not there."""
        folder = self.path(absolute)
        return sorted(entry.name for entry in folder.iterdir()) if folder.is_dir() else []

    def run(self, tool: str, *arguments: str, release: str = RELEASE) -> Result:
        """Run a tool as its launcher would."""
        module, function = TOOLS[tool]
        main = getattr(import_module(f"gaudi3_simulator.node.{module}"), function)
        options = {"release": release} if tool in VENDOR_TOOLS else {}
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main(list(arguments), **options)
        return Result(code, out.getvalue(), err.getvalue())

    def ok(self, tool: str, *arguments: str, release: str = RELEASE) -> Result:
        """Run a tool that has to succeed."""
        result = self.run(tool, *arguments, release=release)
        assert result.code == 0, result
        return result

    def lspci(self, *arguments: str) -> str:
        """What the real lspci says of this machine."""
        program = shutil.which("lspci", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
        if program is None:
            pytest.skip("lspci is missing: apt-get install pciutils")
        command = [program, "-O", f"sysfs.path={self.path('/sys/bus/pci')}", *arguments]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        # This machine's own kernel may have no list of modules, which has nothing to do with the cards.
        said = [line for line in result.stderr.splitlines() if "libkmod" not in line]
        assert (result.returncode, said) == (0, [])
        return result.stdout

    def install(self, release: str = RELEASE, firmware: bool = True, at_boot: bool = True) -> None:
        """What the vendor's packages put on the node, and with ``at_boot`` the line of a site that loads the driver."""
        folder = self.path(f"/lib/modules/{os.uname().release}/updates/dkms")
        for old in folder.glob("*.ko") if folder.is_dir() else ():
            old.unlink()
        for name in releases.module_names(release):
            self.write(f"/lib/modules/{os.uname().release}/updates/dkms/{name}.ko", modules.module_text(name, release))
        if firmware:
            for path, text in releases.firmware_files(release).items():
                self.write(path, text)
        if at_boot:
            names = ("ib_uverbs", *releases.module_names(release))
            self.write("/etc/modules-load.d/site.conf", "".join(f"{name}\n" for name in names))

    def load(self) -> None:
        """Load every module in the documented order of the installed release."""
        compat = self.path(f"/lib/modules/{os.uname().release}/updates/dkms/habanalabs_compat.ko").exists()
        order = ["habanalabs", "habanalabs_cn", "habanalabs_en", "habanalabs_ib"]
        for name in ["ib_uverbs", *(["habanalabs_compat"] if compat else []), *order]:
            self.ok("modprobe", name)

    def reboot(self) -> None:
        """Lose what a reboot loses, and boot."""
        for volatile in ("/run", "/sys", "/dev"):
            folder = self.path(volatile)
            if folder.is_dir():
                _remove(folder)
        self.ok("node", "boot")

    def process(self, pid: int, environment: dict[str, str], name: str = "gaudi3-train", age: float = 0.0) -> None:
        """Start a process ``age`` seconds ago, which holds no card."""
        self._stat(pid, name, self.now - age, age)
        self.write(f"/proc/{pid}/environ", "".join(f"{key}={value}\0" for key, value in environment.items()))

    def hold(self, *cards: int, mib: int = 1024, name: str = "python3", share: float = 1.0, age: float = 0.0) -> int:
        """A process that took cards ``age`` seconds ago and computes for a share of the time; returns its number."""
        words = [word for card in cards for word in (str(self.card_file(card)), str(mib * MIB))]
        process = subprocess.Popen(
            [sys.executable, "-S", "-E", str(HOLDER), *words],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        self._held[process.pid] = (process, self.now - age, share, name)
        self._stat(process.pid, name, self.now - age, age * share)
        return process.pid

    def card_file(self, card: int) -> Path:
        """The file by which a card is held."""
        return self.path(f"/run/gaudi3-simulator/cards/accel{card}")

    def use(self, pid: int, mib: int) -> None:
        """Let a holder use this much of its cards' memory."""
        self._tell(pid, f"use {mib * MIB}")

    def release(self, pid: int) -> None:
        """End a holder in order."""
        self._tell(pid, "release")
        self.kill(pid)

    def kill(self, pid: int) -> None:
        """End a process; a holder in the middle of its work."""
        if pid in self._held:
            process = self._held.pop(pid)[0]
            process.kill()
            process.communicate()
        _remove(self.path(f"/proc/{pid}"))

    def close(self) -> None:
        """End every holder that is left."""
        for pid in list(self._held):
            self.kill(pid)

    def _tell(self, pid: int, line: str) -> None:
        process = self._held[pid][0]
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(line + "\n")
        process.stdin.flush()
        assert process.stdout.readline() == "done\n"

    def _stat(self, pid: int, name: str, started: float, cpu: float) -> None:
        second = os.sysconf("SC_CLK_TCK")
        fields = ["S", "1", *["0"] * 9, str(int(cpu * second)), *["0"] * 7]
        fields += [str(int((started - KERNEL_STARTED) * second)), "0"]
        self.write(f"/proc/{pid}/stat", f"{pid} ({name} (x)) {' '.join(fields)}\n")
        self.write(f"/proc/{pid}/comm", f"{name}\n")

    def csv(self, fields: str, *more: str, release: str = RELEASE) -> list[list[str]]:
        """Rows of ``hl-smi -Q`` without header and units, by index: the tool itself does not sort them."""
        result = self.ok("hl-smi", "-Q", f"index,{fields}", "-f", "csv,noheader,nounits", *more, release=release)
        rows = [line.split(", ") for line in result.lines]
        return [cells[1:] for cells in sorted(rows, key=lambda cells: int(cells[0]))]

    def state(self) -> dict[str, Any]:
        """The node's state: cards and faults."""
        content: dict[str, Any] = json.loads(self.read("/var/lib/gaudi3-simulator/state.json"))
        return content


def _mode(path: Path) -> int:
    return path.stat().st_mode & 0o7777


def _remove(folder: Path) -> None:
    for entry in folder.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            _remove(entry)
        else:
            entry.unlink()
    folder.rmdir()


class Tree:
    """Every file of a node, to make equal nodes in a fraction of the time that loading the modules takes."""

    def __init__(self, root: Path) -> None:
        self._folders: list[tuple[str, int]] = [("", _mode(root))]
        self._links: list[tuple[str, Path]] = []
        self._files: list[tuple[str, int, bytes]] = []
        for path in sorted(root.rglob("*")):  # a folder comes before what is in it
            inside = f"/{path.relative_to(root)}"
            if path.is_symlink():
                self._links.append((inside, path.readlink()))
            elif path.is_dir():
                self._folders.append((inside, _mode(path)))
            else:
                self._files.append((inside, _mode(path), path.read_bytes()))

    def make(self, root: Path) -> None:
        """Make the node in a folder that is not there yet."""
        before = os.umask(0)
        try:
            for inside, mode in self._folders:
                Path(f"{root}{inside}").mkdir(mode)
            for inside, target in self._links:
                Path(f"{root}{inside}").symlink_to(target)
            for inside, mode, content in self._files:
                file = os.open(f"{root}{inside}", os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
                os.write(file, content)
                os.close(file)
        finally:
            os.umask(before)


class Machines:
    """Makes the nodes of one test, below a folder of their own."""

    _loaded: dict[tuple[str, ...], Tree] = {}  # noqa: RUF012 (for the tests of a run together)

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._folder = folder
        self._monkeypatch = monkeypatch
        self._every: list[Machine] = []

    def bare(self, name: str = "gaudi-1", cards: int = 8, **more: str) -> Machine:
        """A booted node without any vendor package."""
        made = self._new(name)
        options = [word for option, value in more.items() for word in (f"--{option}", value)]
        made.ok("node", "init", "--node", name, "--cards", str(cards), *options)
        made.ok("node", "boot")
        return made

    def loaded(self, name: str = "gaudi-1") -> Machine:
        """An eight-card node with release 1.23.0-695 installed and loaded."""
        settings = (f"{key}={value}" for key, value in sorted(os.environ.items()) if key.startswith("GAUDI3_SIM"))
        key = (name, *(word for word in settings if not word.startswith("GAUDI3_SIMULATOR_ROOT=")))
        if key in self._loaded:
            self._loaded[key].make(self._folder / name)
            return self._new(name)
        made = self.bare(name)
        made.install()
        made.load()
        self._loaded[key] = Tree(made.root)
        return made

    def close(self) -> None:
        """End every holder that is left."""
        for machine in self._every:
            machine.close()

    def _new(self, name: str) -> Machine:
        self._every.append(Machine(self._folder / name, self._monkeypatch))
        return self._every[-1]


@contextlib.contextmanager
def machines(monkeypatch: pytest.MonkeyPatch) -> Iterator[Machines]:
    """Nodes below a folder that is removed afterwards."""
    # A node is two thousand small files: in memory, where the machine has that.
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=memory, prefix="gaudi3-node-") as folder:
        made = Machines(Path(folder), monkeypatch)
        yield made
        made.close()
