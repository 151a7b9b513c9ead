#!/usr/bin/python
# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""One report of a Gaudi node: what it is, what is odd about it, and what its cards compute."""

from __future__ import annotations

DOCUMENTATION = r"""
module: gaudi_doctor_info
short_description: Examine a Gaudi node and report what is odd
version_added: 0.1.0
author: gaudi3.scale contributors (@gaudi3)
description:
  - Collects what is needed to understand a node - kernel, packages, modules, device files, cards, IOMMU groups,
    firmware, the texts and the times of C(hl-smi), counters, environment, versions of the Python that has torch.
  - With O(cards) it also computes on the cards, each probe in a process of its own with a limit of time.
  - Names and addresses of machines, serial numbers and secrets are taken out, and the report stays below 1 MB, so
    that it can be sent on. Each open question of C(docs/understand/hardware-status.md) names the section that
    answers it.
  - It is the same as C(gaudi3-train doctor --json), and needs no trainer on the node.
notes:
  - As root it sees the kernel log, other users' processes and who can open the device files. Without root, what
    cannot be read is reported as not tried.
  - The node's Python has to be 3.9 or newer.
options:
  cards:
    description:
      - Compute on the cards, which have to be free, with the first of O(pythons) that exists.
    type: bool
    default: false
  consent:
    description:
      - What may be tried besides, with O(cards), although it disturbs or kills processes of its own.
      - V(kill-holder) kills a process that holds a card, and tries to get the card again.
      - V(lost-peer) kills and stops one of two processes that exchange data.
      - V(part-of-node) runs collectives over 3, 5, 6 and 7 cards.
      - V(translated-iommu) computes although the IOMMU translates the cards' addresses, which has brought a host down.
    type: list
    elements: str
    choices: [kill-holder, lost-peer, part-of-node, translated-iommu]
    default: []
  quick:
    description: Few repetitions and small tensors, as a rehearsal. The figures answer nothing.
    type: bool
    default: false
  user:
    description: Who runs jobs. What touches the cards is tried as this user. If omitted, as the user of the task.
    type: str
    default: ""
  pythons:
    description: Interpreters that may have torch.
    type: list
    elements: path
    default: [/opt/gaudi3-scale/venv/bin/python, /usr/bin/python3]
  environment_files:
    description: Files of variables that the unit of a job reads.
    type: list
    elements: path
    default: [/etc/gaudi3-scale/fabric.env]
  exporter_ports:
    description: TCP ports on which exporters of the cards' metrics listen. Of their pages only names are kept.
    type: list
    elements: int
    default: [41611]
  package:
    description: The examination itself, which the controller fills in.
    type: str
extends_documentation_fragment:
  - gaudi3.scale.read_only
attributes:
  action:
    description: The controller sends the examination to the node.
    support: full
  platform:
    description: Linux.
    platforms: linux
    support: full
"""

EXAMPLES = r"""
- name: Examine the node
  gaudi3.scale.gaudi_doctor_info:
  register: doctor

- name: Show what is odd
  ansible.builtin.debug:
    var: doctor.text

- name: Let the cards compute too
  gaudi3.scale.gaudi_doctor_info:
    cards: true
    user: gaudi3-scale
"""

RETURN = r"""
report:
  description: The whole report, as C(gaudi3-train doctor --json) writes it.
  returned: success
  type: dict
  contains:
    format: {description: "Version of this structure.", type: int, sample: 1}
    created: {description: "When it was made.", type: str, sample: 2026-11-22 08:30 UTC}
    simulated:
      description:
        - Whether the node's own tools and device say that they are simulated. None of its times is a Gaudi's then.
      type: bool
      sample: false
    sections:
      description: >-
        By name, each with its C(state) (fine, odd, failed or not tried), its C(seconds), its sentences on what is
        C(odd), or C(why) it was not tried, and its C(data).
      type: dict
      sample: {cards: {state: fine, seconds: 0.02, data: {}}}
summary:
  description: The report in one line.
  returned: success
  type: str
  sample: 8 Gaudi cards, driver 1.23.0-2eae87a, Ubuntu 24.04.2 LTS, kernel 6.8.0; nothing odd; 14 fine; 14 not tried
text:
  description: The report in words, one screen, by lines.
  returned: success
  type: list
  elements: str
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal
from ansible_collections.gaudi3.scale.plugins.module_utils._trainer.doctor import CONSENTS, unpack


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "cards": {"type": "bool", "default": False},
            "consent": {"type": "list", "elements": "str", "choices": list(CONSENTS), "default": []},
            "quick": {"type": "bool", "default": False},
            "user": {"type": "str", "default": ""},
            "pythons": {
                "type": "list",
                "elements": "path",
                "default": ["/opt/gaudi3-scale/venv/bin/python", "/usr/bin/python3"],
            },
            "environment_files": {"type": "list", "elements": "path", "default": ["/etc/gaudi3-scale/fabric.env"]},
            "exporter_ports": {"type": "list", "elements": "int", "default": [41611]},
            "package": {"type": "str", "no_log": True},
        },
        supports_check_mode=True,
    )
    asked = dict(module.params)
    package = asked.pop("package")
    if not package:
        module.fail_json(msg="The examination was not sent along: call this as gaudi3.scale.gaudi_doctor_info.")
    try:
        doctor = unpack(package, module.tmpdir)
    except Refusal as error:
        module.fail_json(msg=str(error))
    options = doctor.Options(
        **{key: tuple(value) if isinstance(value, list) else value for key, value in asked.items()}
    )
    report = doctor.examine(options)
    module.exit_json(
        changed=False, report=report, summary=doctor.summary(report), text=doctor.text(report).splitlines()
    )


if __name__ == "__main__":
    main()
