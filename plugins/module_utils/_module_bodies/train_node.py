# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""What gaudi_train_node_info tells: what a node offers a training job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._cards import file_access
from .._jobs import needs as job_needs
from .._jobs import shared_folders

if TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule


ARGUMENT_SPEC: dict[str, dict[str, Any]] = {
    "address": {"type": "str", "default": ""},
    "peers": {"type": "list", "elements": "str", "default": []},
    "user": {"type": "str", "default": "gaudi3-scale"},
    "groups": {"type": "list", "elements": "str"},
    "directory": {"type": "path"},
    "script": {"type": "path"},
    "paths": {"type": "list", "elements": "str", "default": []},
    "readable": {"type": "list", "elements": "str", "default": []},
    "processes": {"type": "int", "default": 0},
    "cards": {"type": "int"},
    "uid": {"type": "int"},
}


def run(module: AnsibleModule) -> dict[str, Any]:
    """Look at the node; nothing is changed."""
    params = module.params
    interface = None
    if params["address"] or params["peers"]:
        ip = module.get_bin_path("ip", required=True)
        interface = job_needs.find_interface(module.run_command, ip, params["address"], params["peers"])
    network_source = None
    if params["directory"]:
        network_source = shared_folders.network_source(params["directory"], shared_folders.mounts())
    files = file_access.device_files()
    access = file_access.access(files, params["user"], params["groups"])
    modules = job_needs.card_modules()
    uid = shared_folders.uid_of(params["user"])
    operational = None if modules is None else modules.operational
    held = [] if modules is None else modules.held
    return {
        "changed": False,
        "interface": interface,
        "groups": access.groups,
        "unknown_groups": access.unknown,
        "files": len(files),
        "uid": uid,
        "network_source": network_source,
        "closed": [file.as_dict() for file in access.closed],
        "script": file_access.script_access(params["script"], params["user"]) if params["script"] else None,
        "missing": file_access.missing(params["paths"]),
        "unreadable": file_access.unreadable(params["readable"], params["user"]),
        "modules": operational,
        "driver": job_needs.driver_version(),
        "held_modules": held,
        "offer": {
            "processes": params["processes"],
            "cards": params["cards"],
            "modules": operational,
            "held": held,
            "uid": uid if params["uid"] is None else params["uid"],
            "shares": network_source,
        },
    }
