#!/usr/bin/python
# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""What gaudi_host_plan takes; the work is done on the controller, by modules that it runs on the host."""

from __future__ import annotations

DOCUMENTATION = r"""
module: gaudi_host_plan
short_description: "Internal to the collection: ask a host what the phases of a run would change there"
version_added: 0.1.0
author:
  - gaudi3.scale contributors (@gaudi3)
description:
  - Gathers the facts that the roles use, looks at the cards, checks the variables of the roles, and asks what the tasks
    of each phase would do, each with its own options and as in check mode. All in one task, as each costs the
    controller CPU time for each host.
  - Which phases are asked follows from the tags of the run.
  - Changes nothing. What is wrong with the host is returned, so that M(gaudi3.scale.gaudi_site_plan) can name it.
options:
  phases:
    description:
      - Ask for these phases alone, as a role does that is used by itself. What is wrong with the host then fails the
        task, and facts that the play has gathered are taken.
    type: list
    elements: str
    choices: [drivers, fabric, tuning, pytorch, train, firewall, node_exporter, hpu_exporter]
extends_documentation_fragment:
  - gaudi3.scale.read_only
attributes:
  action:
    description: Runs modules on the host.
    support: full
  platform:
    description: Linux.
    platforms: linux
    support: full
seealso:
  - module: gaudi3.scale.gaudi_site_plan
  - module: gaudi3.scale.gaudi_node_look
"""

EXAMPLES = r"""
- name: Ask a host what the phases would change
  gaudi3.scale.gaudi_host_plan:
  register: plan
"""

RETURN = r"""
found:
  description: What each question was answered, by its name, as RV(gaudi3.scale.gaudi_node_look#module:found).
  returned: success
  type: dict
  sample: {driver: {changed: false, loaded: [], unloaded: []}}
leave:
  description: Phases in which nothing would be changed on this host.
  returned: success
  type: list
  elements: str
  sample: [drivers, fabric]
more:
  description: What else is asked of the host before the first change, as few hosts are, by the phases that ask it.
  returned: success
  type: list
  elements: str
  sample: []
problem:
  description: What is wrong with the host, in a sentence; empty where nothing is.
  returned: success
  type: str
  sample: ""
name:
  description: What C(getent ahosts) printed of the host's name, where the inventory has no address.
  returned: success
  type: str
  sample: "10.0.0.1 STREAM gaudi-1"
cards:
  description: C(ansible_facts.gaudi_pci) as the host answered.
  returned: on hosts of group gaudi
  type: dict
  sample: {card_count: 8}
job:
  description: What the nodes of a training job are compared by.
  returned: success
  type: dict
  sample: {nodes: [gaudi-1], head: gaudi-1}
pytorch:
  description: Where PyTorch is installed, and of which release.
  returned: on hosts of group gaudi
  type: dict
  sample: {root: /opt/gaudi3-scale, release: 1.23.0-695}
"""

from ansible.module_utils.basic import AnsibleModule


def main() -> None:
    """Refuse to run anywhere but on the controller."""
    module = AnsibleModule(
        argument_spec={
            "phases": {
                "type": "list",
                "elements": "str",
                "choices": [
                    *("drivers", "fabric", "tuning", "pytorch", "train", "firewall", "node_exporter", "hpu_exporter")
                ],
            }
        },
        supports_check_mode=True,
    )
    module.fail_json(msg="gaudi_host_plan runs on the controller: call it as gaudi3.scale.gaudi_host_plan.")


if __name__ == "__main__":
    main()
