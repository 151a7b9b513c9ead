"""A cluster of Slurm on machines that are namespaces: a controller and nodes with eight cards each."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from ansible_collections.gaudi3.scale.plugins.module_utils._slurm import conf, site

from . import accounting
from .machines import Machine, connect, plug, wait_for

ROOT = Path(__file__).resolve().parents[2]
UNPACKED = ROOT / ".cache/slurm"
OWN = "22.05"
"""The release of Slurm of Debian 12, on which the tests run."""
SUITES = {"24.11": "trixie", "26.05": "sid"}
"""Where later releases are; sid goes on to the next one when Debian does."""
PACKAGES = (
    "slurmctld", "slurmd", "slurmdbd", "slurm-client", "slurm-wlm-basic-plugins", "slurm-wlm-mysql-plugin", "munge",
    "libmunge2", "libhwloc15", "mariadb-server", "mariadb-server-core", "mariadb-client", "mariadb-client-core",
    "mariadb-common", "libmariadb3", "liburing2", "libaio1", "sudo",
)  # fmt: skip
#: What is asked for of another suite: the others follow from these. And programs of the machines.
OWN_PACKAGES = ("slurmctld", "slurmd", "slurmdbd", "slurm-client", "slurm-wlm-basic-plugins", "slurm-wlm-mysql-plugin",
                "munge", "mariadb-server", "mariadb-client")  # fmt: skip
NEEDED = ("python3", "iproute2", "util-linux", "perl-base", "coreutils", "procps", "hostname")
#: The index of each card by its module id, as a boot may give them: not in order, and another one on each node.
MODULES = {
    "n1": {0: 3, 1: 0, 2: 1, 3: 2, 4: 7, 5: 6, 6: 5, 7: 4},
    "n2": {0: 0, 1: 1, 2: 2, 3: 3, 4: 4, 5: 5, 6: 6, 7: 7},
}
ADDRESSES = {"control": "10.77.0.1", "n1": "10.77.0.11", "n2": "10.77.0.12"}
USER, OTHER = 2000, 2001
PASSWORD = "accounting-of-a-test"


def unpack(release: str = OWN) -> Path:
    """The folder of a release's packages, which are fetched from Debian and unpacked once."""
    place = UNPACKED if release == OWN else UNPACKED.with_name(f"slurm-{release}")
    ready = place / ".ready"
    if ready.exists() and ready.read_text().split() == [*PACKAGES]:
        return place
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    for package in sorted(_download(place) if release == OWN else _download_from(SUITES[release], place)):
        subprocess.run(["dpkg", "-x", package, place], check=True)
        package.unlink()
    # As the packages' alternatives name them: called otherwise, they take themselves for no daemons and know no gres.
    for name in ("slurmd", "slurmctld", "slurmstepd"):
        (place / "usr/sbin" / name).symlink_to(f"{name}-wlm")
    ready.write_text("\n".join(PACKAGES))
    return place


def _download(place: Path) -> list[Path]:
    """The packages of this machine's own Debian, which has what they need."""
    if subprocess.run(["apt-get", "-qq", "download", *PACKAGES], cwd=place, check=False).returncode:
        subprocess.run(["apt-get", "-qq", "update"], check=True)
        subprocess.run(["apt-get", "-qq", "download", *PACKAGES], cwd=place, check=True)
    return list(place.glob("*.deb"))


def _download_from(suite: str, place: Path) -> list[Path]:
    """The packages of another suite with all that they need, its C library too, by an apt that has nothing yet."""
    apt = place / "apt"
    for each in ("etc/preferences.d", "state/lists/partial", "cache/archives/partial"):
        (apt / each).mkdir(parents=True)
    (apt / "status").touch()
    key = "/usr/share/keyrings/debian-archive-keyring.gpg"
    (apt / "etc/sources.list").write_text(f"deb [signed-by={key}] http://deb.debian.org/debian {suite} main\n")
    options = {
        "Dir::Etc": apt / "etc", "Dir::State": apt / "state", "Dir::State::status": apt / "status",
        "Dir::Cache": apt / "cache", "APT::Sandbox::User": "root", "APT::Install-Recommends": "false",
        # A mirror that stands still is as good here.
        "Acquire::Check-Valid-Until": "false",
    }  # fmt: skip
    command = ["apt-get", "-qq", *(word for name, value in options.items() for word in ("-o", f"{name}={value}"))]
    subprocess.run([*command, "update"], check=True)
    subprocess.run([*command, "--yes", "--download-only", "install", *OWN_PACKAGES, *NEEDED], check=True)
    return list((apt / "cache/archives").glob("*.deb"))


