# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Write arguments of a service as the line ARGS of its environment file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ansible.errors import AnsibleFilterError

from ansible_collections.gaudi3.scale.plugins.plugin_utils.filters import filter_module

DOCUMENTATION = r"""
name: arguments_line
short_description: Write arguments of a service as the line ARGS of its environment file
version_added: 0.1.0
author:
  - gaudi3.scale contributors (@gaudi3)
description:
  - An argument with white space, a quotation mark or a control character is refused.
options:
  _input:
    description: The arguments, a list.
    type: raw
    required: true
"""

EXAMPLES = r"""
- name: Show it
  ansible.builtin.debug:
    msg: "{{ given | gaudi3.scale.arguments_line }}"
"""

RETURN = r"""
_value:
  description: The line.
  type: raw
  sample: ARGS='--port=9100'
"""


_QUOTES = "'" + '"'


def arguments_line(arguments: Sequence[Any]) -> str:
    """See DOCUMENTATION."""
    words = [str(word) for word in arguments]
    for word in words:
        if not word or any(each.isspace() or each in _QUOTES or not each.isprintable() for each in word):
            raise AnsibleFilterError(
                f"The argument {word!r} has white space, a quotation mark or a control character: leave that out."
            )
    # systemd takes the text between the apostrophes as it is, and one level of backslashes away when it splits it.
    return "ARGS='" + " ".join(word.replace("\\", "\\\\") for word in words) + "'"


FilterModule = filter_module(arguments_line=arguments_line)
