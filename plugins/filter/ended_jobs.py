# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Say on the controller which jobs ended with the nodes that are given back."""

from __future__ import annotations

from collections.abc import Mapping

from ansible_collections.gaudi3.scale.plugins.module_utils._jobs import resumed
from ansible_collections.gaudi3.scale.plugins.plugin_utils.filters import filter_module

DOCUMENTATION = r"""
name: ended_jobs
short_description: Say which jobs ended with nodes that are given back
version_added: 0.1.0
author:
  - gaudi3.scale contributors (@gaudi3)
description:
  - Takes RV(gaudi3.scale.gaudi_fence#module:ended) of each of these nodes, of which any may be odd, and returns
    O(gaudi3.scale.gaudi_fence#module:resume) for the other nodes.
options:
  _input:
    description: The names of jobs by the node that gave them, of any form.
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Show the jobs
  ansible.builtin.debug:
    msg: "{{ {'gaudi-1': ['demo'], 'gaudi-2': 5} | gaudi3.scale.ended_jobs }}"
"""

RETURN = r"""
_value:
  description: The nodes by the name of the job.
  type: dict
  sample: {demo: [gaudi-1]}
"""


def ended_jobs(answers: Mapping[str, object]) -> dict[str, list[str]]:
    """See DOCUMENTATION."""
    return resumed.ended_jobs(answers)


FilterModule = filter_module(ended_jobs=ended_jobs)
