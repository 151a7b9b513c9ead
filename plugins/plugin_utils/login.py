# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""How Ansible logs in to the host of a task, by the variables, keywords and settings that it goes by itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible import constants
from ansible.plugins.loader import connection_loader
from ansible.template import Templar

from ansible_collections.gaudi3.scale.plugins.module_utils._printable import printable
from ansible_collections.gaudi3.scale.plugins.module_utils._progress.unreachable import Login, leading

#: Connections that start ssh.
SSH = ("ssh", "smart", "ansible.builtin.ssh", "ansible.legacy.ssh")
_NAMES = ("host", "remote_user", "port", "private_key_file", "ssh_args", "ssh_common_args", "ssh_extra_args")


def login_of(host: Any, task: Any, fields: Mapping[str, Any], manager: Any, play: Any) -> Login:
    """The login of a task on a host; one without an address where that is another way, or cannot be known.

    ``fields`` are the task's, with the values of their templates.
    """
    try:
        return _login(host, task, fields, manager, play)
    except Exception:
        # Of any kind: a template may raise what it likes. It may need the item of a loop, which is gone.
        return Login("")


def _login(host: Any, task: Any, fields: Mapping[str, Any], manager: Any, play: Any) -> Login:
    place = fields.get("delegate_to")
    found = host if not place or place == host.get_name() else manager._inventory.get_host(place)
    values = manager.get_vars(play=play, host=found, task=task) if found is not None else {}
    values = {**values, "inventory_hostname": place or host.get_name()}
    templar = Templar(loader=manager._loader, variables=values)

    def of(name: str) -> Any:
        value = templar.template(values[name])
        if "{{" in str(value):
            raise ValueError(name)
        return value

    transport = of("ansible_connection") if values.get("ansible_connection") else fields.get("connection", "ssh")
    if transport not in SSH:
        return Login("", ssh=False)
    if "{{" in str(place):
        return Login("")
    connection_loader.get("ssh", class_only=True)
    options_of = constants.config.get_configuration_definitions(plugin_type="connection", name="ssh")
    wanted = [each["name"] for name in _NAMES for each in options_of[name].get("vars") or ()]
    given = {name: of(name) for name in wanted if name in values}
    host_name, user, port, key, *options = (
        constants.config.get_config_value(
            name, plugin_type="connection", plugin_name="ssh", keys=fields, variables=given
        )
        for name in _NAMES
    )
    return Login(
        printable(host_name), printable(user or ""), int(port or 0), printable(key or ""),
        leading(" ".join(str(each) for each in options if each)),
    )  # fmt: skip
