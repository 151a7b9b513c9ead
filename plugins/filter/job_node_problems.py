# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Say on the controller what a node lacks for a training job."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Optional

from ansible_collections.gaudi3.scale.plugins.module_utils._jobs import problems
from ansible_collections.gaudi3.scale.plugins.plugin_utils.filters import filter_module

DOCUMENTATION = r"""
name: job_node_problems
short_description: Say what a node lacks for a training job
version_added: 0.1.0
author:
  - gaudi3.scale contributors (@gaudi3)
description:
  - Judges what the job's user may open, the cards, the folder that nodes share and the interface to the other nodes.
options:
  _input:
    description: What M(gaudi3.scale.gaudi_train_node_info) returned of the node.
    type: dict
    required: true
  asked:
    description:
      - What is asked for - C(nodes), C(cards), C(config), C(script), C(user), C(jobs_dir), C(address), C(environment),
        C(modules_problem) and C(asker).
    type: dict
    required: true
  host:
    description: The node's name in the inventory.
    type: str
    required: true
  theirs:
    description: RV(gaudi3.scale.gaudi_train_node_info#module:offer) of the node C(asker), with which all compare.
    type: dict
    default: {}
"""

EXAMPLES = r"""
- name: Refuse a node that the job cannot use
  ansible.builtin.assert:
    that: node | gaudi3.scale.job_node_problems(job, inventory_hostname) | length == 0
  vars:
    job: {nodes: [gaudi-1], cards: 8}
"""

RETURN = r"""
_value:
  description: Each problem in one sentence.
  type: list
  elements: str
  sample: []
"""


def job_node_problems(
    node: Mapping[str, Any], asked: Mapping[str, Any], host: str, theirs: Optional[Mapping[str, Any]] = None
) -> list[str]:
    """See DOCUMENTATION."""
    return problems.node_problems(problems.Asked.of(asked), host, node, theirs or {})


FilterModule = filter_module(job_node_problems=job_node_problems)
