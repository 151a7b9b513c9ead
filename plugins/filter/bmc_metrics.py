# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Make one page of metrics of what management controllers said."""

from __future__ import annotations

from typing import Any

from ansible.errors import AnsibleFilterError

from ansible_collections.gaudi3.scale.plugins.module_utils._bmc.answers import facts_of
from ansible_collections.gaudi3.scale.plugins.module_utils._bmc.page import page
from ansible_collections.gaudi3.scale.plugins.plugin_utils.filters import filter_module

DOCUMENTATION = r"""
name: bmc_metrics
short_description: Make one page of metrics of what management controllers said
version_added: 0.1.0
author:
  - gaudi3.scale contributors (@gaudi3)
description:
  - Takes the registered results of M(gaudi3.scale.gaudi_bmc_facts) by the names of machines, and returns their facts in
    Prometheus' text format, as node_exporter's collector textfile serves it. All series have the label C(node).
  - A machine without such facts has no series. C(docs/reference/metrics.yml) of the collection lists the metrics.
options:
  _input:
    description: The registered result of each machine, by its name.
    type: dict
    required: true
seealso:
  - plugin: gaudi3.scale.gaudi_bmc_facts
    plugin_type: module
"""

EXAMPLES = r"""
- name: Write the metrics of one machine
  ansible.builtin.copy:
    content: "{{ {inventory_hostname: bmc} | gaudi3.scale.bmc_metrics }}"
    dest: /var/lib/prometheus/node-exporter/gaudi-bmc.prom
    mode: "0644"
  delegate_to: monitor-1
"""

RETURN = r"""
_value:
  description: The page, empty where nothing was read.
  type: str
"""


def bmc_metrics(machines: Any) -> str:
    """See DOCUMENTATION."""
    if not isinstance(machines, dict):
        raise AnsibleFilterError("bmc_metrics takes results of gaudi_bmc_facts by the names of machines.")
    return page({str(name): facts_of(answer) for name, answer in machines.items()})


FilterModule = filter_module(bmc_metrics=bmc_metrics)