def write_executable(path: Path, text: str) -> None:
    """Put a program into its place at once: one that runs has the old one."""
    new = path.with_name(f".{path.name}")
    new.write_text(text)
    new.chmod(0o755)
    new.rename(path)


class SlurmCluster:
    """The controller `control` and the nodes `n1` and `n2`."""

    def __init__(self, folder: Path, options: str = "", release: str = OWN) -> None:
        """`options` go to the programs that Slurm calls."""
        self.folder, self.release = folder, release
        self.folder.chmod(0o755)
        self.machines = {
            name: Machine(name, address, folder / name, unpack(release), 8 if name in MODULES else 0)
            for name, address in ADDRESSES.items()
        }
        self.shared = folder / "shared"
        self.shared.mkdir()
        self.shared.chmod(0o777)
        self.programs = folder / "programs"
        self._options = options
        self._key = os.urandom(128)

    def start(self) -> None:
        """Write the files and start all."""
        self._write_programs()
        for machine in self.machines.values():
            self._write_files(machine)
            machine.start()
        connect(self.machines["control"], [self.machines[name] for name in MODULES])
        said = self.admin("slurmd", "-V")
        assert conf.release_of(said) == self.release, f"Debian's {SUITES.get(self.release, 'own')} has {said.strip()}"
        for name in ("control", *MODULES):
            self.start_services(name)
        self.wait_until(lambda: set(self.states().values()) == {"IDLE"}, "all nodes idle")

    def stop(self) -> None:
        """End all of it."""
        for machine in self.machines.values():
            machine.stop()

    def start_services(self, name: str) -> None:
        """munged, and the controller or the node."""
        machine = self.machines[name]
        key, run = "/etc/munge/munge.key", "/run/munge"
        machine.serve(
            "munged", "munged", "--foreground", "--force", f"--key-file={key}", f"--socket={run}/munge.socket.2",
            f"--seed-file={run}/seed", f"--pid-file={run}/pid", f"--log-file={run}/log",
        )  # fmt: skip
        self.wait_until(lambda: machine.run("munge", "-n", check=False).returncode == 0, "munge")
        if name == "control":
            accounting.start(machine, PASSWORD)
            self.start_controller()
        else:
            self.start_node(name)

    def start_controller(self) -> None:
        """Start slurmctld, with the state that it left."""
        self.machines["control"].serve("slurmctld", "slurmctld", "-D")

    def start_node(self, name: str) -> None:
        """Start slurmd, with gres.conf as the cards are now."""
        machine = self.machines[name]
        program = self.programs / "gaudi_slurm.py"
        machine.run("/usr/bin/python3", "-s", str(program), "gres")
        machine.serve("slurmd", "slurmd", "-D")

    def boot(self, name: str) -> None:
        """Start a node again that was stopped."""
        self.machines[name].start()
        plug(self.machines["control"], self.machines[name])
        self.start_services(name)

    def run(self, *command: str, check: bool = True, timeout: float = 120, user: int = USER) -> str:
        """What a command prints that a user gives on the controller."""
        words = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", "env", f"HOME={self.shared}"]
        done = self.machines["control"].run(
            *words, "sh", "-c", 'cd "$HOME" && exec "$@"', "sh", *command, check=check, timeout=timeout
        )
        return done.stdout + done.stderr

    def admin(self, *command: str, check: bool = True) -> str:
        """What a command prints that root gives on the controller."""
        return self.machines["control"].run(*command, check=check).stdout

    def submit(self, *options: str, script: str) -> int:
        """The number of a job of this script."""
        path = self.shared / f"script-{len(list(self.shared.glob('script-*')))}.sh"
        path.write_text(f"#!/bin/bash\n{script}\n")
        return int(self.run("sbatch", "--parsable", *options, str(path)).split()[0])

    def job(self, number: int) -> dict[str, str]:
        """What `scontrol show job` says of a job."""
        shown = self.admin("scontrol", "-d", "show", "job", str(number))
        return dict(re.findall(r"(\w+)=(.*?)(?=\s+\w+=|\n|$)", shown))

    def states(self) -> dict[str, str]:
        """The state of each node."""
        shown = self.admin("scontrol", "-o", "show", "node", check=False)
        return dict(re.findall(r"^NodeName=(\S+).*?\sState=(\S+)", shown, re.MULTILINE))

    def reason(self, name: str) -> str:
        """Why a node is drained or down."""
        found = re.search(r"Reason=(.*?)(?: \[[^\]]*\])?\s*$", self.admin("scontrol", "show", "node", name), re.M)
        return found[1] if found else ""

    def wait_until(self, holds: object, what: str, seconds: float = 240) -> object:
        """Wait until a function returns something true."""
        return wait_for(what, holds, seconds)

    def wait_for_state(self, number: int, *states: str, seconds: float = 240) -> dict[str, str]:
        """The job once it is in one of these states."""
        wait_for(f"job {number} {states}", lambda: self.job(number).get("JobState") in states, seconds)
        return self.job(number)

    def set_options(self, options: str) -> None:
        """Have the programs that Slurm calls run with these options."""
        for name, text in conf.programs(folder=str(self.programs), options=options).items():
            write_executable(self.programs / name, text)

    def _write_programs(self) -> None:
        self.programs.mkdir()
        shutil.copy(ROOT / "roles/slurm/files/gaudi_slurm.py", self.programs)
        shutil.copytree(
            ROOT / "plugins/module_utils", self.programs / "engine", ignore=shutil.ignore_patterns("__pycache__")
        )
        self.set_options(self._options)

    def _write_files(self, machine: Machine) -> None:
        etc = machine.folder / "etc"
        (etc / "slurm").mkdir(parents=True)
        (etc / "munge").mkdir()
        for each in ("state", "spool", "var/log"):
            (machine.folder / each).mkdir(parents=True)
        users = {"user": USER, "other": OTHER}
        accounts = {
            "passwd": "".join(f"{name}:x:{uid}:{uid}::{self.shared}:/bin/bash\n" for name, uid in users.items()),
            "group": "".join(f"{name}:x:{uid}:\n" for name, uid in users.items()),
        }
        for name, lines in accounts.items():
            (etc / name).write_text(Path("/etc", name).read_text() + lines)
        hosts = "".join(f"{address} {name}\n" for name, address in ADDRESSES.items())
        (etc / "hosts").write_text(f"127.0.0.1 localhost\n{hosts}")
        key = etc / "munge/munge.key"
        key.write_bytes(self._key)
        key.chmod(0o600)
        cluster = conf.Cluster(
            "test", "control", ADDRESSES["control"], stop_timeout=120, health_interval=0, slurm_user="root",
            state_folder="/mnt/state", spool_folder="/mnt/spool", log_folder="/mnt/var/log",
            folder=str(self.programs), accounting=True,
            # This machine has fewer processors than a node, and a test does not wait for five minutes for a lost one.
            settings={
                "SlurmdParameters": "config_overrides", "SlurmdTimeout": "30", "SlurmctldTimeout": "30",
                "MessageTimeout": "30", "PrivateData": "jobs,usage",
            },
        )  # fmt: skip
        nodes = [conf.ComputeNode(name, ADDRESSES[name], 16, 1000) for name in MODULES]
        for name, text in conf.cluster_files(cluster, nodes).items():
            (etc / "slurm" / name).write_text(text.replace("task/cgroup,task/affinity", "task/cgroup"))
        (etc / "slurm/gres.conf").write_text("")
        if machine.name == "control":
            database = etc / "slurm/slurmdbd.conf"
            database.write_text(site.slurmdbd_conf(cluster, PASSWORD))
            database.chmod(0o600)
            (etc / "slurm/mariadb.cnf").write_text(site.database_settings(0))
        for module, index in MODULES.get(machine.name, {}).items():
            device = machine.folder / f"class/accel/accel{index}/device"
            device.mkdir(parents=True)
            (device / "module_id").write_text(f"{module}\n")
            (device / "status").write_text("Operational\n")
