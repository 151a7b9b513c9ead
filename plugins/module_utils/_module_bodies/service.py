# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""What gaudi_service does: a unit that runs with what lies on disk."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

from .._files import ensure_file
from .._host import service_state
from .._refusal import Refusal
from . import claim, listener, written

if TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule


PENDING = {"none": [], "reload": ["reload"], "restart": ["restart"]}
ARGUMENT_SPEC: dict[str, dict[str, Any]] = {
    "name": {"type": "str", "required": True},
    "state": {"type": "str", "choices": ["running", "enabled", "written", "absent"], "default": "running"},
    "enabled": {"type": "bool", "default": True},
    "files": {"type": "list", "elements": "dict", "default": [], "options": written.FILE},
    "folders": {"type": "list", "elements": "path", "default": []},
    "restart_files": {"type": "list", "elements": "path", "default": []},
    "reload_files": {"type": "list", "elements": "path", "default": []},
    "claim": {"type": "dict", "options": claim.OPTION},
    "listens": {"type": "dict", "options": listener.LISTENS},
    "pending": {"type": "str", "choices": list(PENDING), "default": "none"},
    "unit_folder": {"type": "path", "default": "/etc/systemd/system"},
    "systemctl_executable": {"type": "path", "default": "systemctl"},
}


def run(module: AnsibleModule) -> dict[str, Any]:
    """Write the files, look at the unit and bring it to its state."""
    listens = module.params["listens"] if module.params["state"] == "running" else None
    try:
        if listens:
            listener.refuse_foreign(module, module.params["name"], listens)
        _claim(module, "claimed")
        result = _run(module)
        result["recorded"] = _claim(module, "recorded") or not module.check_mode
        if listens and not module.check_mode:
            listener.wait_for_own(module, module.params["name"], listens, lambda: _active(module))
    except Refusal as refusal:
        module.fail_json(msg=str(refusal))
    return result


def _claim(module: AnsibleModule, state: str) -> bool:
    """Refuse files that somebody else wrote, or record what has been written; whether that was so already."""
    options = module.params
    if not options["claim"] or options["state"] not in ("running", "written"):
        return True
    more = {"state": state, "unit": options["name"], "listens": None, "keep": {}}
    answer = claim.act(module, {**options["claim"], **more})
    return answer.get("recorded") is not False


def _active(module: AnsibleModule) -> tuple[bool, bool]:
    """Whether the unit is active, and whether it has failed for good."""
    service = _look(module)
    return service.active, service.failed


def _run(module: AnsibleModule) -> dict[str, Any]:
    files = written.write(module, module.params["files"], module.params["folders"])
    now = time.time()
    if module.params["state"] == "written":
        return {"changed": bool(files.diffs), "done": [], "diff": files.diffs}
    try:
        service = _look(module)
    except ValueError as error:
        module.fail_json(msg=str(error))
    if module.params["state"] == "absent":
        return _remove(module, service)
    if module.params["state"] == "enabled":
        return _enable(module, service, files.diffs)
    return _keep_running(module, service, files, now)


def _keep_running(
    module: AnsibleModule, service: service_state.Service, files: written.Written, now: float
) -> dict[str, Any]:
    """Start, restart or reload the unit where it does not run with its files."""
    options = module.params
    if not service.exists and not module.check_mode:
        module.fail_json(msg=f"systemd knows no unit {options['name']}: install what brings it, or mend its name.")
    own = {verb: [file["path"] for file in options["files"] if file[verb]] for verb in ("restart", "reload")}
    verbs = service_state.actions(
        service,
        options["enabled"],
        service_state.youngest([*options["restart_files"], *own["restart"]], now),
        service_state.youngest([*options["reload_files"], *own["reload"]], now),
    )
    if module.check_mode:
        pending = "reload" if files.reload and options["pending"] == "none" else options["pending"]
        verbs = verbs or PENDING["restart" if files.restart else pending]
    else:
        _do(module, verbs)
    return {"changed": bool(verbs or files.diffs), "done": verbs, "diff": files.diffs}


def _look(module: AnsibleModule) -> service_state.Service:
    """The unit as it is now."""
    properties = "--property=" + ",".join(service_state.PROPERTIES)
    command = [module.params["systemctl_executable"], "show", module.params["name"], properties]
    _code, output, _errors = module.run_command(command, check_rc=True)
    return service_state.parse_show(output, time.time() - time.monotonic())


def _do(module: AnsibleModule, verbs: list[str]) -> None:
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


def _remove(module: AnsibleModule, service: service_state.Service) -> dict[str, Any]:
    """Stop the unit, have no boot start it, and remove its file."""
    verbs = service_state.removal(service)
    if not module.check_mode:
        _do(module, verbs)
    diff = ensure_file(module, os.path.join(module.params["unit_folder"], module.params["name"]), None)
    last = ["daemon-reload"] if diff is not None else []
    if not module.check_mode:
        _do(module, last)
    done = verbs + last
    return {"changed": bool(done), "done": done, "diff": diff or {}}


def _enable(module: AnsibleModule, service: service_state.Service, diffs: list[dict[str, Any]]) -> dict[str, Any]:
    """Have each boot start the unit."""
    verbs = ["daemon-reload"] if service.stale_unit else []
    verbs += [] if service.enabled else ["enable"]
    if not module.check_mode:
        _do(module, verbs)
    return {"changed": bool(verbs or diffs), "done": verbs, "diff": diffs}
