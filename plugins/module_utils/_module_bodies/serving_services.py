# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""The services of a node that serves: systemctl, and their removal."""

from __future__ import annotations

import os
import re
import shutil
from typing import TYPE_CHECKING, Any

from .._host import service_state
from .._serving import recipes, releases, unit

if TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule


def record(options: dict[str, Any]) -> str:
    """Where it is put down with what each replica was last started."""
    return os.path.join(options["root"], "started.json")


class Systemd:
    """systemctl, and the state of a unit."""

    def __init__(self, module: AnsibleModule) -> None:
        self._module = module
        self._program = module.params["systemctl_executable"]
        self.done: list[str] = []

    def look(self, name: str) -> service_state.Service:
        """The unit as it is."""
        properties = "--property=" + ",".join(service_state.PROPERTIES)
        _code, output, _errors = self._module.run_command([self._program, "show", name, properties], check_rc=True)
        return service_state.parse_show(output, 0.0)

    def do(self, verb: str, name: str = "") -> bool:
        """Whether systemctl did it; in check mode it is only put down."""
        self.done.append(f"{verb} {name}".strip())
        if self._module.check_mode:
            return True
        code, _output, _errors = self._module.run_command([self._program, verb, *([name] if name else [])])
        return bool(code == 0)


def replicas_there(options: dict[str, Any]) -> list[int]:
    """Numbers of the replicas of which anything is left, by their units, settings and folders."""
    found = set()
    for top, pattern in (
        (options["unit_folder"], r"gaudi3-serving-(\d+)\.service"),
        (options["folder"], r"replica-(\d+)\.json"),
        (options["root"], r"replica-(\d+)"),
    ):
        names = os.listdir(top) if os.path.isdir(top) else []
        found |= {int(match[1]) for name in names if (match := re.fullmatch(pattern, name))}
    return sorted(found)


def remove_replica(module: AnsibleModule, systemd: Systemd, number: int) -> list[str]:
    name = unit.unit_of(number)
    for verb in service_state.removal(systemd.look(name)):
        systemd.do(verb, name)
    return _delete(
        module,
        os.path.join(module.params["unit_folder"], name),
        os.path.join(module.params["folder"], f"replica-{number}.json"),
        os.path.join(module.params["root"], f"replica-{number}"),
        recipes.top_of(module.params["root"], number),
    )


def _delete(module: AnsibleModule, *paths: str) -> list[str]:
    found = [path for path in paths if os.path.lexists(path)]
    for path in found if not module.check_mode else ():
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        else:
            os.unlink(path)
    return found


def remove(module: AnsibleModule) -> dict[str, Any]:
    """Drain and end everything, and remove what was written; releases stay unless they are to go."""
    options = module.params
    systemd = Systemd(module)
    removed: list[str] = []
    for number in replicas_there(options):
        removed += remove_replica(module, systemd, number)
    if os.path.exists(os.path.join(options["unit_folder"], unit.BALANCER)):
        for verb in service_state.removal(systemd.look(unit.BALANCER)):
            systemd.do(verb, unit.BALANCER)
    removed += _delete(
        module,
        os.path.join(options["unit_folder"], unit.BALANCER),
        options["folder"],
        options["program_folder"],
        record(options),
        os.path.join(options["root"], releases.BEFORE),
        *([options["root"]] if options["remove_models"] else []),
    )
    if removed:
        systemd.do("daemon-reload")
    return {"changed": bool(removed or systemd.done), "done": systemd.done, "removed": removed}
