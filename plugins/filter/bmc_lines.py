# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Say in a line for each machine what its management controller said."""

from __future__ import annotations

from typing import Any

from ansible.errors import AnsibleFilterError

from ansible_collections.gaudi3.scale.plugins.module_utils._bmc.answers import lines
from ansible_collections.gaudi3.scale.plugins.plugin_utils.filters import filter_module

DOCUMENTATION = r"""
name: bmc_lines
short_description: Say in a line for each machine what its management controller said
version_added: 0.1.0
author:
  - gaudi3.scale contributors (@gaudi3)
description:
  - Takes the registered results of M(gaudi3.scale.gaudi_bmc_facts) by the names of machines, and returns a printable
    line for each of them, in the order of their names.
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
- name: Show what a controller said
  ansible.builtin.debug:
    msg: "{{ {inventory_hostname: bmc} | gaudi3.scale.bmc_lines }}"
"""

RETURN = r"""
_value:
  description: The lines.
  type: list
  elements: str
  sample: ["gaudi-1: 8 cards, nothing to say"]
"""


def bmc_lines(machines: Any) -> list[str]:
    """See DOCUMENTATION."""
    if not isinstance(machines, dict):
        raise AnsibleFilterError("bmc_lines takes results of gaudi_bmc_facts by the names of machines.")
    return lines({str(name): answer for name, answer in machines.items()})


FilterModule = filter_module(bmc_lines=bmc_lines)
