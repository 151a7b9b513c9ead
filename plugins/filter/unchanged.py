# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Say on the controller whether what a module found in check mode is as it is to be."""

from __future__ import annotations

from ansible_collections.gaudi3.scale.plugins.module_utils._host.service_state import is_unchanged
from ansible_collections.gaudi3.scale.plugins.plugin_utils.filters import filter_module

DOCUMENTATION = r"""
name: unchanged
short_description: Say whether what a module found in check mode is as it is to be
version_added: 0.1.0
author:
  - gaudi3.scale contributors (@gaudi3)
description:
  - Takes the answer of a module of this collection that returns C(done), such as M(gaudi3.scale.gaudi_service).
  - A module that failed, was skipped or was never asked has found nothing, so what it asks about is not known to be
    unchanged.
options:
  _input:
    description: What the task registered.
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Ask what would be done
  gaudi3.scale.gaudi_service:
    name: prometheus.service
  check_mode: true
  register: seen

- name: Leave the host out where it is nothing
  ansible.builtin.meta: end_host
  when: seen | gaudi3.scale.unchanged
"""

RETURN = r"""
_value:
  description: Whether there is nothing to do, and no file would change.
  type: bool
  sample: true
"""


def unchanged(answer: object) -> bool:
    """See DOCUMENTATION."""
    return is_unchanged(answer)


FilterModule = filter_module(unchanged=unchanged)
