#!/usr/bin/python
# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Arguments of the kernel's command line: reported, or given to the boot loader. Never reboots."""

from __future__ import annotations

DOCUMENTATION = r"""
module: kernel_command_line
short_description: "Internal to the collection: report or add arguments of the kernel's command line"
version_added: 0.1.0
author:
  - gaudi3.scale contributors (@gaudi3)
description:
  - Tells which of the wanted arguments the running kernel was not started with.
  - With O(state=present) it also gives them to the boot loader, through a file in C(/etc/default/grub.d) and
    C(update-grub)
    where that exists, and with C(grubby) elsewhere.
  - It never reboots. C(reboot_needed) says that the arguments wait for one.
options:
  arguments:
    description:
      - Arguments, each a C(NAME) or C(NAME=VALUE).
    type: list
    elements: str
    required: true
  state:
    description:
      - V(reported) changes nothing.
      - V(present) adds the arguments to the boot loader's configuration.
    type: str
    choices: [reported, present]
    default: reported
  name:
    description:
      - Names the file C(/etc/default/grub.d/90-NAME.cfg).
    type: str
    default: gaudi3-scale
  root:
    description:
      - Folder in which C(/etc) and C(/proc) are looked for.
    type: path
    default: /
attributes:
  check_mode:
    description: Predicts the change and makes none.
    support: full
  diff_mode:
    description: Shows the boot loader's configuration before and after.
    support: full
"""

EXAMPLES = r"""
- name: Tell whether this host was started with IOMMU passthrough
  gaudi3.scale.kernel_command_line:
    arguments: [iommu=pt, intel_iommu=on]

- name: Have it so from the next boot on
  gaudi3.scale.kernel_command_line:
    arguments: [iommu=pt, intel_iommu=on]
    state: present
"""

RETURN = r"""
missing:
  description: The wanted arguments which the running kernel does not have.
  returned: success
  type: list
  elements: str
  sample: [iommu=pt]
reboot_needed:
  description: Whether the boot loader has arguments which the running kernel does not have yet.
  returned: success
  type: bool
  sample: false
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gaudi3.scale.plugins.module_utils._host import boot_loader
from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "arguments": {"type": "list", "elements": "str", "required": True},
            "state": {"type": "str", "choices": ["reported", "present"], "default": "reported"},
            "name": {"type": "str", "default": "gaudi3-scale"},
            "root": {"type": "path", "default": "/"},
        },
        supports_check_mode=True,
    )
    given = module.params
    try:
        result = boot_loader.compare(module, given["root"], given["name"], given["arguments"], given["state"])
    except Refusal as error:
        module.fail_json(msg=str(error))
    module.exit_json(**result)


if __name__ == "__main__":
    main()
