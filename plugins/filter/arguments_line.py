# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Write arguments of a service as the line ARGS of its environment file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ansible.errors import AnsibleFilterError

from ansible_collections.gaudi3.scale.plugins.module_utils._monitoring import texts
from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal
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


def arguments_line(arguments: Sequence[Any]) -> str:
    """See DOCUMENTATION."""
    try:
        return texts.arguments_line(arguments)
    except Refusal as refusal:
        raise AnsibleFilterError(str(refusal)) from refusal


FilterModule = filter_module(arguments_line=arguments_line)
