# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Write what a node answered as text that a terminal does not act on."""

from __future__ import annotations

from typing import Any

from ansible_collections.gaudi3.scale.plugins.module_utils._printable import LONGEST, printable
from ansible_collections.gaudi3.scale.plugins.plugin_utils.filters import filter_module

DOCUMENTATION = r"""
name: printable
short_description: Write foreign text as one line that a terminal only shows
version_added: 0.1.0
author:
  - gaudi3.scale contributors (@gaudi3)
description:
  - Takes what a node, a job or a bucket answered, and returns one line. Control characters, line ends and characters
    that change the direction of writing are written as escapes, such as C(\\x1b).
  - Of a list it returns the list with each entry written in this way. Anything else that is no text is written as text.
positional: longest
options:
  _input:
    description: The text, or a list of texts.
    type: raw
    required: true
  longest:
    description: How many characters a line has at most. What is longer ends with C(...).
    type: int
    default: 1000
"""

EXAMPLES = r"""
- name: Show what the node said
  ansible.builtin.debug:
    msg: "{{ answer.msg | default('no answer') | gaudi3.scale.printable }}"
"""

RETURN = r"""
_value:
  description: The line, or the list of lines.
  type: raw
  sample: "the driver says \\x1b[2J of accel3"
"""


def shown(value: Any, longest: int = LONGEST) -> Any:
    """See DOCUMENTATION."""
    if isinstance(value, (list, tuple)):
        return [printable(each, longest) for each in value]
    return printable(value, longest)


FilterModule = filter_module(printable=shown)
