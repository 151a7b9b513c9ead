#!/usr/bin/python
# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Which fabric carries collectives out of this host, as Ansible facts."""

from __future__ import annotations

DOCUMENTATION = r"""
module: gaudi_fabric_facts
short_description: "Internal to the collection: tell which fabric connects this host's Gaudi cards to other hosts"
version_added: 0.1.0
author:
  - gaudi3.scale contributors (@gaudi3)
description:
  - Looks in sysfs for Gaudi cards, their external ports and RDMA devices, and returns
    C(ansible_facts.gaudi_fabric).
  - Needs no tool. Ports and Gaudi's RDMA devices appear once the driver is loaded; without it, the cards are
    taken to have ports.
options:
  sysfs_root:
    description:
      - Where sysfs is mounted.
    type: path
    default: /sys
extends_documentation_fragment:
  - gaudi3.scale.read_only
"""

EXAMPLES = r"""
- name: Find the fabric
  gaudi3.scale.gaudi_fabric_facts:

- name: Do something for hosts whose own ports go to the switch
  ansible.builtin.debug:
    msg: "{{ ansible_facts.gaudi_fabric.ports | map(attribute='mac') | list }}"
  when: ansible_facts.gaudi_fabric.kind == 'gaudi'
"""

RETURN = r"""
ansible_facts:
  description: The facts of this host.
  returned: success
  type: dict
  contains:
    gaudi_fabric:
      description: Everything below one name.
      type: dict
      contains:
        kind:
          description:
            - V(gaudi) for the RoCE ports on the cards, V(host_nic) for a host NIC with verbs, V(efa) for AWS
              EFA, V(host_tcp) for TCP over any NIC of the host, V(none) without Gaudi cards.
            - It is never V(gaudi) where the driver runs and no card has a port device.
          type: str
          sample: gaudi
        candidates:
          description: All kinds which this host has hardware for.
          type: list
          elements: str
          sample: [gaudi, host_nic]
        reason:
          description: Why this kind.
          type: str
          sample: the cards have network ports of their own
        generation:
          description: Generation that all cards share, V(gaudi), V(gaudi2) or V(gaudi3); null where they differ or are
            unknown.
          type: str
          sample: gaudi3
        rdma_devices:
          description: The RDMA devices of this host.
          type: list
          elements: dict
          contains:
            name:
              description: Name in C(/sys/class/infiniband).
              type: str
              sample: hbl_0
            driver:
              description: Kernel driver of its device, null where it has none.
              type: str
              sample: habanalabs
            kind:
              description: V(gaudi), V(efa), V(host_nic), or V(other) for one made by software.
              type: str
              sample: gaudi
        ports:
          description: The network devices of the cards' external ports.
          type: list
          elements: dict
          contains:
            name:
              description: Name of the network device.
              type: str
              sample: ens1d8
            bus_id:
              description: PCI address of its card.
              type: str
              sample: "0000:19:00.0"
            port:
              description: Port number on the card.
              type: int
              sample: 8
            mac:
              description: MAC address.
              type: str
              sample: 02:00:00:00:00:01
            state:
              description: Operational state as the kernel words it.
              type: str
              sample: up
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gaudi3.scale.plugins.module_utils._fabric import fabric


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={"sysfs_root": {"type": "path", "default": "/sys"}},
        supports_check_mode=True,
    )
    module.exit_json(changed=False, ansible_facts={"gaudi_fabric": fabric.facts(module.params["sysfs_root"])})


if __name__ == "__main__":
    main()
