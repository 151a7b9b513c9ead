# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""What a cluster of Slurm needs of its hosts: packages, one key, one time, and a database.

Names of packages are those of Debian, Ubuntu and EPEL. Ubuntu 22.04 has Slurm 21.08, which is too old.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence

from .._refusal import Refusal
from . import conf

#: By family of distributions, what runs where.
PACKAGES: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "Debian": {
        "node": ("munge", "slurmd", "slurm-client"),
        "controller": ("munge", "slurmctld", "slurm-client"),
        "accounting": ("slurmdbd", "mariadb-server"),
    },
    "RedHat": {
        "node": ("munge", "slurm", "slurm-slurmd"),
        "controller": ("munge", "slurm", "slurm-slurmctld"),
        "accounting": ("slurm-slurmdbd", "mariadb-server"),
    },
}
#: Where MariaDB reads what slurmdbd asks of it.
DATABASE_SETTINGS = {"Debian": "/etc/mysql/mariadb.conf.d/60-slurm.cnf", "RedHat": "/etc/my.cnf.d/slurm.cnf"}
#: munge takes no credential that is older than 300 seconds; what is measured here may be off by some.
MOST_SKEW = 240
#: munged takes no shorter key.
SHORTEST_KEY = 32
DATABASE, USER = "slurm_acct_db", "slurm"
#: Words of PrivateData that slurmdbd knows, too: without them there, sacct shows all jobs to everybody.
_PRIVATE = ("accounts", "events", "jobs", "reservations", "usage", "users")
_SAFE = re.compile(r"[A-Za-z0-9._~@%+=:,/-]{8,72}")


def candidate(family: str, package: str) -> list[str]:
    """The command that says which version of a package is installed or would be."""
    if family == "RedHat":
        return ["dnf", "--quiet", "repoquery", "--latest-limit=1", "--queryformat=%{version}\n", package]
    return ["apt-cache", "policy", package]


def version_of(family: str, said: str) -> str:
    """The version in the answer of ``candidate``; empty where the host knows no such package."""
    if family == "RedHat":
        return said.strip().splitlines()[-1] if said.strip() else ""
    found = dict(re.findall(r"^\s+(Installed|Candidate): (\S+)", said, re.MULTILINE))
    known = [found[name] for name in ("Installed", "Candidate") if found.get(name, "(none)") != "(none)"]
    return known[0] if known else ""


def package_problem(host: str, system: str, family: str, package: str, version: str, answered: bool) -> str:
    """Why the packages of this host cannot serve, in one sentence; empty where they can, or are not known yet."""
    if family not in PACKAGES:
        return (
            f"{host} runs {system}, whose packages of Slurm are not known here: install Slurm and leave slurm_existing "
            "at true."
        )
    if not version and family == "RedHat" and answered:
        return (
            f"{host} knows no package {package}, which the base of {system} does not have: enable EPEL "
            "(dnf install epel-release) or a repository of your own with Slurm 22.05 to 26.05."
        )
    if version and conf.version_refusal(version):
        return (
            f"{package} of {system} on {host} is {version}, and 22.05 to 26.05 are known here: name packages of such a "
            "release in slurm_packages."
        )
    return ""


def controller_problem(controllers: Sequence[str]) -> str:
    """Why slurmctld cannot run on these hosts, in one sentence; empty where it can."""
    if not controllers:
        return "No host is in the group slurm_controller, where slurmctld runs: put one into it."
    if len(controllers) > 1:
        named = ", ".join(controllers)
        return (
            f"The group slurm_controller has {named}: leave one in it, as a second slurmctld needs a folder that both "
            "share, which the role does not make."
        )
    return ""


def clock_problem(reference: str, clocks: Mapping[str, float]) -> str:
    """Which host's time is too far from the reference's, in one sentence; empty where none is.

    ``clocks`` are by how many seconds each host is ahead of the machine that asked.
    """
    if reference not in clocks:
        return ""
    apart = {host: clock - clocks[reference] for host, clock in clocks.items()}
    worst = max(apart, key=lambda host: abs(apart[host]))
    if abs(apart[worst]) <= MOST_SKEW:
        return ""
    way = "ahead of" if apart[worst] > 0 else "behind"
    return (
        f"The clock of {worst} is {abs(apart[worst]):.0f} s {way} that of {reference}, and munge takes nothing that is "
        "300 s off: keep the clocks in step with chrony."
    )


def clock(said: str) -> float | None:
    """By how many seconds a host is ahead, of ``asked:found`` in seconds since the epoch; None for anything else."""
    found = re.fullmatch(r"(\d{1,12}(?:\.\d+)?):(\d{1,12}(?:\.\d+)?)", said.strip())
    return float(found[2]) - float(found[1]) if found else None


