#!/usr/bin/python
# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

from __future__ import annotations

DOCUMENTATION = r"""
module: gaudi_train_node_info
short_description: "Internal to the collection: tell what a node offers a training job"
version_added: 0.1.0
author:
  - gaudi3.scale contributors (@gaudi3)
description:
  - Finds the interface on which this node meets the others of a job, the device files of the cards and whether the
    job's user can open them, the module ids of the cards that work, and whether a script of one's own is there.
  - The device files are looked at and not opened, since the driver resets a card when its file is closed.
options:
  address:
    description: This node's own address or name on the cluster's network.
    type: str
    default: ""
  peers:
    description:
      - Addresses or names of the other nodes. Where no interface has O(address), the one of the way to the first of
        them that is found is taken.
    type: list
    elements: str
    default: []
  user:
    description: User as whom the job runs. One that does not exist yet has no groups.
    type: str
    default: gaudi3-scale
  groups:
    description:
      - Groups which the user is given beside its own.
      - If omitted, those that own the device files, root's excepted.
    type: list
    elements: str
  directory:
    description: Folder of the jobs, which nodes may share.
    type: path
  script:
    description: Script of a job's command, which is to be there and readable for O(user).
    type: path
  paths:
    description: Files and folders that are to be there, for RV(missing).
    type: list
    elements: str
    default: []
  readable:
    description: Files and folders that O(user) is to read, for RV(unreadable).
    type: list
    elements: str
    default: []
  processes:
    description: Processes of the job on this node, for RV(offer).
    type: int
    default: 0
  cards:
    description: Cards of the node, for RV(offer). Absent where they do not count.
    type: int
  uid:
    description: Number that O(user) is to have, for RV(offer). If omitted, the one that it has.
    type: int
extends_documentation_fragment:
  - gaudi3.scale.read_only
attributes:
  platform:
    description: Linux.
    platforms: linux
    support: full
seealso:
  - module: gaudi3.scale.gaudi_train
"""

EXAMPLES = r"""
- name: Look at what the node offers
  gaudi3.scale.gaudi_train_node_info:
    address: 10.0.0.11
  register: node

- name: Stop where the job's user cannot open a card
  ansible.builtin.assert:
    that: node.closed | length == 0
    fail_msg: "{{ node.closed | map(attribute='path') | join(', ') }}"
"""

RETURN = r"""
interface:
  description: The interface on which the nodes of a job meet; null where none was found.
  returned: success
  type: str
  sample: eth0
groups:
  description: The groups which the user is given beside its own.
  returned: success
  type: list
  elements: str
  sample: [render]
unknown_groups:
  description: Those of them that the node does not have.
  returned: success
  type: list
  elements: str
  sample: []
files:
  description: Number of device files that were found; 0 before the driver is loaded.
  returned: success
  type: int
  sample: 40
closed:
  description: Device files that the user cannot open.
  returned: success
  type: list
  elements: dict
  contains:
    path: {description: "The file.", type: str, sample: /dev/accel/accel0}
    owner: {description: "Its owner.", type: str, sample: root}
    group: {description: "Its group.", type: str, sample: render}
    mode: {description: "Its mode, four octal digits.", type: str, sample: "0660"}
uid:
  description: Number of O(user) on this node; null where it does not exist yet.
  returned: success
  type: int
  sample: 998
network_source:
  description: What is mounted at O(directory) from the network, which nodes with the same one share; null otherwise.
  returned: success
  type: str
  sample: nas:/jobs
script:
  description: What is known of O(script); null where none was asked for.
  returned: success
  type: dict
  contains:
    path: {description: "The script.", type: str, sample: /srv/mine/train.py}
    there: {description: "Whether it is a file on this node.", type: bool, sample: true}
    closed:
      description:
        - The first folder on the way to it, or itself, that the user cannot enter, read or (unless its name ends with
          C(.py)) execute; null if there is none.
      type: str
      sample: /home/someone
missing:
  description: Those of O(paths) that are not there, as they were given.
  returned: success
  type: list
  elements: str
  sample: [/data/corpus]
unreadable:
  description: Those of O(readable) that O(user) cannot read.
  returned: success
  type: list
  elements: dict
  contains:
    path: {description: "The file or folder, as it was given.", type: str, sample: /models/llama}
    closed:
      description: The first folder on the way to it, or itself, that is closed to the user; null where it is not there.
      type: str
      sample: /models
  sample: []
modules:
  description: Module ids of the cards that are operational; null before the driver is loaded.
  returned: success
  type: list
  elements: int
  sample: [0, 1, 2, 3, 4, 5, 6, 7]
driver:
  description: Version of the driver that is loaded, as MAJOR.MINOR.PATCH; null before it is.
  returned: success
  type: str
  sample: 1.23.0
offer:
  description: What the node brings to a job, of which the cards of all nodes are chosen.
  returned: success
  type: dict
  contains:
    processes: {description: "O(processes).", type: int, sample: 8}
    cards: {description: "O(cards); null where they do not count.", type: int, sample: 8}
    modules: {description: "RV(modules).", type: list, elements: int, sample: [0, 1, 2, 3, 4, 5, 6, 7]}
    held: {description: "RV(held_modules).", type: list, elements: int, sample: []}
    uid: {description: "O(uid), or else RV(uid).", type: int, sample: 990}
    shares: {description: "RV(network_source).", type: str, sample: "storage:/jobs"}
held_modules:
  description: Those of them whose card a process has open.
  returned: success
  type: list
  elements: int
  sample: []
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gaudi3.scale.plugins.module_utils._module_bodies import train_node


def main() -> None:
    """Run the module."""
    module = AnsibleModule(argument_spec=train_node.ARGUMENT_SPEC, supports_check_mode=True)
    module.exit_json(**train_node.run(module))


if __name__ == "__main__":
    main()
