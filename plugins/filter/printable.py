# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Text of a node as one line that may be shown."""

from __future__ import annotations

from collections.abc import Callable

from ansible_collections.gaudi3.scale.plugins.module_utils import _printable

DOCUMENTATION = r"""
name: printable
short_description: Text of a node as one line that may be shown
version_added: 0.1.0
author:
  - gaudi3.scale contributors (@gaudi3)
description:
  - Writes what a terminal would act on as an escape, such as C(\\x1b), and cuts what is too long.
options:
  _input:
    description: What a node, a job or a file of one says. What is no text is written as one.
    type: raw
    required: true
  longest:
    description: The largest number of characters.
    type: int
    default: 1000
"""

EXAMPLES = r"""
- name: Show what a node says
  ansible.builtin.debug:
    msg: "{{ answer.reason | gaudi3.scale.printable }}"
"""

RETURN = r"""
_value:
  description: The text.
  type: str
  sample: ready
"""


def printable(value: object, longest: int = 1000) -> str:
    """See DOCUMENTATION."""
    return _printable.printable(value, longest)


class FilterModule:
    """What Ansible asks for."""

    def filters(self) -> dict[str, Callable[..., str]]:
        """The filters of this file."""
        return {"printable": printable}
