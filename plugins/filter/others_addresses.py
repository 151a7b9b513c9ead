# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Say which names and addresses are those of other hosts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible.errors import AnsibleFilterError

from ansible_collections.gaudi3.scale.plugins.module_utils._host.address import names_of
from ansible_collections.gaudi3.scale.plugins.plugin_utils.filters import filter_module

DOCUMENTATION = r"""
name: others_addresses
short_description: Say which names and addresses are those of other hosts
version_added: 0.1.0
author:
  - gaudi3.scale contributors (@gaudi3)
description:
  - For the certificate of one host, which is for no address of another.
options:
  _input:
    description: Names of hosts.
    type: raw
    required: true
"""

EXAMPLES = r"""
- name: Show it
  ansible.builtin.debug:
    msg: "{{ given | gaudi3.scale.others_addresses }}"
"""

RETURN = r"""
_value:
  description: Names and addresses by host.
  type: raw
  sample: {gaudi-2: [gaudi-2, 10.0.0.2]}
"""


def others_addresses(hosts: Sequence[str], hostvars: Mapping[str, Mapping[str, Any]], own: str) -> dict[str, list[str]]:
    """See DOCUMENTATION."""
    if any(not isinstance(host, str) for host in hosts):
        raise AnsibleFilterError("others_addresses takes names of hosts.")
    return {host: names_of(host, hostvars[host]) for host in hosts if host != own and host in hostvars}


FilterModule = filter_module(others_addresses=others_addresses)
