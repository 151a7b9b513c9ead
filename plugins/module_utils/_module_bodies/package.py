# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Whether a package of Debian is installed, named as apt names it, and in which version."""

from __future__ import annotations

import fnmatch
import re
from typing import TYPE_CHECKING, Any

from .._driver.kernel_packages import read_candidates

if TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule


ARGUMENT_SPEC: dict[str, dict[str, Any]] = {
    "package": {"type": "str", "required": True},
    "candidate": {"type": "bool", "default": False},
    "dpkg_query_executable": {"type": "str", "default": "dpkg-query"},
    "apt_cache_executable": {"type": "str", "default": "apt-cache"},
}
#: A name, and a version or a pattern of one behind an equals sign. What is more than that is not answered.
_PLAIN = re.compile(r"(?P<name>[a-z0-9][a-z0-9+.-]+)(?:=(?P<version>[^\s<>=]+))?")


def run(module: AnsibleModule) -> dict[str, Any]:
    """Installed, in the version that is asked for; with ``candidate`` the version that apt would install, too."""
    asked = _PLAIN.fullmatch(module.params["package"])
    dpkg = module.get_bin_path(module.params["dpkg_query_executable"])
    if not asked or not dpkg:
        return {"changed": False, "installed": None, "version": "", "candidate": ""}
    command = [dpkg, "--show", "--showformat", "${db:Status-Status} ${Version}\n", asked["name"]]
    code, output, _errors = module.run_command(command)
    found = [line.split() for line in output.splitlines() if line.startswith("installed ")] if code == 0 else []
    wanted = asked["version"]
    installed = any(len(words) == 2 and (not wanted or fnmatch.fnmatch(words[1], wanted)) for words in found)
    version = found[0][1] if found and len(found[0]) == 2 else ""
    candidate = _candidate(module, asked["name"]) if module.params["candidate"] else ""
    return {"changed": False, "installed": installed, "version": version, "candidate": candidate}


def _candidate(module: AnsibleModule, name: str) -> str:
    """What apt would install of a package; empty where its lists do not have it."""
    apt = module.get_bin_path(module.params["apt_cache_executable"])
    code, output, _errors = module.run_command([apt, "policy", name]) if apt else (1, "", "")
    return read_candidates(output).get(name, "") if code == 0 else ""
