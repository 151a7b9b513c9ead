# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""What is backed up of each kind of machine, how it is read while it is in use, and what is left out and why."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from .._refusal import Refusal

#: Files and folders whose writers replace them whole, or append.
TREE = "tree"
#: A database of SQLite, read by its own backup while Grafana writes.
SQLITE = "sqlite"
#: Prometheus' data: blocks that never change, and the log of what is not in a block yet.
TSDB = "tsdb"
#: A database of MariaDB; its path is the database's name.
SQL = "sql"


#: What the name of an item does not have.
_NO_NAME = re.compile(r"[^A-Za-z0-9._+@:,=~-]")


class Item(NamedTuple):
    """One thing that is backed up and restored as a whole."""

    name: str
    path: str
    way: str = TREE
    unit: str = ""
    """The service that must not run while it is restored."""


_CONFIGURATION = Item("gaudi3-configuration", "/etc/gaudi3-scale")
#: By kind of machine. A machine can be of several kinds, and what is not there is left out.
MACHINES: Mapping[str, tuple[Item, ...]] = {
    "monitoring": (
        Item("prometheus-data", "/var/lib/prometheus/metrics2", TSDB, "prometheus.service"),
        Item("alertmanager-data", "/var/lib/prometheus/alertmanager", TREE, "prometheus-alertmanager.service"),
        Item("grafana-database", "/var/lib/grafana/grafana.db", SQLITE, "grafana-server.service"),
        Item("prometheus-configuration", "/etc/prometheus"),
        Item("prometheus-arguments", "/etc/default/prometheus"),
        Item("alertmanager-arguments", "/etc/default/prometheus-alertmanager"),
        Item("grafana-configuration", "/etc/grafana"),
        _CONFIGURATION,
    ),
    "node": (
        Item("job-records", "/var/lib/gaudi3-scale/jobs/.control"),
        Item("fence", "/var/lib/gaudi3-scale/health"),
        _CONFIGURATION,
    ),
    "slurm": (
        Item("slurm-state", "/var/lib/slurm/slurmctld", TREE, "slurmctld.service"),
        Item("slurm-configuration", "/etc/slurm"),
        Item("munge-key", "/etc/munge/munge.key", TREE, "munge.service"),
        Item("slurm-accounting", "slurm_acct_db", SQL, "slurmdbd.service"),
        _CONFIGURATION,
    ),
    # Of a user's own folders, which the caller names.
    "controller": (),
}
#: By item, the command that says the version of the program whose data it is. An older program may not read it.
PROGRAMS: Mapping[str, tuple[str, ...]] = {
    "prometheus-data": ("prometheus", "--version"),
    "alertmanager-data": ("prometheus-alertmanager", "--version"),
    "grafana-database": ("grafana-server", "-v"),
    "slurm-state": ("slurmctld", "-V"),
    "slurm-accounting": ("slurmdbd", "-V"),
}
#: By item that is a database's dump, under which name the version of the server is kept. An older one may not read it.
SERVERS: Mapping[str, str] = {"slurm-accounting": "slurm-accounting.server"}
#: Folders of a controller's user, where nothing else was chosen. The audit record lies beside the deployments.
CONTROLLER: Mapping[str, str] = {
    "secrets": "~/.config/gaudi3-scale",
    "health": "~/.local/state/gaudi3-scale",
    "deployments": "~/.local/state/gaudi3-deploy",
}
#: Files and folders that the collection makes or uses, and why no backup has them. A longer path wins.
LEFT_OUT: Mapping[str, str] = {
    "/etc/apt": "sources of packages, which the roles write",
    "/etc/dnf": "locks of kernels, which the roles write",
    "/etc/default/prometheus-node-exporter": "arguments, which the role node_exporter writes",
    "/etc/default/grub.d": "arguments of the kernel, which the role tuning writes",
    "/etc/gaudi3-backup": "the password of the backups, which has to lie elsewhere",
    "/etc/fstab": "where a machine's disks are, which its owner writes",
    "/etc/mine.env": "a name in an example",
    "/etc/habanalabs": "addresses of the cards' ports, which the role fabric writes",
    "/etc/modules-load.d": "settings of the host, which the role synapseai writes",
    "/etc/munge": "a backup has the key alone",
    "/etc/my.cnf.d": "settings of MariaDB, which the role slurm writes",
    "/etc/mysql": "settings of MariaDB, which the role slurm writes",
    "/etc/pki/rpm-gpg": "the key of a vendor's packages, which the role synapseai installs",
    "/etc/profile.d": "settings of the vendor's packages",
    "/etc/security": "settings of the host, which the role tuning writes",
    "/etc/sysctl.d": "settings of the host, which the role tuning writes",
    "/etc/systemd": "units, which roles and the start of a job write",
    "/etc/tmpfiles.d": "settings of the host, which the roles tuning and synapseai write",
    "/etc/yum.repos.d": "sources of packages, which the roles write",
    "/opt/gaudi3-scale": "programs, which the roles pytorch and trainer install",
    "/opt/gaudi3-serving": "programs, which the role serving installs",
    "/opt/habanalabs": "the vendor's packages",
    "/usr/lib/habanalabs": "the vendor's packages",
    "/usr/lib/systemd": "units of packages",
    "/usr/local/bin": "programs, which the roles write",
    "/usr/local/lib": "programs, which the roles write",
    "/usr/local/sbin": "programs, which the roles write",
    "/usr/local/src": "sources, which the role fabric unpacks",
    "/var/cache/gaudi3-scale": "compiled graphs and downloads, which are made again",
    "/var/lib/apt": "lists of packages",
    "/var/lib/gaudi3-backup": "copies that a run of the backup makes and removes",
    "/var/lib/gaudi-logs-upload": "how far a node has sent its journal: a new one sends its own from the beginning",
    "/var/lib/grafana": "plugins and pictures of Grafana: a backup has its database alone",
    "/var/lib/private/gaudi-logs-upload": "how far a node has sent its journal: a new one sends its own",
    "/var/lib/gaudi-logs-vendor": "how far the vendor's files were read: a new node reads its own from the beginning",
    "/opt/slurm": "programs of Slurm, which its owner installs",
    "/var/lib/gaudi3-scale/certificate": "parts of a certificate that continues, kept for a week",
    "/var/lib/gaudi3-scale/data": "sets of training data, which are large and come from their sources again",
    "/var/lib/gaudi3-scale/jobs": "checkpoints and logs of jobs, which are large: keep checkpoints in a store of their "
    "own",
    "/var/lib/gaudi3-serving": "copies of models, which are fetched from the registry",
    "/var/lib/prometheus": "what is neither Prometheus' nor Alertmanager's data",
    "/var/lib/prometheus/node-exporter": "pages of metrics, which are written again each minute",
    "/var/lib/slurm": "what is not the state of slurmctld",
    "/var/lib/slurm/slurmd": "what a node's slurmd knows of jobs that run",
    "/var/log/gaudi-hpu-exporter": "logs of the exporter",
    "/var/log/private/gaudi-hpu-exporter": "logs of the exporter",
    "/var/log/gaudi-logs": "collected journals, which are large and kept for days: name the folder in backup_paths to "
    "have it",
    "/var/log/habana_logs": "logs of the vendor's tools",
    "/var/log/slurm": "logs of Slurm",
    "~/.cache": "downloads of the controller",
}


