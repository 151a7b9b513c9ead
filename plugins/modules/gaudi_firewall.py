#!/usr/bin/python
# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""The table of nftables that closes a cluster's ports to everybody but the cluster."""

from __future__ import annotations

DOCUMENTATION = r"""
module: gaudi_firewall
short_description: Close a cluster's ports to everybody but the cluster
version_added: 0.1.0
author:
  - gaudi3.scale contributors (@gaudi3)
description:
  - Writes the table C(inet gaudi3_scale) of nftables into a file and loads it. No other table is touched.
  - The table drops new TCP connections to the ports that it names, unless their source is listed. It accepts everything
    else, so that it neither cuts connections nor opens what another table closes.
  - The file is checked with C(nft -c) before it is written, and the table is replaced in one step.
options:
  state:
    description: Whether the table and its file exist.
    type: str
    choices: [present, absent]
    default: present
  groups:
    description:
      - Ports, and who may open connections to them. The first group that has a port decides about it.
    type: list
    elements: dict
    default: []
    suboptions:
      name:
        description: What the ports are for, in lower-case letters.
        type: str
        required: true
      ports:
        description: Ports and ranges of ports. Without any, the group counts for nothing.
        type: list
        elements: str
        required: true
      sources:
        description:
          - Addresses, networks and host names. A name is looked up on this host, now.
          - Without any, the ports are closed to every other host.
        type: list
        elements: str
        required: true
  open_ports:
    description: Ports that stay open to all, though they lie in a range of O(groups).
    type: list
    elements: str
    default: []
  path:
    description: The file, which is to be loaded at each boot.
    type: path
    default: /etc/gaudi3-scale/firewall.nft
  nft_executable:
    description: The C(nft) to use. In check mode it may be missing.
    type: path
    default: /usr/sbin/nft
attributes:
  check_mode:
    description: Checks everything that can be, predicts the change and makes none.
    support: full
  diff_mode:
    description: Shows the file before and after.
    support: full
  platform:
    description: Linux with nftables.
    platforms: linux
    support: full
"""

EXAMPLES = r"""
- name: Let the cluster alone reach the rendezvous of training jobs
  gaudi3.scale.gaudi_firewall:
    groups:
      - name: cluster
        ports: ["29400", 32768-60999]
        sources: [10.0.0.11, 10.0.0.12, fd00::/64]
"""

RETURN = r"""
done:
  description: What was brought up to date (or in check mode, would be) - V(file), V(table).
  returned: success and O(state=present)
  type: list
  elements: str
  sample: [file, table]
loaded:
  description: Whether the table had to be loaded, or in check mode would be.
  returned: success and O(state=present)
  type: bool
  sample: false
"""

import os
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gaudi3.scale.plugins.module_utils._files import ensure_file
from ansible_collections.gaudi3.scale.plugins.module_utils._host import firewall
from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal


def nft(module: AnsibleModule, *arguments: str, data: str | None = None) -> tuple[int, str, str]:
    """Run nft; without the program, a failure."""
    program = module.params["nft_executable"]
    if not os.path.exists(program):
        return 1, "", f"{program} does not exist"
    code, output, errors = module.run_command([program, *arguments], data=data)
    return code, output, errors


def listing(module: AnsibleModule) -> str:
    """The table as it is now; nothing where there is none."""
    code, output, _errors = nft(module, "list", "table", "inet", firewall.TABLE)
    return output if code == 0 else ""


def load(module: AnsibleModule, text: str, *, check: bool = False) -> None:
    """Load a ruleset, or only ask nft whether it could."""
    code, output, errors = nft(module, *(["-c"] if check else []), "-f", "-", data=text)
    if code != 0:
        said = " ".join((errors or output).split())[:300]
        module.fail_json(
            msg=f"nft does not take the ruleset ({said}): install nftables, and look whether this kernel has nf_tables."
        )


def present(module: AnsibleModule) -> dict[str, Any]:
    """Have the file and the table."""
    options = module.params
    groups = [firewall.Group(each["name"], each["ports"], each["sources"]) for each in options["groups"]]
    try:
        text = firewall.ruleset(options["open_ports"], groups)
    except Refusal as error:
        module.fail_json(msg=str(error))
    missing = not firewall.is_loaded(text, listing(module))
    if missing and (not module.check_mode or os.path.exists(options["nft_executable"])):
        load(module, text, check=True)
    diff = ensure_file(module, options["path"], text)
    if missing and not module.check_mode:
        load(module, text)
    done = (["file"] if diff is not None else []) + (["table"] if missing else [])
    return {"changed": bool(done), "done": done, "loaded": missing, "diff": diff or {}}


def absent(module: AnsibleModule) -> dict[str, Any]:
    """Have neither."""
    live = bool(listing(module))
    if live and not module.check_mode:
        nft(module, "delete", "table", "inet", firewall.TABLE)
        if listing(module):
            module.fail_json(msg=f"nft does not delete the table {firewall.TABLE}: delete it by hand and run again.")
    diff = ensure_file(module, module.params["path"], None)
    return {"changed": diff is not None or live, "diff": diff or {}}


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
            "groups": {
                "type": "list",
                "elements": "dict",
                "default": [],
                "options": {
                    "name": {"type": "str", "required": True},
                    "ports": {"type": "list", "elements": "str", "required": True},
                    "sources": {"type": "list", "elements": "str", "required": True},
                },
            },
            "open_ports": {"type": "list", "elements": "str", "default": []},
            "path": {"type": "path", "default": "/etc/gaudi3-scale/firewall.nft"},
            "nft_executable": {"type": "path", "default": "/usr/sbin/nft"},
        },
        supports_check_mode=True,
    )
    module.exit_json(**(present(module) if module.params["state"] == "present" else absent(module)))


if __name__ == "__main__":
    main()
