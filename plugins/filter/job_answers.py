# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Read on the controller what a node answers of its training jobs."""

from __future__ import annotations

from typing import Any

from ansible_collections.gaudi3.scale.plugins.module_utils._jobs import answers
from ansible_collections.gaudi3.scale.plugins.plugin_utils.filters import filter_module

DOCUMENTATION = r"""
name: job_answers
short_description: Read what a node answers of its training jobs
version_added: 0.1.0
author:
  - gaudi3.scale contributors (@gaudi3)
description:
  - A node, or the user of a job, may write anything into an answer. What comes out has values of the kinds that
    M(gaudi3.scale.gaudi_train_info) describes and texts that may be shown. An odd value is null, and what is no job is
    left out.
options:
  _input:
    description: RV(gaudi3.scale.gaudi_train_info#module:jobs), as a node answered it.
    type: list
    elements: dict
    required: true
"""

EXAMPLES = r"""
- name: Show the states of a node's jobs
  ansible.builtin.debug:
    msg: "{{ found.jobs | gaudi3.scale.job_answers | map(attribute='state') | list }}"
"""

RETURN = r"""
_value:
  description: The jobs.
  type: list
  elements: dict
  sample: [{name: demo, state: finished}]
"""


def job_answers(jobs: object) -> list[dict[str, Any]]:
    """See DOCUMENTATION."""
    return answers.job_answers(jobs)


FilterModule = filter_module(job_answers=job_answers)
