"""How Ansible logs in to the host of a task, on inventories and tasks as Ansible itself reads them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ansible import context
from ansible.inventory.manager import InventoryManager
from ansible.parsing.dataloader import DataLoader
from ansible.vars.hostvars import HostVars
from ansible.vars.manager import VariableManager

from ansible_collections.gaudi3.scale.plugins.module_utils._progress.unreachable import Login
from ansible_collections.gaudi3.scale.plugins.plugin_utils.login import login_of

HOSTS = """
all:
  vars: {network: 10.0.0, ports: {n-1: 2201}}
  hosts:
    n-1:
      ansible_host: "{{ network }}.1"
      ansible_port: "{{ ports[inventory_hostname] }}"
      ansible_user: root
      ansible_ssh_private_key_file: /keys/one
    n-2: {ansible_ssh_common_args: '-o ProxyJump=bastion -o ControlMaster=no', ansible_ssh_extra_args: -F '/my config'}
    n-3: {ansible_connection: local}
    n-4: {ansible_host: '{{ nowhere }}'}
    n-5: {ansible_ssh_host: 10.0.0.5, ansible_ssh_port: '22', ansible_ssh_user: old}
    n-6: {ansible_ssh_args: -J a -C -oServerAliveInterval=5, ansible_host: '{{ hostvars["n-5"].ansible_ssh_host }}'}
"""


@pytest.fixture
def login(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Login]:
    path = tmp_path / "hosts.yml"
    path.write_text(HOSTS)
    loader = DataLoader()
    inventory = InventoryManager(loader=loader, sources=[str(path)])
    manager = VariableManager(loader=loader, inventory=inventory)
    HostVars(inventory, manager, loader)

    def of(host: str, command: dict[str, Any] | None = None, **fields: Any) -> Login:
        monkeypatch.setattr(context, "CLIARGS", command or {})
        return login_of(inventory.get_host(host), None, {"connection": "ssh", **fields}, manager, None)

    return of


@pytest.mark.parametrize(
    ("host", "more", "expected"),
    [
        ("n-1", {}, Login("10.0.0.1", "root", 2201, "/keys/one")),
        # A variable goes before the play's keyword, and that before an option of the command.
        ("n-1", {"remote_user": "play", "port": 5}, Login("10.0.0.1", "root", 2201, "/keys/one")),
        ("n-2", {"remote_user": "play", "port": 5, "command": {"remote_user": "me", "user": "me"}},
         Login("n-2", "play", 5, "", ("-o", "ProxyJump=bastion", "-F", "/my config"))),
        ("n-5", {}, Login("10.0.0.5", "old", 22)),
        ("n-6", {}, Login("10.0.0.5", options=("-J", "a"))),
        # The host that a task is delegated to, by its own variables.
        ("n-1", {"delegate_to": "n-5"}, Login("10.0.0.5", "old", 22)),
        ("n-3", {"delegate_to": "elsewhere", "remote_user": "play"}, Login("elsewhere", "play")),
        ("n-1", {"delegate_to": "n-1"}, Login("10.0.0.1", "root", 2201, "/keys/one")),
        # Another way than ssh, or one that cannot be known.
        ("n-3", {}, Login("", ssh=False)), ("n-4", {}, Login("")), ("n-5", {"connection": "ansible.builtin.ssh"},
         Login("10.0.0.5", "old", 22)), ("n-5", {"connection": "community.docker.docker"}, Login("", ssh=False)),
        ("n-1", {"delegate_to": "{{ item }}"}, Login("")), ("n-1", {"delegate_to": "n-4"}, Login("")),
    ],
)  # fmt: skip
def test_a_login_is_that_of_ansible(
    login: Callable[..., Login], host: str, more: dict[str, Any], expected: Login
) -> None:
    assert login(host, **more) == expected


def test_nothing_is_known_without_a_play() -> None:
    assert login_of(SimpleNamespace(get_name=lambda: "a"), None, {}, None, None) == Login("")
