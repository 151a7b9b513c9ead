# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""The files and folders that a job's configuration names."""

from __future__ import annotations

from collections.abc import Mapping

from ansible_collections.gaudi3.scale.plugins.module_utils._jobs.config_paths import config_paths
from ansible_collections.gaudi3.scale.plugins.plugin_utils.filters import filter_module

DOCUMENTATION = r"""
name: job_config_paths
short_description: List the files and folders that a job's configuration names
version_added: 0.1.0
author:
  - gaudi3.scale contributors (@gaudi3)
description:
  - Lists the absolute paths of the keys whose files or folders the job reads, such as C(model.name) and C(data.source).
    The module M(gaudi3.scale.gaudi_train_node_info) says which of them the job's user cannot read on a node.
options:
  _input:
    description: Configuration of the bundled trainer.
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: See whether the job's user can read what the job needs
  gaudi3.scale.gaudi_train_node_info:
    readable: "{{ trainer_config | gaudi3.scale.job_config_paths }}"
"""

RETURN = r"""
_value:
  description: The paths, each once.
  type: list
  elements: str
  sample: [/models/llama]
"""


def job_config_paths(config: object) -> list[str]:
    """See DOCUMENTATION."""
    return list(dict.fromkeys(config_paths(config).values())) if isinstance(config, Mapping) else []


FilterModule = filter_module(job_config_paths=job_config_paths)
