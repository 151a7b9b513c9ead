# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""What a node answers itself: whether a port is open, how a page is served, and what a name means there."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule


PORT: dict[str, dict[str, Any]] = {
    "host": {"type": "str", "required": True},
    "port": {"type": "int", "required": True},
    "timeout": {"type": "int", "default": 1},
}
PAGE: dict[str, dict[str, Any]] = {
    "url": {"type": "str", "required": True},
    "timeout": {"type": "int", "default": 15},
}
NAME: dict[str, dict[str, Any]] = {"name": {"type": "str", "required": True}}


def port(module: AnsibleModule) -> dict[str, Any]:
    """Whether a connection can be opened, in the words of ansible.builtin.wait_for."""
    host, number = module.params["host"], module.params["port"]
    try:
        socket.create_connection((host, number), module.params["timeout"]).close()
    except OSError as error:
        module.fail_json(msg=f"Nothing answers on {host} port {number}: {error}.")
    return {"changed": False, "state": "started", "port": number}


def page(module: AnsibleModule) -> dict[str, Any]:
    """The status with which a page is served; -1 without an answer, as ansible.builtin.uri has it."""
    from urllib.error import HTTPError, URLError

    from ansible.module_utils.urls import open_url

    url = module.params["url"]
    try:
        with open_url(url, timeout=module.params["timeout"]) as answer:
            status = int(answer.status)
    except HTTPError as error:
        status = error.code
    except (URLError, OSError, ValueError) as error:
        module.fail_json(msg=f"{url} does not answer: {getattr(error, 'reason', error)}.", status=-1)
    return {"changed": False, "status": status, "url": url}


def addresses(module: AnsibleModule) -> dict[str, Any]:
    """What ``getent ahosts`` prints of a name on this host; nothing where it knows none."""
    getent = module.get_bin_path("getent")
    printed = module.run_command([getent, "ahosts", module.params["name"]])[1] if getent else ""
    return {"changed": False, "printed": printed}
