#!/usr/bin/python
# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""One archive of a node with what the vendor's support asks for."""

from __future__ import annotations

DOCUMENTATION = r"""
module: gaudi_support_bundle
short_description: Pack what the vendor's support asks for into one archive
version_added: 0.1.0
author:
  - gaudi3.scale contributors (@gaudi3)
description:
  - Collects outputs of C(hl-smi), links and counters of every port, the kernel log, C(lspci), the vendor's packages and
    logs, sensors and events of the BMC (with C(ipmitool), where it is), and packs them into a C(.tar.gz) on the node.
  - Passwords, tokens, keys and the like are taken out. Serial numbers and addresses stay, as support asks for them.
  - The archive stays below 20 MB. Of each text the end is kept. What does not fit is named in C(left-out.txt).
  - Every run writes a new archive.
extends_documentation_fragment:
  - gaudi3.scale.hl_smi
options:
  path:
    description: File of the archive. Its folder has to exist.
    type: path
    required: true
  ports_script:
    description: The vendor's C(manage_network_ifs.sh).
    type: path
  health:
    description: A result of M(gaudi3.scale.gaudi_health_info) that is packed too.
    type: dict
attributes:
  check_mode:
    description: Writes nothing, and collects nothing.
    support: full
  diff_mode:
    description: The archive is not shown.
    support: none
"""

EXAMPLES = r"""
- name: Pack the archive for the vendor's support
  gaudi3.scale.gaudi_support_bundle:
    path: /var/lib/gaudi3-scale/support.tar.gz

- name: Fetch it
  ansible.builtin.fetch:
    src: /var/lib/gaudi3-scale/support.tar.gz
    dest: "support/{{ inventory_hostname }}.tar.gz"
    flat: true
"""

RETURN = r"""
path:
  description: File of the archive.
  returned: success
  type: str
  sample: /var/lib/gaudi3-scale/support.tar.gz
size:
  description: Its size in bytes; null in check mode.
  returned: success
  type: int
  sample: 412345
"""

import json
import os
import time

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gaudi3.scale.plugins.module_utils._files import write_file
from ansible_collections.gaudi3.scale.plugins.module_utils._health import bundle
from ansible_collections.gaudi3.scale.plugins.module_utils._health.examine import Patience
from ansible_collections.gaudi3.scale.plugins.module_utils._hl_smi.command import (
    HL_SMI_SPEC,
    runner,
)


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec=dict(
            HL_SMI_SPEC,
            path={"type": "path", "required": True},
            ports_script={"type": "path"},
            health={"type": "dict"},
        ),
        supports_check_mode=True,
    )
    asked = module.params
    path = os.path.abspath(asked["path"])
    if not os.path.isdir(os.path.dirname(path)):
        module.fail_json(msg=f"There is no folder {os.path.dirname(path)}: make it first, or give another path.")
    if module.check_mode:
        module.exit_json(changed=True, path=path, size=None)
    run = Patience(runner(module))
    notes = {} if asked["health"] is None else {"health.json": json.dumps(asked["health"], indent=1, sort_keys=True)}
    executable = module.get_bin_path(asked["executable"]) or asked["executable"]
    now = time.time()
    content = bundle.archive(bundle.parts(run, executable, "", asked["ports_script"]), notes, now)
    write_file(path, content, 0o600)
    module.exit_json(changed=True, path=path, size=len(content))


if __name__ == "__main__":
    main()
