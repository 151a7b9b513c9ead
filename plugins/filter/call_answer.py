# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Read on the controller how a command on a node ended, whatever the node sent."""

from __future__ import annotations

from typing import Any

from ansible_collections.gaudi3.scale.plugins.module_utils._health.pair_jobs import answer_of
from ansible_collections.gaudi3.scale.plugins.plugin_utils.filters import filter_module

DOCUMENTATION = r"""
name: call_answer
short_description: Read how a command on a node ended, whatever the node sent
version_added: 0.1.0
author:
  - gaudi3.scale contributors (@gaudi3)
description:
  - Takes the registered result of a command, and returns its exit code and what it printed, as
    M(gaudi3.scale.gaudi_pair_search) takes them. An answer of another form is none.
options:
  _input:
    description: The registered result, of any form.
    type: raw
    required: true
"""

EXAMPLES = r"""
- name: Show how the call ended
  ansible.builtin.debug:
    msg: "{{ (answer | gaudi3.scale.call_answer).rc }}"
"""

RETURN = r"""
_value:
  description: C(rc), null where there is none, C(stdout) and C(stderr).
  type: dict
  sample: {rc: 0, stdout: passed, stderr: ""}
"""


def call_answer(answer: Any) -> dict[str, Any]:
    """See DOCUMENTATION."""
    found = answer_of(answer)
    return {"rc": found.code, "stdout": found.output, "stderr": found.error}


FilterModule = filter_module(call_answer=call_answer)
