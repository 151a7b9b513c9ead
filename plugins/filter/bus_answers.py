# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Say on the controller which nodes have no Gaudi card, whatever they answered."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.gaudi3.scale.plugins.module_utils._cards import answer
from ansible_collections.gaudi3.scale.plugins.plugin_utils.filters import filter_module

DOCUMENTATION = r"""
name: bus_answers
short_description: Say which nodes have no Gaudi card, whatever they answered
version_added: 0.1.0
author:
  - gaudi3.scale contributors (@gaudi3)
description:
  - A node whose answer is of another form than M(gaudi3.scale.gaudi_pci_facts) describes is named as odd.
options:
  _input:
    description: RV(gaudi3.scale.gaudi_pci_facts#module:ansible_facts.gaudi_pci) of each node by its name, of any form.
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Show the nodes without a card
  ansible.builtin.debug:
    msg: "{{ (facts | gaudi3.scale.bus_answers).bare }}"
  vars:
    facts:
      gaudi-1: {card_count: 0, generation: null, iommu_problem: null, cards: []}
"""

RETURN = r"""
_value:
  description: The names of nodes, as C(bare) and as C(odd), and in C(why) what is odd of the first of these.
  type: dict
  sample: {bare: [gaudi-1], odd: [], why: ""}
"""


def bus_answers(facts: Mapping[str, object]) -> dict[str, Any]:
    """See DOCUMENTATION."""
    return answer.bus_answers(facts)


FilterModule = filter_module(bus_answers=bus_answers)
