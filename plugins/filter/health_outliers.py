# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Compare nodes with their fleet on the controller, which knows all of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ansible_collections.gaudi3.scale.plugins.module_utils._health.fleet import apart

DOCUMENTATION = r"""
name: health_outliers
short_description: Name the nodes whose figures stand apart from their fleet's
version_added: 0.1.0
author:
  - gaudi3.scale contributors (@gaudi3)
description:
  - A node is an outlier when a figure is below the median by more than six times the scaled median absolute deviation
    and by more than 5 %. With fewer than eight nodes nothing is said.
options:
  _input:
    description:
      - The figures of each node, by its name, as RV(gaudi3.scale.gaudi_health_info#module:figures) has them.
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Name the slow nodes
  ansible.builtin.debug:
    msg: "{{ figures | gaudi3.scale.health_outliers }}"
  vars:
    figures:
      gaudi-1: {all_reduce: 258.2}
      gaudi-2: {all_reduce: 180.4}
"""

RETURN = r"""
_value:
  description: The verdicts on each node that stands apart, of the shape that M(gaudi3.scale.gaudi_health_info) has.
  type: dict
  sample: {gaudi-2: [{check: fleet:all_reduce, component: node, action: isolate}]}
"""


def health_outliers(figures: Mapping[str, Mapping[str, float]]) -> dict[str, list[dict[str, Any]]]:
    """Verdicts by node, of the nodes that have one."""
    return {node: [finding.as_dict() for finding in findings] for node, findings in apart(figures).items()}


class FilterModule:
    """Filters of this file."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """By the name that a template uses."""
        return {"health_outliers": health_outliers}
