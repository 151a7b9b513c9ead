# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Whether the settings of Ansible let a node set variables."""

from __future__ import annotations

DOCUMENTATION = r"""
name: settings_problem
short_description: Say why Ansible's settings are not safe for nodes that are not trusted
version_added: 0.1.0
author:
  - gaudi3.scale contributors (@gaudi3)
description:
  - Returns one sentence if C(inject_facts_as_vars) is true, which is Ansible's default, and an empty text if it is
    false.
  - With that setting, every answer of a node can set variables of the play. Some of them decide about other nodes, and
    about files of the controller. The playbooks of this collection refuse to run with it.
options:
  refuse:
    description: Fail with the sentence instead of returning it.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Refuse settings with which a node sets variables
  ansible.builtin.assert:
    that: lookup('gaudi3.scale.settings_problem') == ''
    fail_msg: "{{ lookup('gaudi3.scale.settings_problem') }}"
"""

RETURN = r"""
_raw:
  description: The sentence, or an empty text.
  type: list
  elements: str
"""

from typing import Any, Optional

from ansible import constants
from ansible.errors import AnsibleLookupError
from ansible.plugins.lookup import LookupBase

from ansible_collections.gaudi3.scale.plugins.module_utils._settings import settings_problem


class LookupModule(LookupBase):
    """What Ansible itself runs with; no variable can change the answer."""

    def run(self, terms: list[Any], variables: Optional[dict[str, Any]] = None, **kwargs: Any) -> list[str]:
        """Entry point of the lookup."""
        self.set_options(var_options=variables, direct=kwargs)
        problem = settings_problem(constants.config.get_config_value)
        if problem and self.get_option("refuse"):
            raise AnsibleLookupError(problem)
        return [problem]
