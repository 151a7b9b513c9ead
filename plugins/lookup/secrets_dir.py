# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""The folder of a cluster's secrets on the controller, where none is set."""

from __future__ import annotations

DOCUMENTATION = r"""
name: secrets_dir
short_description: Say where the passwords and certificates of a cluster lie on the controller
version_added: 0.1.0
author:
  - gaudi3.scale contributors (@gaudi3)
description:
  - Returns the folder which the roles use when C(gaudi_secrets_dir) is not set. It is
    C(~/.config/gaudi3-scale/NAME-HASH) (or below E(XDG_CONFIG_HOME)), after the name and the path of the folder of the
    first inventory source, and the same for all hosts of a play.
  - It lies outside of the inventory, since Ansible reads every file of an inventory folder as an inventory, and would
    take the passwords for names of hosts.
  - Fails where the inventory is a list of hosts and has no folder.
seealso:
  - module: gaudi3.scale.gaudi_credentials
"""

EXAMPLES = r"""
- name: Show where the passwords are
  ansible.builtin.debug:
    msg: "{{ gaudi_secrets_dir if gaudi_secrets_dir is defined else lookup('gaudi3.scale.secrets_dir') }}"
"""

RETURN = r"""
_raw:
  description: The folder, as an absolute path. It need not exist.
  type: list
  elements: str
"""

import os
from typing import Any, Optional

from ansible.errors import AnsibleLookupError
from ansible.plugins.lookup import LookupBase

from ansible_collections.gaudi3.scale.plugins.module_utils._secrets_dir import named_folder


class LookupModule(LookupBase):
    """The default of gaudi_secrets_dir."""

    def run(self, terms: list[Any], variables: Optional[dict[str, Any]] = None, **kwargs: Any) -> list[str]:
        """Entry point of the lookup."""
        sources = [str(source) for source in (variables or {}).get("ansible_inventory_sources") or []]
        folder, fault = named_folder(sources, os.environ)
        if fault:
            raise AnsibleLookupError(f"{fault}.")
        return [folder]
