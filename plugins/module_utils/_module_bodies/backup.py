# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Back this machine up, and put a backup back: what the two modules have in common and what each says."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

from .._backup import manifest, restoring, saving
from .._backup.kinds import MACHINES, Item, items
from .._backup.repository import Repository
from .._backup.status import STATUS, write_status
from .._refusal import Refusal

if TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule

#: Where copies are made, and the cache of restic.
FOLDER = "/var/lib/gaudi3-backup"
_COMMON: dict[str, dict[str, Any]] = {
    "repository": {"type": "str", "required": True},
    "password": {"type": "str", "required": True, "no_log": True},
    "environment": {"type": "dict", "default": {}, "no_log": True},
    "ssh_key": {"type": "str", "default": "", "no_log": True},
    "ssh_known_hosts": {"type": "str", "default": ""},
    "host": {"type": "str", "required": True},
    "cluster": {"type": "str", "default": ""},
    "kinds": {"type": "list", "elements": "str", "choices": [*MACHINES], "default": []},
    "folders": {"type": "dict", "default": {}},
    "paths": {"type": "list", "elements": "path", "default": []},
    "working_folder": {"type": "path", "default": FOLDER},
    "root": {"type": "path", "default": "/"},
    "restic_executable": {"type": "str", "default": "restic"},
}
BACKUP_SPEC = _COMMON
RESTORE_SPEC: dict[str, dict[str, Any]] = {
    **_COMMON,
    "snapshot": {"type": "str", "default": "latest"},
    "overwrite": {"type": "bool", "default": False},
}


def _repository(module: AnsibleModule) -> Repository:
    params = module.params
    executable = module.get_bin_path(params["restic_executable"])
    if not executable:
        raise Refusal(f"{params['restic_executable']} is not on this machine: install the package restic")
    environment = {str(name): str(value) for name, value in params["environment"].items()}
    cache = os.path.join(params["working_folder"], "cache")
    ssh = (params["ssh_key"], params["ssh_known_hosts"])
    return Repository(params["repository"], params["password"], environment, executable, cache, *ssh, params["cluster"])


def _items(module: AnsibleModule) -> list[Item]:
    folders = {str(name): os.path.expanduser(str(path)) for name, path in module.params["folders"].items() if path}
    return items(module.params["kinds"], folders, module.params["paths"])


def _machine(module: AnsibleModule) -> tuple[str, str, str]:
    params = module.params
    for option in ("working_folder", "root"):
        if not os.path.isabs(params[option]):
            raise Refusal(f"{option} is {params[option]!r}: give an absolute path")
    return params["working_folder"], os.path.normpath(params["root"]), params["host"]


def back_up(module: AnsibleModule) -> dict[str, Any]:
    """Add a snapshot where something changed."""
    try:
        wanted, repository, (folder, root, host) = _items(module), _repository(module), _machine(module)
        saved = saving.save(
            repository, wanted, folder, root, host, module.params["kinds"], module.check_mode, module._diff
        )
        if not module.check_mode:
            write_status(os.path.join(folder, STATUS), saved, int(time.time()))
    except Refusal as refusal:
        return dict(module.fail_json(msg=str(refusal)))
    except OSError as error:
        return dict(module.fail_json(msg=_said(error, "nothing was added to the repository")))
    result: dict[str, Any] = {
        "changed": saved.changed,
        "snapshot": saved.snapshot,
        "items": sorted(saved.now.items),
        "missing": saved.missing,
        "files": len(saved.now.entries),
        "bytes": saved.now.size,
    }
    if module._diff:
        before, after = manifest.listed(saved.before), manifest.listed(saved.now)
        result["diff"] = {"before": before if saved.changed else after, "after": after}
    return result


def restore(module: AnsibleModule) -> dict[str, Any]:
    """Put back what differs from a backup."""
    try:
        wanted, repository, (folder, root, host) = _items(module), _repository(module), _machine(module)
        params = module.params
        done = restoring.restore(
            repository, wanted, folder, root, host, params["snapshot"], params["overwrite"], module.check_mode
        )
    except Refusal as refusal:
        return dict(module.fail_json(msg=str(refusal)))
    except OSError as error:
        return dict(module.fail_json(msg=_said(error, "mend that and run it again, which makes up for it")))
    if done.skipped:
        module.warn(f"Newer snapshots are not whole, and were skipped: {', '.join(done.skipped)}.")
    result: dict[str, Any] = {
        "changed": bool(done.items),
        "snapshot": done.snapshot.name,
        "time": done.snapshot.time,
        "items": sorted(done.items),
        "kept": done.kept,
        "not_whole": done.skipped,
        "differences": done.wrong,
    }
    if module._diff:
        result["diff"] = {"before": "".join(f"{each}\n" for each in done.wrong), "after": ""}
    return result


def _said(error: OSError, rest: str) -> str:
    return f"{error.filename or 'The disk'}: {error.strerror or error}; {rest}."
