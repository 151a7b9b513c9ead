# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Sum up on the controller what the nodes of a site answered, whatever that is."""

from __future__ import annotations

from collections.abc import Mapping

from ansible_collections.gaudi3.scale.plugins.module_utils._jobs.summary import Answers, Site, summary
from ansible_collections.gaudi3.scale.plugins.plugin_utils.filters import filter_module

DOCUMENTATION = r"""
name: site_summary
short_description: Sum up the cards and the jobs of all nodes, whatever they answered
version_added: 0.1.0
author:
  - gaudi3.scale contributors (@gaudi3)
description:
  - Returns the cards and the software of the nodes, where nodes with the same share a line, and the lines of the
    training jobs. A node whose answer cannot be read has a line that says so, and the lines of the others stay as they
    are.
options:
  _input:
    description: RV(gaudi3.scale.hl_smi_facts#module:ansible_facts.gaudi) of each node by its name, of any form.
    type: dict
    required: true
  jobs:
    description: RV(gaudi3.scale.gaudi_train_info#module:jobs) of each node by its name, of any form.
    type: dict
    required: true
  wanted:
    description: The list C(trainer_jobs) of the inventory.
    type: list
    elements: dict
    required: true
  head:
    description: The name of the head node.
    type: str
    required: true
  asked:
    description: Whether the nodes were asked for their jobs.
    type: bool
    required: true
"""

EXAMPLES = r"""
- name: Show the cards of two nodes
  ansible.builtin.debug:
    msg: "{{ (cards | gaudi3.scale.site_summary({}, [], 'gaudi-1', false)).lines }}"
  vars:
    cards:
      gaudi-1: {card_count: 8, driver_version: 1.23.0, hl_smi_version: 1.23.0}
      gaudi-2: odd
"""

RETURN = r"""
_value:
  description: C(lines) of the nodes and their jobs, and C(ends) with the software and the device of each job.
  type: dict
  sample: {lines: ["gaudi-1: 8 cards, driver 1.23.0, firmware unknown, hl-smi 1.23.0"], ends: []}
"""


def site_summary(
    cards: Mapping[str, object], jobs: Mapping[str, object], wanted: object, head: object, asked: bool
) -> dict[str, list[str]]:
    """See DOCUMENTATION."""
    return summary(Answers.of(cards, jobs, bool(asked)), Site.of(wanted, head))


FilterModule = filter_module(site_summary=site_summary)
