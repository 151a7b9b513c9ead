# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Whether a package of Debian is installed, named as apt names it."""

from __future__ import annotations

import fnmatch
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule


ARGUMENT_SPEC: dict[str, dict[str, Any]] = {
    "package": {"type": "str", "required": True},
    "dpkg_query_executable": {"type": "str", "default": "dpkg-query"},
}
#: A name, and a version or a pattern of one behind an equals sign. What is more than that is not answered.
_PLAIN = re.compile(r"(?P<name>[a-z0-9][a-z0-9+.-]+)(?:=(?P<version>[^\s<>=]+))?")


def run(module: AnsibleModule) -> dict[str, Any]:
    """Installed, in the version that is asked for."""
    asked = _PLAIN.fullmatch(module.params["package"])
    dpkg = module.get_bin_path(module.params["dpkg_query_executable"])
    if not asked or not dpkg:
        return {"changed": False, "installed": None}
    command = [dpkg, "--show", "--showformat", "${db:Status-Status} ${Version}\n", asked["name"]]
    code, output, _errors = module.run_command(command)
    found = [line.split() for line in output.splitlines() if line.startswith("installed ")] if code == 0 else []
    wanted = asked["version"]
    installed = any(len(words) == 2 and (not wanted or fnmatch.fnmatch(words[1], wanted)) for words in found)
    return {"changed": False, "installed": installed}
