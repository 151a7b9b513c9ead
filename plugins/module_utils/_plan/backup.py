# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""What role backup runs on a host: a timer, its program, and the settings that only root reads."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Mapping
from typing import Any

from .._backup import belonging, sftp
from .._backup.kinds import items
from .._refusal import Refusal
from . import shipped
from .given import entries, group, listed
from .model import Values

FOLDER = "/usr/local/lib/gaudi-backup"
SETTINGS = "/etc/gaudi3-backup/settings.json"
UNIT = "gaudi-backup"
#: What the program imports of the collection; a test follows the imports.
PROGRAM = (
    "_backup/__init__.py", "_backup/belonging.py", "_backup/databases.py", "_backup/kinds.py", "_backup/manifest.py",
    "_backup/moments.py",
    "_backup/process.py", "_backup/repository.py", "_backup/saving.py", "_backup/sftp.py", "_backup/status.py",
    "_backup/tree.py", "_backup/tsdb.py", "_files.py", "_printable.py", "_refusal.py",
)  # fmt: skip
#: By group of the inventory, the kind that its hosts are of.
GROUPS = {"monitoring": "monitoring", "gaudi": "node", "slurm_controller": "slurm"}
KEEP = ("last", "daily", "weekly", "monthly")
_SCHEDULE = re.compile(r"[A-Za-z0-9*:,./ -]{1,80}")
_SHARE = re.compile(r"|[1-9][0-9]?%|100%")


def kinds(values: Values) -> list[str]:
    """What this host is, by its groups."""
    return [kind for name, kind in GROUPS.items() if values("inventory_hostname") in group(values, name)]


def problem(values: Values) -> str:
    """What cannot work, in one sentence; else empty."""
    name, repository = values("inventory_hostname"), str(values("backup_repository") or "")
    password = str(values("backup_password") or "")
    keep = entries(values("backup_keep"))
    checks = {
        "backup_repository is empty: give an absolute path or an address of restic for each host, such as "
        "sftp:backup@store:/srv/gaudi/{{ inventory_hostname }}.": not repository,
        f"backup_repository is {repository!r}: give an absolute path or an address of restic, such as "
        "sftp:backup@store:/srv/gaudi.": not posixpath.isabs(repository) and ":" not in repository,
        "backup_password is empty: give one out of your vault, and keep it where the backups are not.": not password,
        "backup_password has more than one line: give one line.": "\n" in password,
        f"{name} is in none of the groups {', '.join(GROUPS)}, which say what is backed up: put it into one, or name "
        "paths in backup_paths.": not kinds(values) and not listed(values("backup_paths")),
        f"backup_keep is {dict(keep) or values('backup_keep')!r}: give whole numbers of {', '.join(KEEP)}, one of them "
        "above 0.": (
            not {*keep} <= {*KEEP}
            or not all(isinstance(count, int) and not isinstance(count, bool) and count >= 0 for count in keep.values())
            or not any(keep.values())
        ),
        f"backup_schedule is {values('backup_schedule')!r}: give a time as systemd has it, such as daily or "
        "*-*-* 03:00.": not _SCHEDULE.fullmatch(str(values("backup_schedule"))),
        f"backup_check_share is {values('backup_check_share')!r}: give a share such as 1%, or leave it empty.": (
            not _SHARE.fullmatch(str(values("backup_check_share")))
        ),
    }
    found = next((sentence for sentence, wrong in checks.items() if wrong), "")
    if found:
        return found
    try:
        items(kinds(values), {}, _paths(values))
    except Refusal as refusal:
        return f"backup_paths: {refusal}"
    try:
        belonging.check(_cluster(values))
        sftp.check(repository, *_ssh(values))
    except Refusal as refusal:
        return f"backup_{refusal}"
    return ""


def _ssh(values: Values) -> tuple[str, str]:
    return str(values("backup_ssh_key") or ""), str(values("backup_ssh_known_hosts") or "")


def _cluster(values: Values) -> str:
    return str(values("backup_cluster") or "")


def _paths(values: Values) -> list[str]:
    return [str(path) for path in listed(values("backup_paths"))]


def decide(values: Values) -> Mapping[str, Any]:
    """The files of this host, or what is wrong."""
    found = problem(values)
    if found:
        return {"problem": found, "kinds": [], "files": [], "units": []}
    key, known_hosts = _ssh(values)
    settings = {
        "repository": str(values("backup_repository")),
        "password": str(values("backup_password")),
        "environment": {str(name): str(value) for name, value in entries(values("backup_environment")).items()},
        "ssh_key": key,
        "ssh_known_hosts": known_hosts,
        "host": str(values("inventory_hostname")),
        "cluster": _cluster(values),
        "kinds": kinds(values),
        "paths": _paths(values),
        "keep": {str(name): int(count) for name, count in entries(values("backup_keep")).items()},
        "check_share": str(values("backup_check_share")),
        "metrics": str(values("backup_textfile_directory") or ""),
    }
    program = {
        "gaudi_backup.py": shipped.content_of("roles/backup/files/gaudi_backup.py"),
        "engine/__init__.py": "",
        **{f"engine/{path}": shipped.content_of(f"plugins/module_utils/{path}") for path in PROGRAM},
    }
    text = json.dumps(settings, indent=1, sort_keys=True) + "\n"
    return {
        "problem": "",
        "kinds": settings["kinds"],
        "files": [
            {"path": SETTINGS, "content": text, "mode": "0600", "secret": True, "restart": False},
            {"path": f"/etc/systemd/system/{UNIT}.service", "content": service(), "restart": False},
            {"path": f"/etc/systemd/system/{UNIT}.timer", "content": timer(str(values("backup_schedule")))},
            *({"path": f"{FOLDER}/{name}", "content": each, "restart": False} for name, each in program.items()),
        ],
        "units": [item.unit for item in items(kinds(values), {}, _paths(values)) if item.unit],
    }


def service() -> str:
    """One backup, what retention no longer keeps, and a check. Jobs go first."""
    lines = (
        "[Unit]", "Description=Back up what this machine cannot make again", "Wants=network-online.target",
        "After=network-online.target", "",
        "[Service]", "Type=oneshot", f"ExecStart=/usr/bin/python3 -s {FOLDER}/gaudi_backup.py --settings {SETTINGS}",
        "Environment=PYTHONDONTWRITEBYTECODE=1", "UMask=0077", "Nice=15", "IOSchedulingClass=idle",
        "TimeoutStartSec=12h", "NoNewPrivileges=yes", "PrivateTmp=yes", "ProtectHome=read-only",
        "ProtectKernelModules=yes", "ProtectKernelTunables=yes", "ProtectControlGroups=yes",
    )  # fmt: skip
    return "# Written by gaudi3.scale, role backup.\n" + "\n".join(lines) + "\n"


def timer(schedule: str) -> str:
    """Not all hosts at once, and after a boot where a time was missed."""
    lines = (
        "[Unit]", "Description=Back this machine up, again and again", "",
        "[Timer]", f"OnCalendar={schedule}", "RandomizedDelaySec=30min", "Persistent=true", "",
        "[Install]", "WantedBy=timers.target",
    )  # fmt: skip
    return "# Written by gaudi3.scale, role backup.\n" + "\n".join(lines) + "\n"
