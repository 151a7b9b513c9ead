# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""The folder of what the controller keeps of a cluster's nodes."""

from __future__ import annotations

DOCUMENTATION = r"""
name: state_dir
short_description: Say where the controller keeps what the nodes of a cluster answered
version_added: 0.1.0
author:
  - gaudi3.scale contributors (@gaudi3)
description:
  - Returns the folder of reports, passports and the record of healing. It is
    C(~/.local/state/gaudi3-scale/NAME-HASH/KIND) (or below E(XDG_STATE_HOME)), after the name and the path of the
    folder of the first inventory source, wherever C(ansible-playbook) is run.
  - It lies outside of the inventory. Ansible reads every file of an inventory folder as an inventory, and what a node
    answered is no inventory. A folder that lies in one is refused.
  - Fails where a setting of Ansible lets a node set variables, and with them the folder.
options:
  _terms:
    description: What is kept there.
    type: str
    choices: [certificates, health, doctor, upgrade]
    required: true
  folder:
    description: A folder that the user gives, relative to where C(ansible-playbook) runs. If empty, the default.
    type: str
    default: ""
  read_only:
    description: Whether nothing is written there. Then nothing is refused, and without a default it is empty.
    type: bool
    default: false
seealso:
  - plugin: gaudi3.scale.secrets_dir
    plugin_type: lookup
"""

EXAMPLES = r"""
- name: Show where the reports are
  ansible.builtin.debug:
    msg: "{{ lookup('gaudi3.scale.state_dir', 'health', folder=health_directory | default('')) }}"
"""

RETURN = r"""
_raw:
  description: The folder, as an absolute path. It need not exist.
  type: list
  elements: str
"""

import os
from typing import Any, Optional

from ansible import constants
from ansible.errors import AnsibleLookupError
from ansible.plugins.lookup import LookupBase

from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal
from ansible_collections.gaudi3.scale.plugins.module_utils._secrets_dir import outside_of_the_inventory, state_folder
from ansible_collections.gaudi3.scale.plugins.module_utils._settings import settings_problem

#: The variable that names the folder, by what is kept there.
VARIABLES = {
    "certificates": "certificate_directory",
    "health": "health_directory",
    "doctor": "doctor_directory",
    "upgrade": "upgrade_directory",
}


class LookupModule(LookupBase):
    """The folder, of the user or the default."""

    def run(self, terms: list[Any], variables: Optional[dict[str, Any]] = None, **kwargs: Any) -> list[str]:
        """Entry point of the lookup."""
        sources = [str(source) for source in (variables or {}).get("ansible_inventory_sources") or []]
        kind, given = str(terms[0]), str(kwargs.get("folder") or "")
        if kind not in VARIABLES:
            raise AnsibleLookupError(f"state_dir was asked for {kind}: ask for {' or '.join(VARIABLES)}.")
        problem = "" if kwargs.get("read_only") is True else settings_problem(constants.config.get_config_value)
        if problem:
            # The play that asks for the settings may have been left out, as by --skip-tags.
            raise AnsibleLookupError(problem)
        if given:
            folder = os.path.join(os.environ.get("PWD") or os.getcwd(), os.path.expanduser(given))
        else:
            above = state_folder(sources, os.environ)
            if above is None and kwargs.get("read_only") is True:
                return [""]
            if above is None:
                raise AnsibleLookupError(
                    f"The inventory ({' '.join(sources) or 'none'}) has no folder after which one for {kind} could be "
                    f"named: set {VARIABLES[kind]} to a folder on the controller."
                )
            folder = os.path.join(above, kind)
        if kwargs.get("read_only") is True:
            return [os.path.normpath(folder)]
        try:
            return [outside_of_the_inventory(os.path.normpath(folder), sources, VARIABLES[kind])]
        except Refusal as error:
            raise AnsibleLookupError(str(error)) from None
