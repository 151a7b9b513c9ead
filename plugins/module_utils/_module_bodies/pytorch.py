# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""What gaudi_pytorch does: the vendor's PyTorch of one release, installed or looked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._host.reach import Unreachable
from .._pytorch.install import Installer
from .._refusal import Refusal

if TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule


ARGUMENT_SPEC: dict[str, dict[str, Any]] = {
    "state": {"type": "str", "choices": ["present", "preinstalled"], "default": "present"},
    "release": {"type": "str", "required": True},
    "system": {"type": "str", "default": ""},
    "distribution": {"type": "str", "default": ""},
    "driver_release": {"type": "str", "default": ""},
    "version": {"type": "str", "default": ""},
    "kind": {"type": "str", "choices": ["fork", "public"], "default": "fork"},
    "executable": {"type": "path", "default": "/usr/bin/python3"},
    "pythons": {"type": "list", "elements": "str", "default": []},
    "python_later": {"type": "bool", "default": False},
    "repository_url": {"type": "str", "default": "https://vault.habana.ai/artifactory/gaudi-pt-modules"},
    "sha256": {"type": "str", "default": ""},
    "lock_url": {"type": "str", "default": ""},
    "lock_sha256": {"type": "str", "default": ""},
    "requirements": {"type": "list", "elements": "str", "default": []},
    "index_url": {"type": "str", "default": "", "no_log": True},
    "index_plain_http": {"type": "bool", "default": False},
    "root": {"type": "path", "default": "/opt/gaudi3-scale"},
    "user": {"type": "str", "default": "gaudi3-scale"},
    "timeout": {"type": "int", "default": 120},
}


def run(module: AnsibleModule) -> dict[str, Any]:
    """Judge, then install what is missing."""
    try:
        installer = Installer(module)
        result = installer.preinstalled() if module.params["state"] == "preinstalled" else installer.present()
    except (Refusal, Unreachable) as error:
        module.fail_json(msg=str(error))
    return result
