#!/usr/bin/python
# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""A service that runs with what lies on disk."""

from __future__ import annotations

DOCUMENTATION = r"""
module: gaudi_service
short_description: Run a service with the files that lie on disk
version_added: 0.1.0
author:
  - gaudi3.scale contributors (@gaudi3)
description:
  - Starts a unit of systemd, and restarts or reloads it where a file that it reads is younger than its process.
  - A restart that an earlier run did not come to, or that a package's upgrade left out, is made up for. What this run
    changed before needs no handler.
options:
  name:
    description: The unit.
    type: str
    required: true
  state:
    description:
      - V(running) is up to date with its files. V(enabled) is started at each boot, and runs now or not, as it is.
        V(absent) is stopped, is not started at a boot, and has no file in O(unit_folder); a unit that a package brought
        stays, stopped.
    type: str
    choices: [running, enabled, absent]
    default: running
  enabled:
    description: Start the unit at each boot.
    type: bool
    default: true
  files:
    description:
      - Files that are written before the service starts, such as its unit, its arguments and its program. They are
        owned by root, and missing folders are made.
    type: list
    elements: dict
    default: []
    suboptions:
      path: {description: "Where the file is.", type: path, required: true}
      content: {description: "All that is in it.", type: str, required: true}
      mode: {description: "Its mode, as octal digits.", type: str, default: "0644"}
      restart: {description: "Whether the service starts anew for another content.", type: bool, default: true}
  restart_files:
    description:
      - Files that the service reads only when it starts, such as its program, its unit and its arguments. Those that
        are missing count for nothing.
    type: list
    elements: path
    default: []
  reload_files:
    description: Files that the service reads again when it is reloaded.
    type: list
    elements: path
    default: []
  pending:
    description:
      - What the tasks before will have changed, for check mode alone, in which they change no file. V(restart) and
        V(reload) predict that.
    type: str
    choices: [none, reload, restart]
    default: none
  unit_folder:
    description: Where the unit's file is removed with O(state=absent).
    type: path
    default: /etc/systemd/system
  systemctl_executable:
    description: The C(systemctl) to use.
    type: path
    default: systemctl
attributes:
  check_mode:
    description: Predicts what would be done. A unit that does not exist yet is predicted to be started.
    support: full
  diff_mode:
    description: Shows the unit that is removed, and O(files) that are written.
    support: full
  platform:
    description: Linux with systemd.
    platforms: linux
    support: full
"""

EXAMPLES = r"""
- name: Run Prometheus with what was written
  gaudi3.scale.gaudi_service:
    name: prometheus.service
    restart_files: [/usr/bin/prometheus, /etc/default/prometheus]
    reload_files: [/etc/prometheus/prometheus.yml]
    pending: "{{ 'reload' if configuration is changed else 'none' }}"

- name: Write a unit and run it
  gaudi3.scale.gaudi_service:
    name: mine.service
    files:
      - path: /etc/systemd/system/mine.service
        content: "{{ lookup('ansible.builtin.template', 'mine.service.j2') }}"

- name: Remove a service of this collection
  gaudi3.scale.gaudi_service:
    name: gaudi-hpu-exporter.service
    state: absent
"""

RETURN = r"""
done:
  description: The verbs of systemctl that were needed, in their order.
  returned: success
  type: list
  elements: str
  sample: [daemon-reload, restart]
"""

import os
import time
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gaudi3.scale.plugins.module_utils._files import ensure_file
from ansible_collections.gaudi3.scale.plugins.module_utils._host import service_state

PENDING = {"none": [], "reload": ["reload"], "restart": ["restart"]}


def look(module: AnsibleModule) -> service_state.Service:
    """The unit as it is now."""
    properties = "--property=" + ",".join(service_state.PROPERTIES)
    command = [module.params["systemctl_executable"], "show", module.params["name"], properties]
    _code, output, _errors = module.run_command(command, check_rc=True)
    return service_state.parse_show(output, time.time() - time.monotonic())


