#!/usr/bin/python
# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Holds switch configurations and cables against what the site wants of its fabric."""

from __future__ import annotations

DOCUMENTATION = r"""
module: gaudi_fabric_lint
short_description: Tell where switches and cables of the fabric disagree with what the site wants
version_added: 0.1.0
author: gaudi3.scale contributors (@gaudi3)
description:
  - Reads the configuration of switches from files, and the hosts' neighbours as C(lldpcli) tells them. Each port that
    is not as O(wanted) is named, with the rule, what is given, what is wanted and what to do.
  - What it does not understand in a configuration is a finding of rule C(unread), where it may be about the same
    subject.
  - Runs on the controller and changes nothing. Nobody logs in to a switch.
options:
  switches:
    description: The switches.
    type: list
    elements: dict
    default: []
    suboptions:
      name:
        description: Name of the switch, as it tells its neighbours.
        type: str
        required: true
      syntax:
        description:
          - Language of the configuration. V(sonic) is C(config_db.json), V(eos) and V(nxos) C(show running-config), and
            V(cumulus) C(nv config show -o commands).
        type: str
        choices: [cumulus, eos, nxos, sonic]
        required: true
      path:
        description: File with the configuration.
        type: path
        required: true
      ports:
        description: Ports to judge, besides those that hosts are plugged into by O(neighbours) and O(cables).
        type: list
        elements: str
        default: []
  neighbours:
    description: What C(lldpcli -f json show neighbors details) prints on each host, by the host's name.
    type: dict
    default: {}
  host_mtus:
    description: Frame size of the ports of each host, by host and port. A switch's port has to carry as much.
    type: dict
    default: {}
  wanted:
    description: What is wanted of each port. What is not given is not judged.
    type: dict
    default: {}
    suboptions:
      mtu: {description: "Least bytes of a frame.", type: int}
      pfc:
        description:
          - Priorities that are paused instead of dropped, these and no other. The vendor's example for Gaudi 3
            has 0 to 3.
        type: list
        elements: int
      dscp:
        description:
          - The priority of each DSCP. Public sources contradict each other on which of 16 and 24 is data and which
            acknowledgement, so there is no default.
        type: dict
      ecn:
        description: C(min) and C(max) in bytes, by priority. The vendor names no thresholds for Gaudi 3.
        type: dict
      vlan: {description: "VLAN of frames without a tag.", type: int}
extends_documentation_fragment:
  - gaudi3.scale.cables
  - gaudi3.scale.read_only
attributes:
  platform:
    description: The controller.
    platforms: posix
    support: full
seealso:
  - module: gaudi3.scale.gaudi_pair_search
"""

EXAMPLES = r"""
- name: Hold a switch against what the site wants
  gaudi3.scale.gaudi_fabric_lint:
    switches:
      - {name: leaf1, syntax: eos, path: leaf1.cfg, ports: [Ethernet1/1]}
    wanted:
      mtu: 9000
      pfc: [0, 1, 2, 3]
  delegate_to: localhost
  run_once: true
  register: fabric

- name: Stop where a port is otherwise
  ansible.builtin.assert:
    that: fabric.ok
    fail_msg: "{{ fabric.findings }}"
"""

RETURN = r"""
ok:
  description: Whether there is no finding and no cable is otherwise than meant.
  returned: success
  type: bool
  sample: false
findings:
  description: Ports that are not as wanted.
  returned: success
  type: list
  elements: dict
  contains:
    switch: {description: "Name of the switch.", type: str, sample: leaf1}
    port: {description: "Its port, empty for what is of the whole switch.", type: str, sample: Ethernet1/1}
    rule:
      description: V(mtu), V(host-mtu), V(pfc), V(dscp), V(ecn), V(vlan), V(no-port), V(no-switch) or V(unread).
      type: str
      sample: mtu
    given: {description: "What the configuration has.", type: str, sample: "1500"}
    wanted: {description: "What is wanted.", type: str, sample: 9000 or more}
    cure: {description: "What to do.", type: str, sample: set the MTU of Ethernet1/1 to 9000}
cables:
  description: The cables that the neighbours tell.
  returned: success
  type: list
  elements: dict
  sample: [{host: gaudi-1, port: hl0, switch: leaf1, switch_port: Ethernet1/1}]
miswired:
  description:
    - Cables that are not as meant, with C(rule), C(host), C(port), C(given), C(wanted) and C(cure). The rule is
      V(miswired), V(missing), V(doubled), V(shared), V(unknown), or V(silent) for a host without an answer.
  returned: success
  type: list
  elements: dict
switches:
  description:
    - How many ports of each switch were judged, how many of its lines were not understood, and how many are about other
      subjects.
  returned: success
  type: list
  elements: dict
  sample: [{name: leaf1, ports: 24, unread: 0, other_subjects: 112}]
not_judged:
  description: What O(wanted) says nothing of.
  returned: success
  type: list
  elements: str
  sample: [dscp, ecn, vlan]
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gaudi3.scale.plugins.module_utils._fabric_lint.cabling import ARGUMENT_SPEC
from ansible_collections.gaudi3.scale.plugins.module_utils._fabric_lint.request import look
from ansible_collections.gaudi3.scale.plugins.module_utils._fabric_lint.rules import SYNTAXES, wanted
from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal


def main() -> None:
    """Run the module."""
    text: dict[str, Any] = {"type": "str", "required": True}
    module = AnsibleModule(
        argument_spec={
            "switches": {
                "type": "list",
                "elements": "dict",
                "default": [],
                "options": {
                    "name": text,
                    "syntax": {"type": "str", "required": True, "choices": list(SYNTAXES)},
                    "path": {"type": "path", "required": True},
                    "ports": {"type": "list", "elements": "str", "default": []},
                },
            },
            "neighbours": {"type": "dict", "default": {}},
            "cables": ARGUMENT_SPEC,
            "host_mtus": {"type": "dict", "default": {}},
            "wanted": {
                "type": "dict",
                "default": {},
                "options": {
                    "mtu": {"type": "int"},
                    "pfc": {"type": "list", "elements": "int"},
                    "dscp": {"type": "dict"},
                    "ecn": {"type": "dict"},
                    "vlan": {"type": "int"},
                },
            },
        },
        supports_check_mode=True,
    )
    given = module.params
    try:
        goal = wanted(given["wanted"])
        verdict = look(given["switches"], given["neighbours"], given["cables"], goal, given["host_mtus"])
    except Refusal as refusal:
        module.fail_json(msg=str(refusal))
    module.exit_json(changed=False, **verdict.as_facts())


if __name__ == "__main__":
    main()
