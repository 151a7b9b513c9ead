#!/usr/bin/python
# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""What gaudi_arguments takes; the work is done on the controller."""

from __future__ import annotations

DOCUMENTATION = r"""
module: gaudi_arguments
short_description: "Internal to the collection: check the variables of several roles in one task"
version_added: 0.1.0
author:
  - gaudi3.scale contributors (@gaudi3)
description:
  - Compares the variables of roles of this collection with their argument specifications, as Ansible does when a role
    begins. All faults of all roles are reported together.
  - A variable whose template needs what a later task finds out is left to the role itself.
options:
  roles:
    description: Names of roles, without the collection's.
    type: list
    elements: str
    required: true
  facts:
    description:
      - Refuse a host, too, whose facts lack what tells the roles which system it has, or have an odd value there.
    type: bool
    default: false
extends_documentation_fragment:
  - gaudi3.scale.read_only
attributes:
  action:
    description: Runs on the controller, and asks no node.
    support: full
  platform:
    description: The controller.
    platforms: posix
    support: full
"""

EXAMPLES = r"""
- name: Check the variables of driver and fabric
  gaudi3.scale.gaudi_arguments:
    roles: [synapseai, fabric]
"""

RETURN = r"""
faults:
  description: What is wrong, a sentence for each variable.
  returned: failure
  type: list
  elements: str
  sample: ["value of fabric_mode must be one of: l2, l3, unmanaged, got: l4"]
"""

from ansible.module_utils.basic import AnsibleModule


def main() -> None:
    """Refuse to run anywhere but on the controller."""
    module = AnsibleModule(
        argument_spec={
            "roles": {"type": "list", "elements": "str", "required": True},
            "facts": {"type": "bool", "default": False},
        },
        supports_check_mode=True,
    )
    module.fail_json(msg="gaudi_arguments runs on the controller: call it as gaudi3.scale.gaudi_arguments.")


if __name__ == "__main__":
    main()