def do(module: AnsibleModule, verbs: list[str]) -> None:
    """Run systemctl with each verb; the first that fails ends the module."""
    name = module.params["name"]
    for verb in verbs:
        argv = [module.params["systemctl_executable"], verb, *([] if verb == "daemon-reload" else [name])]
        code, output, errors = module.run_command(argv)
        if code != 0:
            module.fail_json(
                msg=f"'systemctl {verb} {name}' failed ({(errors or output).strip()}): look into its log "
                f"with 'journalctl -u {name}', and run again.",
                done=verbs[: verbs.index(verb)],
            )


def remove(module: AnsibleModule, service: service_state.Service) -> None:
    """Stop the unit, have no boot start it, and remove its file."""
    verbs = service_state.removal(service)
    if not module.check_mode:
        do(module, verbs)
    diff = ensure_file(module, os.path.join(module.params["unit_folder"], module.params["name"]), None)
    last = ["daemon-reload"] if diff is not None else []
    if not module.check_mode:
        do(module, last)
    done = verbs + last
    module.exit_json(changed=bool(done), done=done, diff=diff or {})


def write(module: AnsibleModule) -> tuple[list[dict[str, Any]], bool]:
    """Write the files that are given; their differences, and whether the service has to start anew for one."""
    diffs, restart = [], False
    for file in module.params["files"]:
        diff = ensure_file(module, file["path"], file["content"], int(file["mode"], 8), own=True)
        if diff is not None:
            diffs.append(diff)
            restart = restart or file["restart"]
    return diffs, restart


def enable(module: AnsibleModule, service: service_state.Service, diffs: list[dict[str, Any]]) -> None:
    """Have each boot start the unit."""
    verbs = ["daemon-reload"] if service.stale_unit else []
    verbs += [] if service.enabled else ["enable"]
    if not module.check_mode:
        do(module, verbs)
    module.exit_json(changed=bool(verbs or diffs), done=verbs, diff=diffs)


def main() -> None:
    """Run the module."""
    file = {
        "path": {"type": "path", "required": True},
        "content": {"type": "str", "required": True},
        "mode": {"type": "str", "default": "0644"},
        "restart": {"type": "bool", "default": True},
    }
    module = AnsibleModule(
        argument_spec={
            "name": {"type": "str", "required": True},
            "state": {"type": "str", "choices": ["running", "enabled", "absent"], "default": "running"},
            "enabled": {"type": "bool", "default": True},
            "files": {"type": "list", "elements": "dict", "default": [], "options": file},
            "restart_files": {"type": "list", "elements": "path", "default": []},
            "reload_files": {"type": "list", "elements": "path", "default": []},
            "pending": {"type": "str", "choices": list(PENDING), "default": "none"},
            "unit_folder": {"type": "path", "default": "/etc/systemd/system"},
            "systemctl_executable": {"type": "path", "default": "systemctl"},
        },
        supports_check_mode=True,
    )
    options = module.params
    diffs, restart = write(module)
    now = time.time()
    try:
        service = look(module)
    except ValueError as error:
        module.fail_json(msg=str(error))
    if options["state"] == "absent":
        remove(module, service)
    if options["state"] == "enabled":
        enable(module, service, diffs)
    if not service.exists and not module.check_mode:
        module.fail_json(msg=f"systemd knows no unit {options['name']}: install what brings it, or mend its name.")
    verbs = service_state.actions(
        service,
        options["enabled"],
        service_state.youngest(
            options["restart_files"] + [file["path"] for file in options["files"] if file["restart"]], now
        ),
        service_state.youngest(options["reload_files"], now),
    )
    if module.check_mode:
        verbs = verbs or PENDING["restart" if restart else options["pending"]]
    else:
        do(module, verbs)
    module.exit_json(changed=bool(verbs or diffs), done=verbs, diff=diffs)


if __name__ == "__main__":
    main()
