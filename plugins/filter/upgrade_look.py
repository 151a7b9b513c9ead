# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Read on the controller what a node says of itself before a step of its upgrade."""

from __future__ import annotations

from typing import Any

from ansible_collections.gaudi3.scale.plugins.module_utils._upgrade import standing
from ansible_collections.gaudi3.scale.plugins.plugin_utils.filters import filter_module

DOCUMENTATION = r"""
name: upgrade_look
short_description: Read what a node says of itself during its upgrade, whatever it sent
version_added: 0.1.0
author:
  - gaudi3.scale contributors (@gaudi3)
description:
  - Takes RV(gaudi3.scale.gaudi_release_info#module:versions), C(cards) and C(held), and
    RV(gaudi3.scale.gaudi_fence#module:fence) and C(jobs) of one node, of which any may be odd, and returns them as
    values of known kinds for C(looks) of gaudi_upgrade.
  - What cannot be read is no error of the play. It says so in C(unread), and nothing else is known of the node.
options:
  _input:
    description: What the node answered, by these names, of any form.
    type: raw
    required: true
"""

EXAMPLES = r"""
- name: Show what could be read
  ansible.builtin.debug:
    msg: "{{ {'versions': {}, 'cards': 8, 'held': [], 'fence': none, 'jobs': []} | gaudi3.scale.upgrade_look }}"
"""

RETURN = r"""
_value:
  description: The same names with values of known kinds, or C(unread) alone, or nothing of a node without an answer.
  type: dict
  sample: {versions: {driver: 1.23.0-2eae87a}, cards: 8, held: [], fence: null, jobs: []}
"""


def upgrade_look(answer: Any) -> dict[str, Any]:
    """See DOCUMENTATION."""
    return standing.typed(answer)


FilterModule = filter_module(upgrade_look=upgrade_look)
