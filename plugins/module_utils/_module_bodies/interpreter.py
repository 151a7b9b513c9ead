# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Which version a host's Python is, be it another one than that which runs Ansible's modules."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule


ARGUMENT_SPEC: dict[str, dict[str, Any]] = {"executable": {"type": "path", "required": True}}
_VERSION = "import sys; print('%d.%d' % sys.version_info[:2])"


def run(module: AnsibleModule) -> dict[str, Any]:
    """The version as 3.11; empty where there is no Python that runs."""
    executable = module.get_bin_path(module.params["executable"])
    code, output, _errors = module.run_command([executable, "-I", "-c", _VERSION]) if executable else (1, "", "")
    found = re.fullmatch(r"[0-9]+\.[0-9]+", output.strip())
    return {"changed": False, "version": found[0] if found and code == 0 else ""}
