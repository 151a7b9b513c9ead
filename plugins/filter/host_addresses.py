# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Take one address for each host of the inventory, for rules that let the hosts in."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ansible.errors import AnsibleFilterError

from ansible_collections.gaudi3.scale.plugins.module_utils._host.firewall import host_addresses as taken
from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal
from ansible_collections.gaudi3.scale.plugins.plugin_utils.filters import filter_module

DOCUMENTATION = r"""
name: host_addresses
short_description: Take one address for each host of the inventory
version_added: 0.1.0
author:
  - gaudi3.scale contributors (@gaudi3)
description:
  - Takes C(gaudi_cluster_address), then C(ansible_host), then the name of each host, and refuses everything that is not
    one IP address or one host name. A network, such as C(0.0.0.0/0), is refused.
options:
  _input:
    description: For each host a list of its name, C(gaudi_cluster_address) and C(ansible_host), which may be empty.
    type: list
    elements: list
    required: true
"""

EXAMPLES = r"""
- name: Say where the hosts are
  ansible.builtin.debug:
    msg: "{{ [['gaudi-1', '10.0.0.11', ''], ['gaudi-2', '', '']] | gaudi3.scale.host_addresses }}"
"""

RETURN = r"""
_value:
  description: The addresses and names, each once, in the hosts' order.
  type: list
  elements: str
  sample: [10.0.0.11, gaudi-2]
"""


def host_addresses(hosts: Iterable[Sequence[Any]]) -> list[str]:
    """See DOCUMENTATION."""
    try:
        return taken(hosts)
    except Refusal as error:
        raise AnsibleFilterError(str(error)) from error


FilterModule = filter_module(host_addresses=host_addresses)
