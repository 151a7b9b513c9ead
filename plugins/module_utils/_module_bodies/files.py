# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Files of a node with their group and permissions, in the words of ansible.builtin.find."""

from __future__ import annotations

import glob
import grp
import os
import stat
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule


ARGUMENT_SPEC: dict[str, dict[str, Any]] = {"paths": {"type": "list", "elements": "str", "required": True}}


def run(module: AnsibleModule) -> dict[str, Any]:
    """The files that are there, by path or pattern."""
    found = sorted({path for pattern in module.params["paths"] for path in glob.glob(pattern)})
    return {"changed": False, "files": [_described(path, os.stat(path)) for path in found if os.path.exists(path)]}


def _described(path: str, status: os.stat_result) -> dict[str, Any]:
    return {
        "path": path,
        "gid": status.st_gid,
        "gr_name": _group(status.st_gid),
        "wgrp": bool(status.st_mode & stat.S_IWGRP),
        "woth": bool(status.st_mode & stat.S_IWOTH),
    }


def _group(gid: int) -> str:
    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return ""
