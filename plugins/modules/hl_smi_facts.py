#!/usr/bin/python
# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Every Gaudi card of this host, as hl-smi sees it, as Ansible facts."""

from __future__ import annotations

DOCUMENTATION = r"""
module: hl_smi_facts
short_description: Gather every Gaudi card, port and version of a host as facts
version_added: 0.1.0
author:
  - gaudi3.scale contributors (@gaudi3)
description:
  - Asks C(hl-smi) for the Gaudi cards of this host and returns them as C(ansible_facts.gaudi).
  - Costs one call of the tool for the cards, one more for firmware and module status, two per card for ports, and a
    third per card for their counters.
  - Needs the driver. For what can be known without it see M(gaudi3.scale.gaudi_pci_facts).
notes:
  - A value which the tool gives as C(N/A) is C(null). Nothing is guessed.
  - A cell that cannot be read is C(null) too, and a warning names it. Only the cells that name a card
    (C(index), C(bus_id), C(module_id)) must be readable, else the task fails.
  - Run as root to see the same values as the tool shows to root.
options:
  gather_subset:
    description:
      - What to gather besides the cards themselves, which are always there.
      - V(firmware) adds each card's module status and firmware, and the tool's own version.
      - V(ports) adds each card's network ports with their type and link state.
      - V(counters) adds the ports with their counters too, of symbol errors for instance.
    type: list
    elements: str
    choices: [all, cards, counters, firmware, ports]
    default: [cards, firmware]
  allow_missing:
    description:
      - What to do on a host without C(hl-smi), or where the tool says that the driver is not up.
      - When V(true) the facts say so, with C(driver_up) V(false) and no cards; when V(false) the task fails.
      - Any other trouble fails the task in both cases.
    type: bool
    default: false
extends_documentation_fragment:
  - gaudi3.scale.hl_smi
  - gaudi3.scale.read_only
"""

EXAMPLES = r"""
- name: Gather the Gaudi cards with their firmware
  gaudi3.scale.hl_smi_facts:

- name: Gather the network ports as well
  gaudi3.scale.hl_smi_facts:
    gather_subset: [cards, firmware, ports]

- name: Look at a host which may have no driver yet
  gaudi3.scale.hl_smi_facts:
    gather_subset: [cards]
    allow_missing: true

- name: Stop at a card which is not operational
  ansible.builtin.assert:
    that: ansible_facts.gaudi.cards | map(attribute='status') | unique == ['Operational']
"""

