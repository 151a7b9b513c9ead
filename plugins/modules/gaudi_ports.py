#!/usr/bin/python
# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""External ports of the Gaudi cards up."""

from __future__ import annotations

DOCUMENTATION = r"""
module: gaudi_ports
short_description: Bring the external ports of Gaudi cards up
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
  - In check mode on a host which has no C(hl-smi) or no driver yet, nothing can be told about ports and no
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

import os

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gaudi3.scale.plugins.module_utils._hl_smi import ports
from ansible_collections.gaudi3.scale.plugins.module_utils._hl_smi.command import (
    ARGUMENT_SPEC,
    DriverDown,
    HlSmi,
    HlSmiMissing,
    environment,
    from_module,
    run_with_timeout,
)
from ansible_collections.gaudi3.scale.plugins.module_utils._hl_smi.hl_smi import HlSmiError, quote


def bring_up(module: AnsibleModule, tool: HlSmi, cards: list[ports.CardPorts]) -> list[str]:
    """Run the script and wait; return the ports which are down afterwards."""
    script = module.params["script"]
    if not os.access(script, os.X_OK):
        raise HlSmiError(
            f"{script} is not on this host: install package habanalabs-qual (role "
            "gaudi3.scale.synapseai does), or give its path as 'script'"
        )
    code, output, error = run_with_timeout([script, "--up"], environment(module), module.params["script_timeout"])
    if code != 0:
        said = next((line for line in (error + "\n" + output).splitlines() if line.strip()), "nothing")
        raise HlSmiError(f"{os.path.basename(script)} --up ended with exit code {code} and said {quote(said)}")
    return ports.wait_up(tool, cards, module.params["wait"])


def run(module: AnsibleModule) -> None:
    """Find, bring up, verify."""
    tool = from_module(module)
    cards = ports.external(tool)
    count = sum(len(card.ports) for card in cards)
    before = ports.down(cards)
    act = bool(before) and module.params["state"] == "up"
    after = bring_up(module, tool, cards) if act and not module.check_mode else before
    brought_up = [] if not act else before if module.check_mode else [n for n in before if n not in after]
    result = {
        "changed": bool(brought_up),
        "external": count,
        "down": after,
        "brought_up": brought_up,
        "diff": {
            "before": "".join(f"{name} down\n" for name in before),
            "after": "".join(f"{name} down\n" for name in before if name not in brought_up),
        },
    }
    if act and after and not module.check_mode:
        module.fail_json(
            msg=f"{len(after)} of {count} external ports stayed down after {module.params['wait']} seconds: "
            f"{ports.sentence(after)}; check cables and switch ports, and see 'hl-smi -n stats' for faults.",
            **result,
        )
    module.exit_json(**result)


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec=dict(
            ARGUMENT_SPEC,
            state={"type": "str", "choices": ["up", "reported"], "default": "up"},
            script={"type": "path", "default": "/opt/habanalabs/qual/gaudi3/bin/manage_network_ifs.sh"},
            wait={"type": "int", "default": 60},
            script_timeout={"type": "int", "default": 300},
        ),
        supports_check_mode=True,
    )
    try:
        run(module)
    except (HlSmiMissing, DriverDown) as error:
        if module.check_mode:
            module.exit_json(changed=False, external=0, msg=f"No port can be looked at yet: {error}.")
        module.fail_json(msg=f"{error}.")
    except HlSmiError as error:
        module.fail_json(msg=f"{error}.")


if __name__ == "__main__":
    main()
