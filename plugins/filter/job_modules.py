# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Choose the cards of a job on the controller, which knows all of its nodes."""

from __future__ import annotations

from ansible_collections.gaudi3.scale.plugins.module_utils._jobs.card_choice import job_modules
from ansible_collections.gaudi3.scale.plugins.plugin_utils.filters import filter_module

DOCUMENTATION = r"""
name: job_modules
short_description: Choose the modules of a training job's cards, or say why its nodes cannot run it together
version_added: 0.1.0
author:
  - gaudi3.scale contributors (@gaudi3)
description:
  - Every node of a job runs the same number of processes, on cards with the same module ids, which are chosen among
    those that work on all nodes. Cards that no process has open go first.
  - A node whose answer cannot be read counts for nothing here. P(gaudi3.scale.job_node_problems#filter) names it.
options:
  _input:
    description:
      - What each node of the job brings, by its name, as RV(gaudi3.scale.gaudi_train_node_info#module:offer) has it.
    type: dict
    required: true
  allow_partial:
    description: Let numbers of cards pass that the vendor does not support.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Choose the cards of two nodes
  ansible.builtin.debug:
    msg: "{{ nodes | gaudi3.scale.job_modules }}"
  vars:
    nodes:
      gaudi-1: {processes: 4, cards: 8, modules: [0, 1, 2, 3, 4, 5, 6, 7], held: []}
      gaudi-2: {processes: 4, cards: 8, modules: [0, 1, 2, 3, 4, 5, 6, 7], held: []}
"""

RETURN = r"""
_value:
  description:
    - C(modules), the module ids for the processes of each node in their order (none where any will do or where they
      are not known yet), and C(problem), one sentence or nothing.
  type: dict
  sample: {modules: [0, 1, 2, 3], problem: ""}
"""

FilterModule = filter_module(job_modules=job_modules)
