#!/usr/bin/python
# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""The versions of a node, whether they go together, and the shortest way to those that are wished for."""

from __future__ import annotations

DOCUMENTATION = r"""
module: gaudi_release_info
short_description: Tell whether the versions of a Gaudi node go together
version_added: 0.1.0
author: gaudi3.scale contributors (@gaudi3)
description:
  - Reads system, kernels, cards, driver, packages, firmware and PyTorch of a node, and holds them against the
    collection's matrix of what goes together. Each pair that does not is named, with the rule, its source and what to
    change.
  - Also tells the shortest way to O(to), or to versions that go together - which release when, which boots, by which
    rule, and what breaks on the way.
  - Reads files and the package database. Nothing is imported, loaded or changed.
options:
  pythons:
    description: Interpreters of environments that may have PyTorch. The first that has it counts.
    type: list
    elements: path
    default: [/opt/gaudi3-scale/torch/bin/python, /opt/gaudi3-scale/venv/bin/python]
  image:
    description: The container image that computes on the node, by its whole name.
    type: str
    default: ""
  vllm:
    description: Version of the vLLM that serves there, such as V(0.26.0) or the fork's V(0.7.2+Gaudi-1.21.0).
    type: str
    default: ""
  keep:
    description: Parts that are to stay as they are. The others follow them, and are named where they do not fit.
    type: list
    elements: str
    choices: [image, plugin, vllm, driver, packages]
    default: []
  to:
    description:
      - What is wished for, by name - C(release), C(system), C(torch), C(vllm) or C(preboot).
      - Without it the way leads to the nearest versions that go together.
    type: dict
    default: {}
  confirmed:
    description: Whether the way leads over pairs alone that a source confirms.
    type: bool
    default: false
extends_documentation_fragment:
  - gaudi3.scale.read_only
attributes:
  platform:
    description: Linux.
    platforms: linux
    support: full
"""

EXAMPLES = r"""
- name: Look at the versions of the node
  gaudi3.scale.gaudi_release_info:
  register: versions

- name: Stop where they do not go together
  ansible.builtin.assert:
    that: versions.consistent
    fail_msg: "{{ versions.findings | map(attribute='sentence') | join(' ') }}"

- name: Ask for the way to PyTorch 2.11
  gaudi3.scale.gaudi_release_info:
    to:
      torch: "2.11"
  register: way
"""

RETURN = r"""
versions:
  description: What is installed and runs, as C(gaudi3-deploy versions --facts) takes it. What is not known is left out.
  returned: success
  type: dict
  sample: {system: Ubuntu 24.04, kernel: 6.8.0-51-generic, generation: gaudi3, driver: 1.23.0-2eae87a}
cards:
  description: How many devices of the vendor are on the PCI bus.
  returned: success
  type: int
  sample: 8
firmware:
  description: Preboot firmware by the card's address, of the cards that the driver shows.
  returned: success
  type: dict
  sample: {"0000:19:00.0": hl-gaudi3-1.23.0-fw-62.2.1-sec-9}
held:
  description: Packages of the vendor that dpkg holds back.
  returned: success
  type: list
  elements: str
  sample: [habanalabs-dkms]
consistent:
  description: Whether no pair is forbidden.
  returned: success
  type: bool
  sample: false
culprit:
  description: The part to change first, empty where none has to be.
  returned: success
  type: str
  sample: plugin
findings:
  description: Pairs that do not go together, in the order in which to put them right, and those that nothing confirms.
  returned: success
  type: list
  elements: dict
  contains:
    rule: {description: "Name of the rule.", type: str, sample: plugin-driver}
    level: {description: "V(forbidden) or V(unconfirmed).", type: str, sample: forbidden}
    pair: {description: "The two parts.", type: list, elements: str, sample: [plugin 1.22.0, driver 1.23.0]}
    culprit: {description: "The part to change.", type: str, sample: plugin}
    sentence:
      description: What is wrong.
      type: str
      sample: Kernel 6.8.0-60-generic has no Gaudi driver and comes with the next boot.
    source: {description: "Where the rule is from, or V(unconfirmed).", type: str}
    cure: {description: "What to do.", type: str, sample: install the PyTorch of 1.23.0}
path:
  description: The shortest way. Null where there is none.
  returned: success
  type: dict
  contains:
    steps:
      description: What to do, in order, each with C(kind), C(what), C(boots), C(because), C(source) and C(breaks).
      type: list
      elements: dict
    changes: {description: "Changes of release, system, kernel and firmware.", type: int, sample: 2}
    boots: {description: "How often the node boots.", type: int, sample: 1}
    release: {description: "Release at its end.", type: str, sample: 1.24.1-482}
    system: {description: "System at its end.", type: str, sample: RedHat 9.6}
    cautions: {description: "Sentences on pairs of the end that nothing confirms.", type: list, elements: str}
    no_way: {description: "The same as RV(no_way), which is empty here.", type: str}
no_way:
  description: Why there is no way, in one sentence. Empty where there is one.
  returned: success
  type: str
  sample: ""
"""

import os

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gaudi3.scale.plugins.module_utils._cards import pci
from ansible_collections.gaudi3.scale.plugins.module_utils._driver.versions_found import Places, firmware, held, look
from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal
from ansible_collections.gaudi3.scale.plugins.module_utils._release.journey import KEEP, check_goal, journey
from ansible_collections.gaudi3.scale.plugins.module_utils._release.rules import check, consistent, culprit


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "pythons": {
                "type": "list",
                "elements": "path",
                "default": ["/opt/gaudi3-scale/torch/bin/python", "/opt/gaudi3-scale/venv/bin/python"],
            },
            "image": {"type": "str", "default": ""},
            "vllm": {"type": "str", "default": ""},
            "keep": {"type": "list", "elements": "str", "choices": list(KEEP), "default": []},
            "to": {"type": "dict", "default": {}},
            "confirmed": {"type": "bool", "default": False},
        },
        supports_check_mode=True,
    )
    given, keep = module.params, tuple(module.params["keep"])

    def run(command: list[str]) -> tuple[int, str, str]:
        if module.get_bin_path(command[0]) is None:
            return 127, "", ""
        code, output, errors = module.run_command(command)
        return int(code), str(output), str(errors)

    try:
        wanted = check_goal({str(name): str(value) for name, value in given["to"].items()})
        node = look(run, os.uname().release, given["pythons"], Places(), given["image"], given["vllm"])
    except Refusal as error:
        module.fail_json(msg=str(error))
    findings = check(node, keep=keep)
    try:
        way = journey(node, wanted, keep=keep, confirmed=given["confirmed"])
        no_way, path = way.no_way, None if way.no_way else way.as_facts()
    except Refusal as error:
        no_way, path = str(error), None
    module.exit_json(
        changed=False,
        versions=node.as_facts(),
        cards=len(pci.cards()),
        firmware=firmware(Places()),
        held=held(run),
        consistent=consistent(findings),
        culprit=culprit(findings),
        findings=[each.as_facts() for each in findings],
        path=path,
        no_way=no_way,
    )


if __name__ == "__main__":
    main()
