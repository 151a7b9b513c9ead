# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Read a node's answer on the controller: values of known kinds, or why it cannot be read."""

from __future__ import annotations

from typing import Any

from ansible_collections.gaudi3.scale.plugins.module_utils._health.boards import find
from ansible_collections.gaudi3.scale.plugins.module_utils._health.report import read
from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal
from ansible_collections.gaudi3.scale.plugins.plugin_utils.filters import filter_module

DOCUMENTATION = r"""
name: health_report
short_description: Read the answer of gaudi_health_info, whatever a node sent
version_added: 0.1.0
author:
  - gaudi3.scale contributors (@gaudi3)
description:
  - Takes the registered result of M(gaudi3.scale.gaudi_health_info) of one node, and returns what a playbook may decide
    by. Texts are one printable line each, and numbers are finite.
  - What it returns can be given to M(gaudi3.scale.gaudi_healing) and M(gaudi3.scale.gaudi_passport), in the place of an
    answer. An answer itself may hold what cannot be given to any module.
  - An answer that cannot be read is no error of the play. It says so in C(unread), and nothing else is known of the
    node.
options:
  _input:
    description: The registered result, of any form.
    type: raw
    required: true
seealso:
  - plugin: gaudi3.scale.printable
    plugin_type: filter
"""

EXAMPLES = r"""
- name: Show what could be read
  ansible.builtin.debug:
    msg: "{{ (health | gaudi3.scale.health_report).said }}"
"""

RETURN = r"""
_value:
  description:
    - C(unread) says why the answer cannot be read, and is empty where it can. C(fit) says whether collectives with
      other nodes may run, and C(unfit) why not. C(cards) is how many cards were read, and C(generation) of which
      generation - V(gaudi2), V(gaudi3), or an empty text where the board is not known.
    - C(said) has the verdicts and the errors in words. The rest has the names of the answer.
  type: dict
  sample: {unread: "", fit: true, unfit: "", cards: 8, generation: gaudi3, said: []}
"""


def health_report(answer: Any) -> dict[str, Any]:
    """See DOCUMENTATION."""
    try:
        found = read(answer)
    except Refusal as error:
        why = str(error).rstrip(".")
        return {"unread": why, "fit": False, "unfit": why, "cards": 0, "generation": "", "said": []}
    board = find(found.versions.get("board"))
    said = [each.message for each in (*found.verdicts, *found.errors)]
    first = [each.message for each in found.verdicts if each.drains] + [each.message for each in found.errors]
    unfit = first[0] if first else "no card was read" if not found.cards else "a process holds a card"
    return {
        **found.as_answer(),
        "unread": "",
        "fit": found.is_fit_for_search,
        "unfit": "" if found.is_fit_for_search else unfit,
        "cards": found.cards,
        "generation": board.generation if board else "",
        "said": said,
    }


FilterModule = filter_module(health_report=health_report)
