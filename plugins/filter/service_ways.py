# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Say how a person opens a page of a monitoring host."""

from __future__ import annotations

from collections.abc import Sequence

from ansible_collections.gaudi3.scale.plugins.filter.doctor_letter import login
from ansible_collections.gaudi3.scale.plugins.module_utils._monitoring.service_access import ways
from ansible_collections.gaudi3.scale.plugins.plugin_utils.filters import filter_module

DOCUMENTATION = r"""
name: service_ways
short_description: Say how a person opens a page of a monitoring host
version_added: 0.1.0
author:
  - gaudi3.scale contributors (@gaudi3)
description:
  - Returns lines with the address, the command of a tunnel for a machine that does not reach the address, and for
    Prometheus a call of the API.
options:
  _input:
    description: The address at which the service listens.
    type: str
    required: true
  port:
    description: The port.
    type: int
    required: true
  secrets:
    description: Where the password and the certificate are, in words.
    type: str
    required: true
  folder:
    description: The folder that has both as files. With an empty one the call of the API is omitted.
    type: str
    default: ""
  login:
    description: The address, user, port and key with which Ansible logs in to the host, as a list.
    type: list
    elements: raw
    default: []
  service:
    description: The service, by the user who logs in.
    type: str
    choices: [prometheus, watch]
    default: prometheus
"""

EXAMPLES = r"""
- name: Show how to open it
  ansible.builtin.debug:
    msg: "{{ '10.0.0.9' | gaudi3.scale.service_ways(9090, 'password in /srv', '/srv', ['mon', 'root']) }}"
"""

RETURN = r"""
_value:
  description: The lines.
  type: list
  elements: str
  sample: ["Prometheus: https://10.0.0.9:9090 (user prometheus, password in /srv)"]
"""


def service_ways(
    address: str,
    port: object,
    secrets: str,
    folder: str = "",
    given: Sequence[object] = (),
    service: str = "prometheus",
) -> Sequence[str]:
    """See DOCUMENTATION."""
    return ways(str(address), port, str(secrets), str(folder or ""), login(str(address), given), service)


FilterModule = filter_module(service_ways=service_ways)
