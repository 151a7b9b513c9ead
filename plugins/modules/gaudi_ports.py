#!/usr/bin/python
# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""External ports of the Gaudi cards up."""

from __future__ import annotations

DOCUMENTATION = r"""
module: gaudi_ports
short_description: "Internal to the collection: bring the external ports of Gaudi cards up"
version_added: 0.1.0
author:
  - gaudi3.scale contributors (@gaudi3)
description:
  - Asks C(hl-smi) which ports of each card are external and which of them are down. If any is, runs the
    vendor's script
    C(manage_network_ifs.sh --up), waits for the links, and fails with the names of ports which stay down.
  - Ports are down after every load of the driver.
  - Which port numbers are external depends on the board, so nothing is assumed about them.
notes:
  - In check mode on a host which has no C(hl-smi) or no driver yet, nothing is known about ports and no
    change is
    predicted. Installing the driver with role C(gaudi3.scale.synapseai) brings the ports up.
options:
  state:
    description:
      - V(up) brings them up where one is down.
      - V(reported) only tells.
    type: str
    choices: [up, reported]
    default: up
  script:
    description:
      - The vendor's script, of package C(habanalabs-qual).
    type: path
    default: /opt/habanalabs/qual/gaudi3/bin/manage_network_ifs.sh
  wait:
    description:
      - Seconds to wait for the links after the script.
    type: int
    default: 60
  script_timeout:
    description:
      - Seconds to wait for the script.
    type: int
    default: 300
extends_documentation_fragment:
  - gaudi3.scale.hl_smi
attributes:
  check_mode:
    description: Predicts whether the ports would be brought up.
    support: full
  diff_mode:
    description: Shows the ports that are down.
    support: full
"""

EXAMPLES = r"""
- name: Bring the external ports up
  gaudi3.scale.gaudi_ports:

- name: Tell which ones are down
  gaudi3.scale.gaudi_ports:
    state: reported
"""

RETURN = r"""
external:
  description: Number of external ports.
  returned: success
  type: int
  sample: 24
down:
  description: The external ports without a link when the task ended. In check mode, those there are.
  returned: when the driver is up
  type: list
  elements: str
  sample: ["card 0 (0000:19:00.0) port 8"]
brought_up:
  description: The external ports which got a link in this task, or in check mode would be asked to.
  returned: when the driver is up
  type: list
  elements: str
  sample: []
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gaudi3.scale.plugins.module_utils._module_bodies import ports


def main() -> None:
    """Run the module."""
    module = AnsibleModule(argument_spec=ports.ARGUMENT_SPEC, supports_check_mode=True)
    module.exit_json(**ports.run(module))


if __name__ == "__main__":
    main()
