# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Say on the controller why a node cannot run a training job as it is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Optional

from ansible import constants

from ansible_collections.gaudi3.scale.plugins.module_utils._jobs import problems
from ansible_collections.gaudi3.scale.plugins.module_utils._settings import settings_problem
from ansible_collections.gaudi3.scale.plugins.plugin_utils.filters import filter_module

DOCUMENTATION = r"""
name: job_problems
short_description: Say why a node cannot run a training job as it is asked for
version_added: 0.1.0
author:
  - gaudi3.scale contributors (@gaudi3)
description:
  - Judges names, processes, command, image, phases that are left out, and secrets where every user of the node or the
    job would read them. What the job's user may open on the node is
    judged by P(gaudi3.scale.job_node_problems#filter).
options:
  _input:
    description:
      - What is asked for - C(name), C(nodes), C(head), C(cards), C(processes), C(config), C(command), C(chdir),
        C(script), C(dataset), C(digest), C(image_problem), C(environment), C(node_config), C(run_tags) and
        C(skip_tags).
    type: dict
    required: true
  host:
    description: The node's name in the inventory.
    type: str
    required: true
  node:
    description: What M(gaudi3.scale.gaudi_train_node_info) returned of it, if it was asked.
    type: dict
    default: {}
"""

EXAMPLES = r"""
- name: Refuse more processes than cards
  ansible.builtin.assert:
    that: job | gaudi3.scale.job_problems(inventory_hostname) | length == 0
  vars:
    job: {name: demo, nodes: [gaudi-1], head: gaudi-1, cards: 8, processes: 8}
"""

RETURN = r"""
_value:
  description: Each problem in one sentence.
  type: list
  elements: str
  sample: []
"""


def job_problems(asked: Mapping[str, Any], host: str, node: Optional[Mapping[str, Any]] = None) -> list[str]:
    """See DOCUMENTATION."""
    # The controller builds what the variables of a node say.
    unsafe = settings_problem(constants.config.get_config_value)
    return ([unsafe] if unsafe else []) + problems.job_problems(problems.Asked.of(asked), host, node or {})


FilterModule = filter_module(job_problems=job_problems)
