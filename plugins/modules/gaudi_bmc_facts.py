#!/usr/bin/python
# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""What a machine's management controller says of its Gaudi 3 cards, as Ansible facts."""

from __future__ import annotations

DOCUMENTATION = r"""
module: gaudi_bmc_facts
short_description: Ask a management controller (BMC) about the Gaudi 3 cards of its machine
version_added: 0.1.0
author:
  - gaudi3.scale contributors (@gaudi3)
description:
  - Reads the management controller over Redfish and returns what it says of the machine's Gaudi 3 cards as
    C(ansible_facts.gaudi_bmc). That works while the machine is off or hangs, and is a second opinion while it runs.
  - Sends GET requests alone. No record of events is deleted, no session is left behind and nothing is switched. Give it
    an account that may only read.
  - TLS is always verified, by the certificate of an authority or by the fingerprint of the controller's own. The
    password goes into a header, never into an address. No proxy is asked and no redirect is followed.
  - Follows the published Redfish model of Gaudi 3. It was not seen on hardware yet, see
    C(docs/understand/hardware-status.md) of the collection. Gaudi 2 has another model.
notes:
  - Run it where the management network can be reached, as a rule on the controller with C(delegate_to).
  - A resource that the controller does not have is named in C(absent), one that it did not give in time in C(unread).
    The task fails only if the controller as a whole cannot be read.
options:
  address:
    description:
      - Name or address of the management controller, with a port where it is not 443. As a rule it is
        C(gaudi_bmc_address) of the inventory.
    type: str
    required: true
  user:
    description: User of an account that may read.
    type: str
    required: true
  password:
    description: The user's password.
    type: str
    required: true
  ca_path:
    description:
      - File with the certificate of the authority that signed the controller's, as PEM. The default are the authorities
        that the host trusts anyway.
    type: path
  fingerprint:
    description:
      - SHA-256 of the controller's own certificate, as C(openssl x509 -fingerprint -sha256 -noout) prints it. It takes
        the place of O(ca_path) for a certificate that nobody signed or that names another host.
    type: str
  ports:
    description: Whether to read the network ports of the cards too, which are 24 more answers for each card.
    type: bool
    default: false
  timeout:
    description: Seconds for everything. What was not read by then is named in C(unread).
    type: int
    default: 120
extends_documentation_fragment:
  - gaudi3.scale.read_only
"""

EXAMPLES = r"""
- name: Ask the management controller
  gaudi3.scale.gaudi_bmc_facts:
    address: "{{ gaudi_bmc_address }}"
    user: monitor
    password: "{{ vault_bmc_password }}"
    ca_path: /etc/ssl/bmc-ca.pem
  delegate_to: localhost

- name: Show what it has to say
  ansible.builtin.debug:
    msg: "{{ ansible_facts.gaudi_bmc.said }}"
"""

RETURN = r"""
ansible_facts:
  description: The facts of the machine.
  returned: success
  type: dict
  contains:
    gaudi_bmc:
      description: Everything below one name.
      type: dict
      contains:
        product:
          description: What the service calls itself; the simulator's stand-in says so here.
          type: str
          sample: gaudi3-simulator stand-in, no management controller is real
        power:
          description: The machine's power, V(On) or V(Off), in the controller's word.
          type: str
          sample: "On"
        card_count:
          description: Cards that it lists.
          type: int
          sample: 8
        cards:
          description: >-
            The cards. Values are as the controller has them: numbers, texts of one printable line, or truth values. A
            value that it does not have is left out.
          type: list
          elements: dict
          contains:
            oam:
              description: Number of the card's place, from C(OAM_N).
              type: int
              sample: 3
            serial:
              description: Serial number.
              type: str
              sample: AM27043696
            firmware:
              description: Versions of firmware and driver, security versions, and which keys are revoked.
              type: dict
            status:
              description: Boot stage, state of the chip, activity, and whether and why it is slowed down.
              type: dict
            temperatures:
              description: >-
                Sensors C(soc), C(hbm), C(card), C(board) and C(vrm), each with C(reading), C(unit), C(upper_caution)
                and C(upper_critical). The unit is V(Cel), or null where the controller names none that is known.
              type: dict
              sample: {soc: {reading: 36.0, unit: Cel, upper_caution: null, upper_critical: null}}
            power:
              description: The rails C(soc_54v) and C(soc_12v), in the same way, in V(W).
              type: dict
              sample: {soc_54v: {reading: 226.0, unit: W, upper_caution: null, upper_critical: null}}
            memory:
              description: Errors and replaced rows of HBM.
              type: dict
              sample: {single_errors: 0, double_errors: 0, rows_replaced_for_good: 0}
            sram:
              description: Errors of SRAM.
              type: dict
              sample: {single_errors: 0, double_errors: 0}
            alerts:
              description: >-
                Alerts that are raised, and fields of alerts whose value has no published meaning (C(state) is
                V(unclear)). C(severity) and C(action) are advice for a person; nothing acts upon them.
              type: list
              elements: dict
              sample:
                - field: Watchdog.Heartbeat
                  name: HEARTBEAT
                  state: raised
                  value: 1
                  severity: error
                  action: reload
                  message: "OAM_3: the card's firmware does not answer (Watchdog.Heartbeat is 1)"
            ports:
              description: The ports, with O(ports) only.
              type: list
              elements: dict
        said:
          description: What a person has to know of it, a sentence each; empty where all is in order.
          type: list
          elements: str
          sample: ["OAM_3: the card's firmware does not answer (Watchdog.Heartbeat is 1)"]
        complete:
          description: Whether it gave every answer, apart from resources that it does not have.
          type: bool
          sample: true
        absent:
          description: Resources that it does not have, the first 20.
          type: list
          elements: str
          sample: [Chassis/OAM_0/Sensors/cTemp]
        unread:
          description: Resources that it did not give, each with the reason, the first 20.
          type: list
          elements: str
          sample: []
        read_at:
          description: When it was read, in seconds since 1970.
          type: float
          sample: 1795878000.123
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gaudi3.scale.plugins.module_utils._bmc.cards import Reader
from ansible_collections.gaudi3.scale.plugins.module_utils._bmc.redfish import Controller, Trust, endpoint_of
from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "address": {"type": "str", "required": True},
            "user": {"type": "str", "required": True},
            "password": {"type": "str", "required": True, "no_log": True},
            "ca_path": {"type": "path"},
            "fingerprint": {"type": "str"},
            "ports": {"type": "bool", "default": False},
            "timeout": {"type": "int", "default": 120},
        },
        mutually_exclusive=[["ca_path", "fingerprint"]],
        supports_check_mode=True,
    )
    given = module.params
    if given["timeout"] < 1:
        module.fail_json(msg=f"timeout was {given['timeout']}: give 1 second or more.")
    # Of an address with a password in it, which is refused, nothing may be shown either.
    before = given["address"].rpartition("@")[0]
    module.no_log_values.update([before] if before else [])
    try:
        trust = Trust(given["ca_path"], given["fingerprint"])
        with Controller(
            endpoint_of(given["address"]), trust, given["user"], given["password"], given["timeout"]
        ) as controller:
            machine = Reader(controller).machine(given["ports"])
    except Refusal as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=False, ansible_facts={"gaudi_bmc": {**machine.as_facts(), "said": machine.said}})


if __name__ == "__main__":
    main()
