#!/usr/bin/python
# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""What several modules would do on one node, asked in one task."""

from __future__ import annotations

DOCUMENTATION = r"""
module: gaudi_node_look
short_description: "Internal to the collection: ask in one task what several modules would do on a node"
version_added: 0.1.0
author:
  - gaudi3.scale contributors (@gaudi3)
description:
  - Asks modules of this collection what they would do, each as in check mode. A site's preflight asks a node everything
    in two tasks, as each task costs the controller CPU time for each node.
  - Changes nothing.
  - Every part is asked, also behind one that fails. The task then fails with the messages of all whose failure is not
    to be tolerated, each on a line of its own.
options:
  parts:
    description: What is asked, in this order.
    type: list
    elements: dict
    required: true
    suboptions:
      name:
        description: Key of the answer in RV(found).
        type: str
        required: true
      module:
        description:
          - The module that is asked.
          - V(account) tells whether M(ansible.builtin.user) would change a user; V(addresses) what a name means on the
            node; V(files) which files are there, with their groups; V(port) whether a port of an address is open;
            V(page) with which status a URL is answered.
          - V(listener) fails where a process of another unit holds the port of a service; V(mirror) where a sealed
            mirror does not answer, or is not what the node installs from.
        type: str
        choices:
          - account
          - addresses
          - contents
          - files
          - gaudi_claim
          - gaudi_driver
          - gaudi_fabric
          - gaudi_firewall
          - gaudi_ports
          - gaudi_pytorch
          - gaudi_service
          - gaudi_train_node_info
          - interpreter
          - kernel_holds
          - kernel_settings
          - listener
          - mirror
          - package
          - page
          - port
          - service_page
          - synapseai_packages
          - trainer_install
        required: true
      arguments:
        description:
          - Options of the module.
          - Those of M(ansible.builtin.user) of V(module=account); C(name) of V(module=addresses); C(paths) of
            V(module=files) and V(module=contents); C(package), C(candidate), C(dpkg_query_executable) and
            C(apt_cache_executable) of V(module=package); C(host), C(port) and C(timeout) of V(module=port); C(url) and
            C(timeout) of V(module=page).
          - C(url), C(username), C(password), C(authority), C(timeout), C(tries) and C(delay) of V(module=service_page).
          - C(unit) of V(module=listener), with the keys of O(gaudi3.scale.gaudi_service#module:listens).
        type: dict
        default: {}
      tolerated:
        description: Whether the task goes well where this part fails.
        type: bool
        default: false
  secrets:
    description: Values among the arguments that are to be shown nowhere.
    type: list
    elements: str
    default: []
extends_documentation_fragment:
  - gaudi3.scale.read_only
attributes:
  platform:
    description: Linux.
    platforms: linux
    support: full
seealso:
  - module: gaudi3.scale.gaudi_driver
  - module: gaudi3.scale.gaudi_service
"""

EXAMPLES = r"""
- name: Ask whether the driver runs, and whether its ports come up at each boot
  gaudi3.scale.gaudi_node_look:
    parts:
      - name: driver
        module: gaudi_driver
        arguments: {release: 1.23.0-695}
      - name: boot
        module: gaudi_service
        arguments: {name: gaudi3-scale-ports.service, state: enabled}
        tolerated: true
  register: node

- name: Leave out nodes on which there is nothing to do
  ansible.builtin.meta: end_host
  when: not node.found.boot.changed
"""

RETURN = r"""
found:
  description: What each part answered, its differences included, by its name; one that failed has C(failed) and C(msg).
  returned: always
  type: dict
  sample:
    driver: {changed: false, driver_version: 1.23.0-2eae87a}
    boot: {changed: false, done: [], diff: []}
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gaudi3.scale.plugins.module_utils._module_bodies import look


def main() -> None:
    """Run the module."""
    part = {
        "name": {"type": "str", "required": True},
        "module": {"type": "str", "choices": sorted(look.TASKS), "required": True},
        "arguments": {"type": "dict", "default": {}},
        "tolerated": {"type": "bool", "default": False},
    }
    module = AnsibleModule(
        argument_spec={
            "parts": {"type": "list", "elements": "dict", "options": part, "required": True},
            "secrets": {"type": "list", "elements": "str", "default": [], "no_log": True},
        },
        supports_check_mode=True,
    )
    answer = look.look(module, module.params["parts"])
    if answer.get("failed"):
        module.fail_json(**answer)
    module.exit_json(**answer)


if __name__ == "__main__":
    main()
