"""Machines that are namespaces of this one: name, network, processes, /dev, /etc, /run and cgroups of their own.

Its own folder is /mnt in each of them, and the folder shared beside it is /srv.

Debian's packages of Slurm are unpacked, not installed, and laid over /usr inside. Nothing outside changes but folders
of the cgroups, which go with the machine.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

CGROUPS = Path("/sys/fs/cgroup")
CONTROLLERS = ("devices", "freezer", "memory", "cpuset")
#: A number that no driver of this machine has: a program that may use such a file gets ENXIO, another one EPERM.
MAJOR = 261
_INIT = r"""
set -eu
for each in $CONTROLLERS; do echo $$ > "/sys/fs/cgroup/$each/$GROUP/tasks"; done
mount --make-rprivate /
mount -t overlay overlay -o lowerdir="$UNPACKED/usr:/usr" /usr
mount -t overlay overlay -o lowerdir="$FOLDER/etc:/etc" /etc
mount --bind "$FOLDER/etc/slurm" /etc/slurm
for each in $CONTROLLERS; do mount --bind "/sys/fs/cgroup/$each/$GROUP" "/sys/fs/cgroup/$each"; done
mkdir -p "$FOLDER/class"
mount --bind "$FOLDER/class" /sys/class
mount --bind "$FOLDER/../shared" /srv
mount --bind "$FOLDER" /mnt
mount -t tmpfs -o mode=755 tmpfs /run
mkdir -p -m 755 /run/munge /run/slurm
for each in log lib/gaudi3-scale spool/slurm; do
  mkdir -p "$FOLDER/var/$each"
done
mount -t tmpfs -o mode=755 tmpfs /dev
mkdir -p /dev/shm /dev/pts /dev/accel
mount -t tmpfs tmpfs /dev/shm
mount -t devpts -o newinstance,ptmxmode=0666 devpts /dev/pts
ln -s pts/ptmx /dev/ptmx; ln -s /proc/self/fd /dev/fd
ln -s fd/0 /dev/stdin; ln -s fd/1 /dev/stdout; ln -s fd/2 /dev/stderr
mknod -m 666 /dev/null c 1 3; mknod -m 666 /dev/zero c 1 5; mknod -m 666 /dev/full c 1 7
mknod -m 666 /dev/random c 1 8; mknod -m 666 /dev/urandom c 1 9; mknod -m 666 /dev/tty c 5 0
number=0
while [ "$number" -lt "$CARDS" ]; do
  mknod -m 666 "/dev/accel/accel$number" c "$MAJOR" "$number"
  mknod -m 666 "/dev/accel/accel_controlD$number" c "$MAJOR" $((64 + number))
  number=$((number + 1))
