"""How a node joins its local disks, run against made-up disks: which it takes, and which it never does."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from .conftest import TREE

SCRIPT = TREE / "modules/cluster/templates/scratch.sh"
EBS, LOCAL = "Amazon Elastic Block Store", "Amazon EC2 NVMe Instance Storage"


class Machine:
    """Disks and tools in a folder on PATH; what is done with them is kept."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.target = folder / "scratch"
        self.log = folder / "log"
        self.disks: dict[str, tuple[str, str, int, str]] = {}
        for name in ("mkfs.ext4", "mount", "vgcreate", "lvcreate"):
            self.tool(name, f'echo "{name} $*" >> {self.log}')
        self.system = os.environ["PATH"]
        self.tool("mountpoint", f"test -e {folder}/mounted")
        self.tool("mdadm", f'echo "mdadm $*" >> {self.log}; case $1 in --assemble) exit 1;; esac')

    def without(self, *names: str) -> None:
        """Take tools away, and let packages be out of reach."""
        self.system = str(self.folder / "system")
        Path(self.system).mkdir()
        for name in ("bash", "cat", "chmod", "head", "mkdir", "sleep", "timeout", "wc", "yes"):
            found = shutil.which(name)
            assert found, name
            (Path(self.system) / name).symlink_to(found)
        for name in names:
            (self.folder / "bin" / name).unlink()
        self.tool("apt-get", f'echo "apt-get ${{*: -1}}" >> {self.log}; exit 100')

    def tool(self, name: str, body: str) -> None:
        """Put a stand-in on PATH."""
        path = self.folder / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/bash\n{body}\n")
        path.chmod(0o755)

    def disk(self, name: str, model: str = LOCAL, parts: int = 1, filesystem: str = "", kind: str = "disk") -> None:
        """Put a disk in; ``parts`` counts it and its partitions."""
        self.disks[f"/dev/{name}"] = (model, kind, parts, filesystem)

    def run(self) -> subprocess.CompletedProcess[str]:
        """Run the script as the unit does."""
        rows = "".join(f"echo '{name} {kind} {model}'\n" for name, (model, kind, _n, _f) in self.disks.items())
        parts = "".join(f"{name}) yes x | head -{count};;\n" for name, (_m, _k, count, _f) in self.disks.items())
        systems = "".join(f"{name}) echo '{fs}';;\n" for name, (_m, _k, _n, fs) in self.disks.items() if fs)
        count = f'case "${{@: -1}}" in {parts} esac'
        self.tool("lsblk", f'case "$*" in *NAME,TYPE,MODEL) {rows or ":"}\n;;\n*MOUNTPOINT*) :;;\n*) {count};; esac')
        self.tool("blkid", f'case "${{@: -1}}" in {systems}\n*) exit 2;; esac')
        return subprocess.run(
            ["bash", str(SCRIPT), str(self.target)],
            env={"PATH": f"{self.folder}/bin:{self.system}"},
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )

    def done(self) -> list[str]:
        """What was called."""
        return self.log.read_text().splitlines() if self.log.exists() else []


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """A machine without disks."""
    return Machine(tmp_path)


def test_four_local_disks_are_striped(machine: Machine) -> None:
    machine.disk("nvme0n1", EBS, parts=3)
    for number in (1, 2, 3, 4):
        machine.disk(f"nvme{number}n1")
    result = machine.run()
    assert result.returncode == 0, result.stderr
    assert machine.done() == [
        "mdadm --assemble --scan",
        "mdadm --create /dev/md/scratch --run --force --homehost=any --level=0 --raid-devices=4 "
        "/dev/nvme1n1 /dev/nvme2n1 /dev/nvme3n1 /dev/nvme4n1",
        "mkfs.ext4 -q -L gaudi3-scratch -E lazy_itable_init=1,nodiscard /dev/md/scratch",
        f"mount -o noatime /dev/md/scratch {machine.target}",
    ]


@pytest.mark.parametrize(
    ("gone", "made"),
    [
        (
            ["mdadm"],
            ["vgcreate gaudi3-scratch /dev/nvme1n1 /dev/nvme2n1",
             "lvcreate --yes --extents 100%FREE --stripes 2 --name data gaudi3-scratch", "/dev/gaudi3-scratch/data"],
        ),
        (["mdadm", "lvcreate"], ["/dev/nvme1n1"]),
    ],
)  # fmt: skip
def test_without_a_way_to_the_packages(machine: Machine, gone: list[str], made: list[str]) -> None:
    for number in (1, 2):
        machine.disk(f"nvme{number}n1")
    machine.without(*gone)
    result = machine.run()
    assert result.returncode == 0, result.stderr
    *joined, device = made
    assert machine.done() == [
        "apt-get update",
        *joined,
        f"mkfs.ext4 -q -L gaudi3-scratch -E lazy_itable_init=1,nodiscard {device}",
        f"mount -o noatime {device} {machine.target}",
    ]
    assert ("gets /dev/nvme1n1 alone, of 2 disks" in result.stderr) is (not joined)


def test_what_is_not_a_free_local_disk_is_left_alone(machine: Machine) -> None:
    machine.disk("nvme0n1", EBS, parts=3)
    machine.disk("nvme1n1", EBS)
    machine.disk("nvme2n1", parts=2)
    machine.disk("nvme3n1", filesystem="xfs")
    machine.disk("sda", "QEMU HARDDISK")
    machine.disk("nvme4n1", "nvme_card-pd PersistentDisk")
    result = machine.run()
    assert result.returncode == 0, result.stderr
    assert machine.done() == ["mdadm --assemble --scan"]
    assert "no local NVMe disk" in result.stdout
    assert machine.target.is_dir()


def test_a_second_run_does_nothing(machine: Machine) -> None:
    machine.disk("nvme1n1")
    (machine.folder / "mounted").touch()
    assert machine.run().returncode == 0
    assert machine.done() == []
