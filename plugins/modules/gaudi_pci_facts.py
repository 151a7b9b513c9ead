#!/usr/bin/python
# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""The Gaudi cards on this host's PCI bus and the driver modules in its kernel, as Ansible facts."""

from __future__ import annotations

DOCUMENTATION = r"""
module: gaudi_pci_facts
short_description: Find the Gaudi cards of a host without any driver or tool
version_added: 0.1.0
author:
  - gaudi3.scale contributors (@gaudi3)
description:
  - Reads sysfs for PCI devices of Gaudi's vendor C(1da3), their IOMMU groups and loaded C(habanalabs) kernel
    modules, and returns them as C(ansible_facts.gaudi_pci).
  - Starts no process and needs nothing installed, so it tells what a bare host is before any role has run.
notes:
  - A loaded module is one that is in C(/sys/module). The kernel lists modules in C(/proc/modules) only where
    it can load them.
options:
  sysfs_root:
    description:
      - Where sysfs is mounted.
    type: path
    default: /sys
  proc_root:
    description:
      - Where procfs is mounted.
    type: path
    default: /proc
  fabric:
    description: Whether to return C(gaudi_fabric) too, as M(gaudi3.scale.gaudi_fabric_facts) does, in the same task.
    type: bool
    default: false
extends_documentation_fragment:
  - gaudi3.scale.read_only
"""

EXAMPLES = r"""
- name: Find the Gaudi cards
  gaudi3.scale.gaudi_pci_facts:

- name: Stop at a host whose IOMMU translates the addresses of a card
  ansible.builtin.assert:
    that: ansible_facts.gaudi_pci.iommu_problem is none
    fail_msg: "{{ inventory_hostname }}: {{ ansible_facts.gaudi_pci.iommu_problem }}."

- name: Stop at a host without Gaudi 3 cards
  ansible.builtin.assert:
    that: ansible_facts.gaudi_pci.generation == 'gaudi3'
    fail_msg: "{{ inventory_hostname }} has no Gaudi 3 card."
"""

RETURN = r"""
ansible_facts:
  description: The facts of this host.
  returned: success
  type: dict
  contains:
    gaudi_pci:
      description: Everything below one name.
      type: dict
      contains:
        card_count:
          description: Number of Gaudi cards on the bus.
          type: int
          sample: 8
        generation:
          description:
            - The generation which all cards share, V(gaudi), V(gaudi2) or V(gaudi3).
            - Null without cards, where cards differ, and for a device id whose product is not published.
          type: str
          sample: gaudi3
        cards:
          description: The cards by PCI address.
          type: list
          elements: dict
          contains:
            bus_id:
              description: PCI address with its domain.
              type: str
              sample: "0000:19:00.0"
            device_id:
              description: PCI device id, four hex digits.
              type: str
              sample: "1060"
            product:
              description: Product of that id, null where it is not published.
              type: str
              sample: HL-325
            generation:
              description: Generation of that product, null where it is not published.
              type: str
              sample: gaudi3
            numa_node:
              description: NUMA node the card hangs on, null where the kernel knows none.
              type: int
              sample: 0
            iommu:
              description:
                - The kernel's type of the card's IOMMU group, such as V(identity), V(DMA) or V(DMA-FQ). Null
                  without a group.
              type: str
              sample: identity
        iommu_problem:
          description:
            - Why the cards cannot be trusted where an IOMMU translates their addresses, null where none does.
          type: str
          sample: null
        holders:
          description: Processes that hold a card's device file open. Needs root to see those of others.
          type: list
          elements: str
          sample: ["812 (python3)"]
        driver_loaded:
          description: Whether the compute driver C(habanalabs) is loaded.
          type: bool
          sample: true
        driver_version:
          description: Version of the loaded compute driver, null without one.
          type: str
          sample: 1.23.0-2eae87a
        modules:
          description: Loaded kernel modules of the driver.
          type: list
          elements: str
          sample: [habanalabs, habanalabs_cn, habanalabs_compat, habanalabs_en, habanalabs_ib]
"""

from dataclasses import asdict

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gaudi3.scale.plugins.module_utils._cards import accel, iommu, pci
from ansible_collections.gaudi3.scale.plugins.module_utils._fabric import fabric


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "sysfs_root": {"type": "path", "default": "/sys"},
            "proc_root": {"type": "path", "default": "/proc"},
            "fabric": {"type": "bool", "default": False},
        },
        supports_check_mode=True,
    )
    sysfs = module.params["sysfs_root"]
    cards = pci.cards(sysfs)
    loaded = pci.modules(sysfs)
    facts = {
        "card_count": len(cards),
        "generation": pci.generation_of(cards),
        "cards": [asdict(card) for card in cards],
        "iommu_problem": iommu.problem(cards),
        "holders": [str(user) for user in accel.users(module.params["proc_root"])] if cards else [],
        "driver_loaded": "habanalabs" in loaded,
        "driver_version": pci.driver_version(sysfs),
        "modules": loaded,
    }
    found = {"gaudi_pci": facts, **({"gaudi_fabric": fabric.facts(sysfs)} if module.params["fabric"] else {})}
    module.exit_json(changed=False, ansible_facts=found)


if __name__ == "__main__":
    main()