def keys_problem(digests: Mapping[str, str]) -> str:
    """Which hosts have another munge key than most, in one sentence; empty where all have the same."""
    found = [digest for digest in digests.values() if digest]
    if not found:
        return ""
    usual = max(sorted(set(found)), key=found.count)
    others = [host for host, digest in digests.items() if digest and digest != usual]
    if not others:
        return ""
    return (
        f"/etc/munge/munge.key of {', '.join(others)} is another one than that of "
        f"{next(host for host, digest in digests.items() if digest == usual)}: copy one to all hosts, owned by munge "
        "with mode 0400, and restart munge.service."
    )


def munge_problem(host: str, said: str, has_key: bool) -> str:
    """Why munge makes no credential on this host, in one sentence; ``said`` is what came of the attempt."""
    if "No such file or directory: b'munge'" in said:
        return (
            f"munge is not installed on {host}: install it (Debian: apt-get install munge) and copy "
            "/etc/munge/munge.key of the other hosts there."
        )
    if not has_key:
        return (
            f"There is no /etc/munge/munge.key on {host}: copy that of the other hosts there, owned by munge with mode "
            "0400, and start munge.service."
        )
    return (
        f"munge on {host} makes no credential: start munge.service with the cluster's /etc/munge/munge.key, owned "
        "by munge with mode 0400, on all hosts the same."
    )


def releases_problem(controller: str, versions: Mapping[str, str]) -> str:
    """Which node has a newer release of Slurm than slurmctld, which does not serve it, in one sentence; else empty."""
    known = {host: found for host, version in versions.items() if (found := conf.release_of(version))}
    there = known.get(controller, "")
    newer = [host for host, release in known.items() if there and release > there]
    if not newer:
        return ""
    return (
        f"Slurm is {there} on {controller} and {known[newer[0]]} on {', '.join(newer)}, and slurmctld serves no slurmd "
        f"of a newer release: bring {controller} to {known[newer[0]]} first."
    )


def munge_key(given: str, made: str) -> str:
    """The text of munge.key: what is given, or else what follows from the secret; Refusal for a short one."""
    if given and len(given.encode()) < SHORTEST_KEY:
        raise Refusal(
            f"slurm_munge_key has {len(given.encode())} bytes: give {SHORTEST_KEY} or more, or leave it empty."
        )
    return given or hashlib.sha512(made.encode()).hexdigest()


def database_settings(memory: int) -> str:
    """What slurmdbd asks of MariaDB, on a host of that memory, in MB; it listens to this host alone.

    MariaDB 11.6 and later isolate snapshots unless a setting says otherwise, and slurmdbd 26.05 says that it then ends
    at a write that meets another one. A MariaDB that does not know the setting passes over it.
    """
    pool = min(4096, max(1024, memory // 8)) if memory >= 4096 else max(128, memory // 4)
    return (
        f"{conf.HEADER}[mysqld]\nbind-address=127.0.0.1\ninnodb_buffer_pool_size={pool}M\n"
        "innodb_log_file_size=64M\ninnodb_lock_wait_timeout=900\nloose_innodb_snapshot_isolation=OFF\n"
    )


def slurmdbd_conf(cluster: conf.Cluster, password: str) -> str:
    """The file, for SlurmUser alone; Refusal for a password that would write another line."""
    check_password(password)
    asked = next((value for name, value in cluster.settings.items() if name.lower() == "privatedata"), "")
    private = ",".join(word for word in _PRIVATE if word in re.split(r"[,\s]+", asked.lower()))
    return conf.HEADER + "\n".join([
        "AuthType=auth/munge",
        "DbdHost=localhost",
        f"DbdAddr={cluster.controller_address}",
        f"SlurmUser={cluster.slurm_user}",
        "StorageType=accounting_storage/mysql",
        "StorageHost=localhost",
        f"StorageUser={USER}",
        f"StoragePass={password}",
        f"StorageLoc={DATABASE}",
        f"LogFile={cluster.log_folder}/slurmdbd.log",
        f"PidFile={cluster.run_folder}/slurmdbd.pid",
        *([f"PrivateData={private}"] if private else []),
        "",
    ])  # fmt: skip


def check_password(password: str) -> None:
    """Refusal for one that slurmdbd.conf or SQL would read otherwise."""
    if not _SAFE.fullmatch(password):
        raise Refusal(
            "slurm_database_password has characters that slurmdbd.conf cannot carry: use 8 to 72 letters, digits and "
            "._~@%+=:,/-"
        )


def client_options(password: str) -> str:
    """What the client of MariaDB reads, to be given to it where no other user can look."""
    return f"[client]\nuser={USER}\npassword={password}\n"


def statements(password: str) -> str:
    """What makes the database and its user, however far an earlier run came."""
    check_password(password)
    return (
        f"CREATE DATABASE IF NOT EXISTS {DATABASE};\n"
        f"CREATE USER IF NOT EXISTS '{USER}'@'localhost' IDENTIFIED BY '{password}';\n"
        f"ALTER USER '{USER}'@'localhost' IDENTIFIED BY '{password}';\n"
        f"GRANT ALL PRIVILEGES ON {DATABASE}.* TO '{USER}'@'localhost';\n"
    )
