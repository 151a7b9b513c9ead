# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Tell once what modules remarked on several nodes."""

from __future__ import annotations

from collections.abc import Mapping

from ansible_collections.gaudi3.scale.plugins.module_utils._host.answers import remarks
from ansible_collections.gaudi3.scale.plugins.module_utils._printable import few
from ansible_collections.gaudi3.scale.plugins.plugin_utils.filters import filter_module

DOCUMENTATION = r"""
name: node_remarks
short_description: Tell once what modules remarked on several nodes
version_added: 0.1.0
author:
  - gaudi3.scale contributors (@gaudi3)
description:
  - Each remark is one line, behind the nodes that it is said of. What is no text is left out.
options:
  _input:
    description: The list of remarks of each node by its name, of any form.
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Show the remarks
  ansible.builtin.debug:
    msg: "{{ {'gaudi-1': ['it has no governor']} | gaudi3.scale.node_remarks }}"
"""

RETURN = r"""
_value:
  description: The lines.
  type: list
  elements: str
  sample: ["gaudi-1: it has no governor"]
"""


#: So many nodes are named.
SHOWN = 4


def node_remarks(answers: Mapping[str, object]) -> list[str]:
    """See DOCUMENTATION."""
    return [f"{few(nodes, SHOWN)}: {remark}" for remark, nodes in remarks(answers).items()]


FilterModule = filter_module(node_remarks=node_remarks)
