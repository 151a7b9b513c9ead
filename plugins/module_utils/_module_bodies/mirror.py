# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Whether a sealed mirror answers a node, and is what the node installs from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._mirror import refuse_unfit, sealed_at
from .._refusal import Refusal

if TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule

ARGUMENT_SPEC: dict[str, dict[str, Any]] = {
    "url": {"type": "str", "required": True},
    "release": {"type": "str", "required": True},
    "lock_sha256": {"type": "str", "default": ""},
    "wanted": {"type": "dict", "default": {}},
    "timeout": {"type": "int", "default": 15},
}


def run(module: AnsibleModule) -> dict[str, Any]:
    """Ask for the lock and compare it."""
    params = module.params
    try:
        found = sealed_at(params["url"], params["lock_sha256"], params["timeout"])
        refuse_unfit(found, params["url"], params["release"], params["wanted"])
    except Refusal as error:
        module.fail_json(msg=str(error))
    return {"changed": False, "release": found.release}
