# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""What this collection decides for a host, so that a role that is used alone asks the functions of a site's plan."""

from __future__ import annotations

DOCUMENTATION = r"""
name: plan
short_description: "Internal to the collection: return what is decided for this host"
version_added: 0.1.0
author:
  - gaudi3.scale contributors (@gaudi3)
description:
  - Roles ask by this what their variables come to on a host, such as the configuration of a job. The decisions are
    functions in C(plugins/module_utils/_plan/), of which M(gaudi3.scale.gaudi_host_plan) takes the same.
  - What is decided follows from the variables at the moment, so that facts which another task of the same play has set
    count, too.
options:
  _terms:
    description: Names of decisions, such as V(trainer).
    type: list
    elements: str
    required: true
"""

EXAMPLES = r"""
- name: Show the kernel settings of this host
  ansible.builtin.debug:
    msg: "{{ lookup('gaudi3.scale.plan', 'tuning').sysctl }}"
"""

RETURN = r"""
_raw:
  description: What is decided under each of the names.
  type: list
  elements: raw
"""

from typing import Any, ClassVar, Optional

from ansible import constants
from ansible.errors import AnsibleError, AnsibleLookupError
from ansible.plugins.lookup import LookupBase

from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal
from ansible_collections.gaudi3.scale.plugins.module_utils._settings import settings_problem
from ansible_collections.gaudi3.scale.plugins.plugin_utils.failing import sentences
from ansible_collections.gaudi3.scale.plugins.plugin_utils.role_values import RoleValues


class LookupModule(LookupBase):
    """Evaluates the variables that a decision follows from, each once for all options of a task."""

    #: The variables of the last lookup, and their values: the options of a task ask one after the other.
    last: ClassVar[Optional[tuple[dict[str, Any], RoleValues]]] = None

    def run(self, terms: list[Any], variables: Optional[dict[str, Any]] = None, **kwargs: Any) -> list[Any]:
        """Entry point of the lookup."""
        self.set_options(var_options=variables, direct=kwargs)
        values = self._values(dict(variables or {}))
        try:
            return [values.decide(str(term)) for term in terms]
        except Refusal as error:
            raise AnsibleLookupError(str(error)) from error
        except AnsibleError as error:
            host = str((variables or {}).get("inventory_hostname"))
            said = [*sentences(variables or {}, values.evaluate, host)]
            if not said:
                raise
            raise AnsibleLookupError("\n".join(said)) from error

    def _values(self, given: dict[str, Any]) -> RoleValues:
        if self.last is not None:
            before, values = self.last
            if len(before) == len(given) and all(before.get(name) is given[name] for name in given):
                return values
        templar = self._templar.copy_with_new_env(available_variables={})

        def template(value: Any, names: dict[str, Any]) -> Any:
            templar.available_variables = names
            return templar.template(value)

        unsafe = settings_problem(constants.config.get_config_value)
        values = RoleValues({**given, "gaudi_settings_problem": unsafe}, template)
        type(self).last = (given, values)
        return values
