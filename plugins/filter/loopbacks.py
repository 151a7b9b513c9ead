# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Say on the controller which hosts know their own name as a loopback address."""

from __future__ import annotations

from collections.abc import Mapping

from ansible_collections.gaudi3.scale.plugins.module_utils._host import answers as node_answers
from ansible_collections.gaudi3.scale.plugins.plugin_utils.filters import filter_module

DOCUMENTATION = r"""
name: loopbacks
short_description: Say which hosts know their own name as a loopback address
version_added: 0.1.0
author:
  - gaudi3.scale contributors (@gaudi3)
description:
  - Takes what C(getent ahosts) printed on each host. What is no text says nothing.
options:
  _input:
    description: What was printed on each host by its name, of any form.
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Show the hosts
  ansible.builtin.debug:
    msg: "{{ {'gaudi-1': '127.0.1.1 STREAM gaudi-1'} | gaudi3.scale.loopbacks }}"
"""

RETURN = r"""
_value:
  description: The names of the hosts.
  type: list
  elements: str
  sample: [gaudi-1]
"""


def loopbacks(answers: Mapping[str, object]) -> list[str]:
    """See DOCUMENTATION."""
    return node_answers.loopbacks(answers)


FilterModule = filter_module(loopbacks=loopbacks)