def items(kinds: Sequence[str], folders: Mapping[str, str], paths: Sequence[str] = ()) -> list[Item]:
    """What is backed up of a machine of these kinds; ``Refusal`` of an unknown kind or of a path that is not one.

    ``folders`` are a controller's, by name; ``paths`` are a site's own, whose names follow from them.
    """
    for kind in kinds:
        if kind not in MACHINES:
            raise Refusal(f"kinds has {kind}: give some of {', '.join(MACHINES)}")
    found = [item for kind in kinds for item in MACHINES[kind]]
    found += [Item(name, _whole(path)) for name, path in folders.items() if path]
    found += [Item(name_of(path), _whole(path)) for path in paths]
    found = [*dict.fromkeys(found)]
    for item in found:
        for other in found:
            if other is not item and (other.path == item.path or other.path.startswith(f"{item.path}/")):
                raise Refusal(
                    f"{other.path} lies in {item.path}, which is backed up with all that is in it: leave it out"
                )
    names = [item.name for item in found]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise Refusal(
            f"two of the paths have the name {twice[0]} in the backup: put both into one folder and give that"
        )
    if not found:
        raise Refusal("nothing is named to be backed up: give kinds, folders or paths")
    return found


def name_of(path: str) -> str:
    """The name that a site's own path has in a backup; ``Refusal`` of one that is too long."""
    name = "path" + _NO_NAME.sub("_", _whole(path).replace("/", "-"))
    if len(name) > 255:
        raise Refusal(f"the path {path} is too long for a backup: name a folder above it")
    return name


def _whole(path: str) -> str:
    if not posixpath.isabs(path) or posixpath.normpath(path) in ("/", "//") or "\0" in path:
        raise Refusal(f"{path!r} is to be backed up: give the absolute path of a file or folder")
    return posixpath.normpath(path)


def answer(path: str) -> str:
    """The item that has a path, or why none has it; empty where nobody has decided.

    The longest of the paths that have it above them decides.
    """
    known = {item.path: item.name for found in MACHINES.values() for item in found}
    known.update({path: name for name, path in CONTROLLER.items()})
    known.update(LEFT_OUT)
    above = [each for each in known if path == each or path.startswith(f"{each}/")]
    return known[max(above, key=len)] if above else ""
