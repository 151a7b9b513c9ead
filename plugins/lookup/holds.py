# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Whether a variable that a node's answer is part of holds: an answer that cannot be read makes it false."""

from __future__ import annotations

DOCUMENTATION = r"""
name: holds
short_description: Say whether a variable is true, also where a node's answer makes it an error
version_added: 0.1.0
author:
  - gaudi3.scale contributors (@gaudi3)
description:
  - Ansible evaluates the C(when) of a C(meta) task in the run itself. An error in it, such as an answer of one node
    that lacks a value, ends the run for all nodes and names none of them.
  - Evaluates the variable, and returns true where its value is true. Any other value, an error and a variable that is
    not defined are false. The next task that reads the answer then fails on its node alone.
options:
  _terms:
    description: Names of variables.
    type: list
    elements: str
    required: true
"""

EXAMPLES = r"""
- name: Leave out nodes on which nothing is to be done
  ansible.builtin.meta: end_host
  when: lookup('gaudi3.scale.holds', 'nothing_to_do')
  vars:
    nothing_to_do: "{{ answer.done | length == 0 }}"
"""

RETURN = r"""
_raw:
  description: Whether each of them holds.
  type: list
  elements: bool
"""

from typing import Any, Optional

from ansible.plugins.lookup import LookupBase


class LookupModule(LookupBase):
    """Evaluates variables as the task that asks has them."""

    def run(self, terms: list[Any], variables: Optional[dict[str, Any]] = None, **kwargs: Any) -> list[bool]:
        """Entry point of the lookup."""
        self.set_options(var_options=variables, direct=kwargs)
        return [self._holds(str(term), variables or {}) for term in terms]

    def _holds(self, name: str, variables: dict[str, Any]) -> bool:
        try:
            return self._templar.template(variables[name]) is True
        except Exception:
            # Of any kind, as the node chooses what is evaluated: that it is nested too deeply, for one.
            return False
