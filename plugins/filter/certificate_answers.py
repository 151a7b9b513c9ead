# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Read what nodes and management controllers said for certificates: values of known kinds, or why there are none."""

from __future__ import annotations

from typing import Any

from ansible.errors import AnsibleFilterError

from ansible_collections.gaudi3.scale.plugins.module_utils._certificate.answers import answers
from ansible_collections.gaudi3.scale.plugins.plugin_utils.filters import filter_module

DOCUMENTATION = r"""
name: certificate_answers
short_description: Read what nodes and their controllers said for certificates
version_added: 0.1.0
author:
  - gaudi3.scale contributors (@gaudi3)
description:
  - Takes the registered results of M(gaudi3.scale.gaudi_certificate) by the names of nodes, and returns the evidence of
    each with texts of one printable line and finite numbers, whatever a node sent.
options:
  _input:
    description: The registered result of each node, by its name.
    type: dict
    required: true
  controllers:
    description: The registered results of M(gaudi3.scale.gaudi_bmc_facts), by the same names.
    type: dict
    default: {}
seealso:
  - plugin: gaudi3.scale.gaudi_certificate
    plugin_type: module
"""

EXAMPLES = r"""
- name: Show of which board a node is
  ansible.builtin.debug:
    msg: "{{ ({inventory_hostname: said} | gaudi3.scale.certificate_answers)[inventory_hostname].evidence.board }}"
"""

RETURN = r"""
_value:
  description: By the names of nodes, C(evidence), and C(why) there is none.
  type: dict
  sample: {gaudi-1: {evidence: {}, why: it gave no answer}}
"""


def certificate_answers(nodes: Any, controllers: Any = None) -> dict[str, dict[str, Any]]:
    """See DOCUMENTATION."""
    if not isinstance(nodes, dict):
        raise AnsibleFilterError("certificate_answers takes results of gaudi_certificate by the names of nodes.")
    asked = controllers if isinstance(controllers, dict) else {}
    return answers({str(name): answer for name, answer in nodes.items()}, asked)


FilterModule = filter_module(certificate_answers=certificate_answers)
