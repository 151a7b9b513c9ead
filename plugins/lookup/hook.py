# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""The file of a site's own steps before or after a phase."""

from __future__ import annotations

DOCUMENTATION = r"""
name: hook
short_description: Give the file of a site's own steps before or after a phase
version_added: 0.1.0
author:
  - gaudi3.scale contributors (@gaudi3)
description:
  - Looks in the folder C(gaudi_hooks_dir) of the controller, relative to where C(ansible-playbook) runs.
options:
  _terms:
    description: Names such as V(before_drivers).
    type: list
    elements: str
    required: true
  folder:
    description: The folder.
    type: str
    default: ""
    vars:
      - name: gaudi_hooks_dir
"""

EXAMPLES = r"""
- name: Do the site's own steps
  ansible.builtin.include_tasks: "{{ lookup('gaudi3.scale.hook', 'before_drivers') }}"
  when: lookup('gaudi3.scale.hook', 'before_drivers') != ''
"""

RETURN = r"""
_raw:
  description: The path of each file; an empty text where there is none.
  type: list
  elements: str
"""

from typing import Any, Optional

from ansible.errors import AnsibleError
from ansible.plugins.lookup import LookupBase

from ansible_collections.gaudi3.scale.plugins.module_utils._variables.hooks import hook_file


class LookupModule(LookupBase):
    """Looks on the controller."""

    def run(self, terms: list[Any], variables: Optional[dict[str, Any]] = None, **kwargs: Any) -> list[str]:
        """Entry point of the lookup."""
        self.set_options(var_options=variables, direct=kwargs)
        folder = kwargs.get("folder") or self._evaluated((variables or {}).get("gaudi_hooks_dir"))
        return [hook_file(str(folder or ""), str(term)) for term in terms]

    def _evaluated(self, given: Any) -> Any:
        """A variable that is an option of a lookup comes as it was written, its template not evaluated."""
        try:
            return self._templar.template(given)
        except AnsibleError:
            return ""  # Refused by the first look, before a host is asked.
