# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Take texts out of what several nodes answered, to compare them."""

from __future__ import annotations

from collections.abc import Iterable

from ansible_collections.gaudi3.scale.plugins.module_utils._host import answers as node_answers
from ansible_collections.gaudi3.scale.plugins.plugin_utils.filters import filter_module

DOCUMENTATION = r"""
name: exact_texts
short_description: Take texts out of what several nodes answered, whatever that is
version_added: 0.1.0
author:
  - gaudi3.scale contributors (@gaudi3)
description:
  - Each combination of values is returned once. An answer in which one of the values is no text, is empty or could not
    be shown as it is counts for nothing.
options:
  _input:
    description: The answers, of any form.
    type: list
    elements: raw
    required: true
  names:
    description: The names of the values.
    type: list
    elements: str
    required: true
"""

EXAMPLES = r"""
- name: Show the images that nodes have
  ansible.builtin.debug:
    msg: "{{ answers | gaudi3.scale.exact_texts('id') | flatten }}"
  vars:
    answers: [{id: "sha256:1"}, {id: "sha256:1"}, {id: 5}]
"""

RETURN = r"""
_value:
  description: The values, in the order of O(names).
  type: list
  elements: list
  sample: [["sha256:1"]]
"""


def exact_texts(answers: Iterable[object], *names: str) -> list[list[str]]:
    """See DOCUMENTATION."""
    return node_answers.exact_texts(answers, *names)


FilterModule = filter_module(exact_texts=exact_texts)
