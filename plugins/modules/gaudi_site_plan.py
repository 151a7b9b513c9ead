#!/usr/bin/python
# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""What gaudi_site_plan takes; the work is done on the controller."""

from __future__ import annotations

DOCUMENTATION = r"""
module: gaudi_site_plan
short_description: "Internal to the collection: decide for all hosts of a run what is done there"
version_added: 0.1.0
author:
  - gaudi3.scale contributors (@gaudi3)
description:
  - Takes what M(gaudi3.scale.gaudi_host_plan) returned of each host of the play. Fails in one sentence where something
    is wrong for the whole run, such as hosts that do not answer; what is wrong with single hosts is returned.
  - Runs once for all hosts, on the controller alone, and asks none of them.
options:
  plans:
    description: Name of the variable that the task with M(gaudi3.scale.gaudi_host_plan) registered.
    type: str
    required: true
extends_documentation_fragment:
  - gaudi3.scale.read_only
attributes:
  action:
    description: Runs on the controller, and asks no host.
    support: full
  platform:
    description: The controller.
    platforms: posix
    support: full
seealso:
  - module: gaudi3.scale.gaudi_host_plan
"""

EXAMPLES = r"""
- name: Decide what is done on each host
  gaudi3.scale.gaudi_site_plan:
    plans: plan
  run_once: true
  register: site
"""

RETURN = r"""
refusals:
  description: Why nothing is to be done, by the hosts with which something is wrong.
  returned: success
  type: dict
  sample: {gaudi-2: "These variables cannot be used: ..."}
leave:
  description: Hosts on which a phase would change nothing, by the phase.
  returned: success
  type: dict
  sample: {drivers: [gaudi-1], fabric: [gaudi-1]}
asked:
  description: Hosts that need not be asked for the job again before it starts.
  returned: success
  type: list
  elements: str
  sample: [gaudi-1, gaudi-2]
choices:
  description: For each list of nodes with a job, the modules of the cards that all of them use, or why they cannot.
  returned: success
  type: list
  elements: dict
  sample: [{nodes: [gaudi-1, gaudi-2], modules: [0, 1, 2, 3], problem: ""}]
"""

from ansible.module_utils.basic import AnsibleModule


def main() -> None:
    """Refuse to run anywhere but on the controller."""
    module = AnsibleModule(argument_spec={"plans": {"type": "str", "required": True}}, supports_check_mode=True)
    module.fail_json(msg="gaudi_site_plan runs on the controller: call it as gaudi3.scale.gaudi_site_plan.")


if __name__ == "__main__":
    main()