done
hostname "$NAME"
ip link set lo up
echo ready
exec </dev/null >/dev/null 2>&1
while :; do sleep 1000 & wait $!; done
"""


def lacks() -> str:
    """What this machine lacks for such machines; empty where nothing."""
    if os.geteuid() != 0:
        return "namespaces and device files need root"
    missing = [tool for tool in ("unshare", "nsenter", "ip", "mount") if shutil.which(tool) is None]
    if missing:
        return f"{' and '.join(missing)} are missing"
    if not all(os.access(CGROUPS / each / "tasks", os.W_OK) for each in CONTROLLERS):
        return "the cgroups of version 1 cannot be written, by which Slurm keeps jobs off cards"
    done = subprocess.run(
        ["unshare", "-m", "-n", "-u", "-p", "-f", "mount", "--make-rprivate", "/"], capture_output=True, check=False
    )
    return "" if done.returncode == 0 else "namespaces cannot be made here"


@dataclass
class Machine:
    """One machine. ``cards`` have their device files, and ``modules`` the module id of each, by index."""

    name: str
    address: str
    folder: Path
    unpacked: Path
    cards: int = 0
    _process: subprocess.Popen[str] | None = None
    _children: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def group(self) -> str:
        """Its cgroup."""
        return f"machine-{os.getpid()}-{self.name}"

    @property
    def pid(self) -> int:
        """Of its first process, as seen from outside."""
        assert self._process is not None
        return int(Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children").read_text().split()[0])

    def start(self) -> None:
        """Boot it: what is in memory is new, and no process runs."""
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "etc").mkdir(exist_ok=True)
        for each in CONTROLLERS:
            group = CGROUPS / each / self.group
            group.mkdir(exist_ok=True)
            if each == "cpuset":
                for name in ("cpuset.cpus", "cpuset.mems"):
                    (group / name).write_text((CGROUPS / each / name).read_text())
            if each == "devices":
                self._allow_devices(group)
        environment = {
            "PATH": os.environ["PATH"],
            "UNPACKED": str(self.unpacked),
            "FOLDER": str(self.folder),
            "GROUP": self.group,
            "NAME": self.name,
            "CARDS": str(self.cards),
            "MAJOR": str(MAJOR),
            "CONTROLLERS": " ".join(CONTROLLERS),
        }
        self._process = subprocess.Popen(
            ["unshare", "-m", "-n", "-u", "-p", "-f", "--mount-proc", "--kill-child=KILL", "bash", "-c", _INIT],
            env=environment, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert self._process.stdout is not None
        if self._process.stdout.readline() != "ready\n":
            self.stop()
            raise RuntimeError(f"{self.name} did not start")

    def _allow_devices(self, group: Path) -> None:
        """One rule for each card's number: nothing can be taken out of a rule for all."""
        (group / "devices.deny").write_text("a")
        cards = [f"c {MAJOR}:{number + more}" for number in range(self.cards) for more in (0, 64)]
        for each in ["c 1:*", "c 4:*", "c 5:*", "c 10:*", "c 136:*", "b *:*", *cards]:
            (group / "devices.allow").write_text(f"{each} rwm")

    def stop(self) -> None:
        """Take its power away."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
            self._process = None
        for child in self._children.values():
            child.kill()
            child.wait()
        self._children.clear()
        for each in CONTROLLERS:
            _remove_group(CGROUPS / each / self.group)

    def inside(self, *command: str) -> list[str]:
        """A command line that runs a command in it."""
        assert self._process is not None
        return ["nsenter", "-t", str(self.pid), "-m", "-n", "-u", "-p", "--", *command]

    def run(
        self, *command: str, check: bool = True, environment: Mapping[str, str] | None = None, timeout: float = 120
    ) -> subprocess.CompletedProcess[str]:
        """Run a command in it to its end."""
        done = subprocess.run(
            self.inside(*command), capture_output=True, text=True, check=False, timeout=timeout,
            env={**os.environ, **(environment or {})}, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        if check and done.returncode:
            raise AssertionError(f"{self.name}: {command} ended with {done.returncode}: {done.stdout}{done.stderr}")
        return done

    def serve(self, name: str, *command: str) -> None:
        """Start a program that stays, as a child; its output goes to var/log below the machine's folder."""
        with (self.folder / "var/log" / f"{name}.out").open("ab") as log:
            self._children[name] = subprocess.Popen(
                self.inside(*command), stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True
            )

    def end(self, name: str, number: signal.Signals = signal.SIGTERM) -> None:
        """End a program that was started by `serve`."""
        child = self._children.pop(name)
        inner = Path(f"/proc/{child.pid}/task/{child.pid}/children").read_text().split()
        for pid in inner or [str(child.pid)]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), number)
        child.wait(30)


def connect(first: Machine, others: Sequence[Machine]) -> None:
    """A network in which ``first`` is the switch, at an address of its own."""
    first.run("ip", "link", "add", "br0", "type", "bridge")
    first.run("ip", "addr", "add", f"{first.address}/24", "dev", "br0")
    first.run("ip", "link", "set", "br0", "up")
    for other in others:
        plug(first, other)


def plug(first: Machine, other: Machine) -> None:
    """Plug one machine into the switch."""
    end = f"to-{other.name}"
    script = f"ip link add {end} type veth peer name eth0 netns {other.pid} && ip link set {end} master br0 up"
    # From outside of the processes' namespace, where the other machine's number means nothing.
    subprocess.run(["nsenter", "-t", str(first.pid), "-n", "--", "sh", "-c", script], check=True)
    other.run("ip", "addr", "add", f"{other.address}/24", "dev", "eth0")
    other.run("ip", "link", "set", "eth0", "up")


def wait_for(what: str, holds: object, seconds: float = 240) -> object:
    """Wait until a function returns something true, and return it."""
    assert callable(holds)
    deadline = time.monotonic() + seconds
    while not (found := holds()):
        assert time.monotonic() < deadline, f"{what}: not within {seconds:g} s"
        time.sleep(0.2)
    return found


def _remove_group(group: Path) -> None:
    if not group.is_dir():
        return
    for _ in range(50):
        for folder, _, _ in os.walk(group, topdown=False):
            with contextlib.suppress(OSError):
                Path(folder).rmdir()
        if not group.is_dir():
            return
        time.sleep(0.1)
