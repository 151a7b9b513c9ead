"""What is decided for a host, with the defaults of all roles and Ansible's own evaluation of them."""

from __future__ import annotations

from typing import Any

from ansible_collections.gaudi3.scale.plugins.plugin_utils.role_tasks import VARIABLES
from ansible_collections.gaudi3.scale.plugins.plugin_utils.role_values import RoleValues
from ansible_collections.gaudi3.scale.plugins.plugin_utils.roles import trusted

from ..playbooks.jinja import evaluate

SITE: dict[str, Any] = {
    "inventory_hostname": "gaudi-1",
    "groups": {"gaudi": ["gaudi-1"], "gaudi_head": ["gaudi-1"], "monitoring": []},
    "hostvars": {},
    "ansible_play_hosts": ["gaudi-1"],
    "ansible_play_hosts_all": ["gaudi-1"],
    "ansible_play_batch": ["gaudi-1"],
    "ansible_run_tags": ["all"],
    "ansible_skip_tags": [],
    "ansible_check_mode": False,
    "ansible_facts": {},
    "omit": "what is left out",
}


def values(**given: Any) -> RoleValues:
    """The variables of a host of which these are given."""
    return RoleValues({**VARIABLES, **SITE, **trusted(given)}, lambda value, names: evaluate(value, **names))


def decided(name: str, **given: Any) -> Any:
    """What is decided under a name, on a host with these variables."""
    return values(**given).decide(name)
