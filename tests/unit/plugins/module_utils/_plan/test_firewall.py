"""Whose addresses open a host's ports, and with which settings nothing is opened.

The rest of the table on a real kernel: tests/unit/roles/test_firewall.py.
"""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._plan import firewall
from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal

USUAL: dict[str, Any] = {
    "inventory_hostname": "gaudi-1",
    "groups": {"gaudi": ["gaudi-1", "gaudi-2"], "monitoring": ["mon"]},
    "hostvars": {
        "gaudi-1": {"ansible_host": "10.0.0.1"},
        "gaudi-2": {"ansible_host": "bmc-2", "gaudi_cluster_address": "10.1.0.2"},
        "mon": {},
    },
}


def values(**given: Any) -> Any:
    return {**USUAL, **given}.get


def test_hosts_are_at_their_cluster_addresses() -> None:
    assert firewall.addresses(values()) == {"gaudi": ["10.0.0.1", "10.1.0.2"], "monitoring": ["mon"]}
    assert firewall.addresses(values(groups={})) == {"gaudi": [], "monitoring": []}


def test_hosts_that_are_being_removed_are_not_let_in() -> None:
    assert firewall.addresses(values(gaudi_remove="gaudi-1,mon")) == {"gaudi": ["10.1.0.2"], "monitoring": []}


def test_what_was_looked_up_once_for_all_hosts_is_taken() -> None:
    known = {"gaudi": ["fd00::1"], "monitoring": []}
    hosts = {**USUAL["hostvars"], "localhost": {"_firewall_known": known}}
    assert firewall.known_addresses(values(hostvars=hosts)) == known
    assert firewall.known_addresses(values()) == firewall.addresses(values())


def test_with_settings_by_which_a_node_sets_variables_nothing_is_opened() -> None:
    with pytest.raises(Refusal, match="inject"):
        firewall.closed(values(gaudi_settings_problem="inject"))
