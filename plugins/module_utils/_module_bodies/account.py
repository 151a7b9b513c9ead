# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Whether a user of a node is as a task would make it, in the words of ansible.builtin.user."""

from __future__ import annotations

import grp
import pwd
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule


ARGUMENT_SPEC: dict[str, dict[str, Any]] = {
    "name": {"type": "str", "required": True},
    "uid": {"type": "int"},
    "group": {"type": "str"},
    "home": {"type": "path", "required": True},
    "shell": {"type": "path", "required": True},
    "system": {"type": "bool", "default": False},
    "create_home": {"type": "bool", "default": True},
}


def run(module: AnsibleModule) -> dict[str, Any]:
    """Whether it would be made or changed."""
    given = module.params
    try:
        user = pwd.getpwnam(given["name"])
    except KeyError:
        return {"changed": True}
    return {
        "changed": (user.pw_dir, user.pw_shell) != (given["home"], given["shell"])
        or given["uid"] not in (None, user.pw_uid)
        or (given["group"] is not None and given["group"] != _group(user.pw_gid))
    }


def _group(gid: int) -> str:
    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return ""