RETURN = r"""
ansible_facts:
  description: The facts of this host.
  returned: success
  type: dict
  contains:
    gaudi:
      description: Everything below one name.
      type: dict
      contains:
        installed:
          description: Whether C(hl-smi) is on this host.
          type: bool
          sample: true
        driver_up:
          description: Whether C(hl-smi) reaches the driver.
          type: bool
          sample: true
        driver_version:
          description:
            - Version of the compute driver, a release with a source hash and not a package version. Null when
              not up.
          type: str
          sample: 1.23.0-2eae87a
        nic_driver_version:
          description: Version of the network driver.
          type: str
          sample: 1.23.0-213b09b
        hl_smi_version:
          description:
            - Version of C(hl-smi) itself, which may differ from the driver's. Null unless V(firmware) is
              gathered.
          type: str
          sample: hl-1.23.0-fw-62.2.1.1
        release:
          description: The C(x.y.z) of the driver version, the part to compare with a package version.
          type: str
          sample: 1.23.0
        card_count:
          description: Number of cards.
          type: int
          sample: 8
        firmware:
          description:
            - Firmware name to version where every card has the same version, to null where cards differ.
            - Empty unless V(firmware) is gathered. Names are those of the tool, in lower case.
          type: dict
          sample: {spi: hl-gaudi3-1.23.0-fw-62.2.1-sec-9}
        cards:
          description: The cards in the tool's order.
          type: list
          elements: dict
          contains:
            index:
              description: Accel index, the N of C(/dev/accel/accelN).
              type: int
              sample: 0
            module_id:
              description:
                - Position in the box, the number which collectives and PyTorch use. Its order is not that of
                  the index.
              type: int
              sample: 3
            bus_id:
              description: PCI address with its domain.
              type: str
              sample: "0000:19:00.0"
            name:
              description: Product name.
              type: str
              sample: HL-325L
            uuid:
              description: Identity of the accelerator.
              type: str
              sample: 01P4-HL3090A0-18-ABC123-01-02-03
            serial:
              description: Serial number of the card.
              type: str
              sample: AO00000001
            driver_version:
              description: Driver version that this card reports.
              type: str
              sample: 1.23.0-2eae87a
            memory_total_mib:
              description: Device memory in MiB.
              type: int
              sample: 131072
            memory_used_mib:
              description: Used device memory in MiB. An idle Gaudi 3 uses some hundred.
              type: int
              sample: 672
            memory_free_mib:
              description: Free device memory in MiB.
              type: int
              sample: 130400
            power_draw_w:
              description:
                - Present power draw in watts, the tool's C(power.draw).
                - The vendor's page of 1.24 says that it covers the 54 V rail only. C(power_total_w) has both
                  rails.
              type: int
              sample: 228
            power_max_w:
              description: Power cap in watts. Null where the tool does not offer this field.
              type: int
              sample: 850
            temperature_c:
              description: Temperature in degrees Celsius. 0 means that the card failed to initialise.
              type: int
              sample: 36
            utilization_percent:
              description: Compute utilization.
              type: int
              sample: 0
            memory_utilization_percent:
              description: Memory utilization.
              type: int
              sample: 0
            ecc_mode:
              description:
                - The C(current) ECC mode and the one C(pending) for the next reset, as the tool words them.
              type: dict
              sample: {current: Enabled, pending: Enabled}
            ecc:
              description:
                - Counters of errors of the memory, whole numbers. C(uncorrected) and C(corrected) are all, C(dram)
                  (uncorrected) and C(dram_corrected) those of device memory.
                - Each stands twice, with C(_volatile) since the driver was loaded and with C(_aggregate) over the
                  card's life.
              type: dict
              sample:
                uncorrected_volatile: 0
                uncorrected_aggregate: 0
                corrected_volatile: 0
                corrected_aggregate: 0
                dram_volatile: 0
                dram_aggregate: 0
                dram_corrected_volatile: 0
                dram_corrected_aggregate: 0
            pcie:
              description: The card's PCIe link, as it is and as it could be.
              type: dict
              contains:
                gen_current:
                  description: Generation in use.
                  type: int
                  sample: 5
                gen_max:
                  description: Highest generation.
                  type: int
                  sample: 5
                width_current:
                  description: Lanes in use.
                  type: int
                  sample: 16
                width_max:
                  description: Most lanes.
                  type: int
                  sample: 16
                speed_current:
                  description: Speed in use, as the tool words it.
                  type: str
                  sample: 32GT/s
                speed_max:
                  description: Highest speed.
                  type: str
                  sample: 32GT/s
            clocks:
              description: Clocks in MHz.
              type: dict
              contains:
                soc_current_mhz:
                  description: Present SoC clock.
                  type: int
                  sample: 1600
                soc_max_mhz:
                  description: Highest SoC clock.
                  type: int
                  sample: 1600
                soc_limit_mhz:
                  description: Present limit of the SoC clock.
                  type: int
                  sample: 1600
                tpc_limit_mhz:
                  description: Present limit of the tensor cores' clock.
                  type: int
                  sample: 1600
            violations:
              description: Throttling because of C(power) and C(thermal), as the tool words it.
              type: dict
              sample: {power: "0", thermal: "0"}
            device:
              description: Name of the accel device.
              returned: when V(firmware) is gathered
              type: str
              sample: accel0
            status:
              description: Module status. A card in order is exactly C(Operational).
              returned: when V(firmware) is gathered
              type: str
              sample: Operational
            model:
              description: Model number.
              returned: when V(firmware) is gathered
              type: str
              sample: F08GL0DIG017A
            power_rails_w:
              description: Present power draw in watts of each rail in the detail log, C(54v) and C(12v).
              returned: when V(firmware) is gathered
              type: dict
              sample: {54v: 700, 12v: 35}
            power_total_w:
              description: Present power draw in watts over both rails, null where one of them is unknown.
              returned: when V(firmware) is gathered
              type: int
              sample: 735
            rows_pending:
              description:
                - Whether replaced memory rows wait for a reset of the card. Null where the tool does not say.
                - The label in the detail log is unconfirmed for Gaudi 3.
              returned: when V(firmware) is gathered
              type: bool
              sample: false
            firmware:
              description: This card's firmware, name to version.
              returned: when V(firmware) is gathered
              type: dict
              sample: {spi: hl-gaudi3-1.23.0-fw-62.2.1-sec-9}
            ports:
              description: The card's network ports.
              returned: when V(ports) or V(counters) is gathered
              type: list
              elements: dict
              contains:
                port:
                  description: Number of the port.
                  type: int
                  sample: 8
                type:
                  description:
                    - V(internal) inside the box or V(external) to the switch. Which ones are external depends
                      on the board.
                  type: str
                  sample: external
                link:
                  description: V(up) or V(down), null where the tool does not say.
                  type: str
                  sample: up
                counters:
                  description:
                    - The port's counters under the names that the tool prints.
                    - Which ones a Gaudi 3 has is unconfirmed.
                  returned: when V(counters) is gathered and the tool has some of this port
                  type: dict
                  sample: {pcs_local_faults: 0, pcs_remote_faults: 1}
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gaudi3.scale.plugins.module_utils._hl_smi.card import host_facts
from ansible_collections.gaudi3.scale.plugins.module_utils._hl_smi.command import (
    HL_SMI_SPEC,
    DriverDown,
    HlSmiMissing,
    from_module,
)
from ansible_collections.gaudi3.scale.plugins.module_utils._hl_smi.hl_smi import (
    HlSmiError,
    OddCell,
    odd_cell_warnings,
)


def gather(module: AnsibleModule) -> dict[str, Any]:
    """The facts this host gives."""
    subset = set(module.params["gather_subset"])
    if "all" in subset:
        subset = {"cards", "firmware", "ports", "counters"}
    installed = False
    try:
        tool = from_module(module)
        installed = True
        rows = tool.query()
        log = tool.log() if "firmware" in subset else None
        ports = {}
        for row in rows if subset & {"ports", "counters"} else []:
            found = tool.links(row["bus_id"], tool.ports(row["bus_id"]))
            ports[row["bus_id"].lower()] = tool.counters(row["bus_id"], found) if "counters" in subset else found
    except (HlSmiMissing, DriverDown):
        if not module.params["allow_missing"]:
            raise
        return host_facts([], None, {}, installed=installed, driver_up=False)
    odd: list[OddCell] = []
    facts = host_facts(rows, log, ports, installed=True, driver_up=True, odd=odd)
    for sentence in odd_cell_warnings(odd):
        module.warn(sentence)
    return facts


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec=dict(
            HL_SMI_SPEC,
            gather_subset={
                "type": "list",
                "elements": "str",
                "choices": ["all", "cards", "counters", "firmware", "ports"],
                "default": ["cards", "firmware"],
            },
            allow_missing={"type": "bool", "default": False},
        ),
        supports_check_mode=True,
    )
    try:
        module.exit_json(changed=False, ansible_facts={"gaudi": gather(module)})
    except HlSmiError as error:
        module.fail_json(msg=f"{error}.")


if __name__ == "__main__":
    main()
