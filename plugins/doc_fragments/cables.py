# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

from __future__ import annotations


class ModuleDocFragment:
    """The table of cables; the argument spec is in module_utils/_fabric_lint/cabling.py."""

    DOCUMENTATION = r"""
options:
  cables:
    description:
      - How hosts are meant to be cabled to switches. What is plugged in otherwise is named, with what to do. Without
        cables, none is judged.
    type: list
    elements: dict
    default: []
    suboptions:
      host: {description: "Name of the host.", type: str, required: true}
      port: {description: "Its port.", type: str, required: true}
      switch: {description: "Name of the switch.", type: str, required: true}
      switch_port: {description: "The switch's port.", type: str, required: true}
"""
