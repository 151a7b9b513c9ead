# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Say on the controller which ports of a host are closed, and for whom they stay open."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from ansible import constants
from ansible.errors import AnsibleFilterError

from ansible_collections.gaudi3.scale.plugins.module_utils._host import firewall
from ansible_collections.gaudi3.scale.plugins.module_utils._settings import settings_problem
from ansible_collections.gaudi3.scale.plugins.plugin_utils.filters import filter_module

DOCUMENTATION = r"""
name: firewall_groups
short_description: Say which ports of a host are closed, and for whom they stay open
version_added: 0.1.0
author:
  - gaudi3.scale contributors (@gaudi3)
description:
  - Makes O(gaudi3.scale.gaudi_firewall#module:groups) of variables of the role firewall.
  - Fails if C(inject_facts_as_vars) is true, with which a node sets the addresses that other nodes let in.
options:
  _input:
    description:
      - The variables without C(firewall_) - C(metrics_ports), C(admin_ports), C(rendezvous_port), C(collective_ports),
        C(monitor_addresses), C(admin_networks), C(cluster_addresses) and C(extra_cluster_addresses).
      - C(trains) and C(collects), whether the host is a Gaudi node and a monitoring host.
      - C(jobs), those of C(trainer_jobs), which may have ports of their own.
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Close the ports of a Gaudi node
  gaudi3.scale.gaudi_firewall:
    groups: "{{ asked | gaudi3.scale.firewall_groups }}"
  vars:
    asked:
      trains: true
      collects: false
      jobs: []
      metrics_ports: [9100]
      admin_ports: [9090]
      rendezvous_port: 29400
      collective_ports: 32768-60999
      monitor_addresses: [10.0.0.5]
      admin_networks: []
      cluster_addresses: [10.0.0.1, 10.0.0.2]
      extra_cluster_addresses: []
"""

RETURN = r"""
_value:
  description: The groups, each with C(name), C(ports) and C(sources).
  type: list
  elements: dict
  sample:
    - {name: metrics, ports: ["9100"], sources: [10.0.0.5]}
"""


def firewall_groups(asked: Mapping[str, Any]) -> list[dict[str, Any]]:
    """See DOCUMENTATION."""
    # The addresses are in variables of other hosts.
    problem = settings_problem(constants.config.get_config_value)
    if problem:
        raise AnsibleFilterError(problem)
    return [asdict(group) for group in firewall.groups_of(asked)]


FilterModule = filter_module(firewall_groups=firewall_groups)
