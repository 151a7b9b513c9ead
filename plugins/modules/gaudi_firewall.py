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
  - A table whose sets or rules somebody has changed counts as a change, and is replaced, too. What C(nft -j list table)
    says right after it was loaded is kept beside O(path), as C(firewall.loaded.json), and is compared with what it
    says now.
  - Where the distribution's C(nftables.service) is installed, a drop-in has its start, reload and stop load this table
    in the same step in which they empty all tables.
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
  unit_folders:
    description: Folders of systemd's units, the first to be found first. The drop-in goes into the first folder.
    type: list
    elements: path
    default:
      - /etc/systemd/system
      - /run/systemd/system
      - /usr/local/lib/systemd/system
      - /usr/lib/systemd/system
      - /lib/systemd/system
  systemctl_executable:
    description: The C(systemctl) to use.
    type: path
    default: systemctl
attributes:
  check_mode:
    description: Checks everything that can be, predicts the change and makes none.
    support: full
  diff_mode:
    description: Shows the files before and after, and a table that somebody has changed.
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
  description: What was brought up to date (or in check mode, would be) - V(file), V(table), V(service).
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

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gaudi3.scale.plugins.module_utils._module_bodies import firewall


def main() -> None:
    """Run the module."""
    module = AnsibleModule(argument_spec=firewall.ARGUMENT_SPEC, supports_check_mode=True)
    module.exit_json(**firewall.run(module))


if __name__ == "__main__":
    main()
