#!/usr/bin/python
# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Prepared training data on a node's own disk."""

from __future__ import annotations

DOCUMENTATION = r"""
module: gaudi_dataset
short_description: Keep a prepared set of training data on the node's own disk
version_added: 0.1.0
author:
  - gaudi3.scale contributors (@gaudi3)
description:
  - Copies a set that C(gaudi3-train prepare) made from a folder of the node, such as a mount, or from an object store
    to a local folder. Every file is compared with the SHA-256 of the set's index on the way, and the set has its name
    only when it is whole.
  - A copy that was cut is resumed. Two that ask for a set at once copy it once, and the second one waits.
  - A later run compares sizes and times of change, and reads no file where they are as they were.
options:
  source:
    description:
      - Folder of the set, with its C(index.json). Its last part is the set's name in O(path).
      - With O(remote), bucket and folder there, such as V(corpora/prepared/755fdfaaf01f).
    type: path
    required: true
  remote:
    description:
      - Object store of the set, as rclone names its options. C(type) is required, as V(s3) is one. rclone must be
        installed, and reads nothing else, no configuration of its own either. A secret in it is refused.
    type: dict
  remote_secrets:
    description: Options of O(remote) that are secrets. rclone has them in its environment alone.
    type: dict
    default: {}
  path:
    description: Local folder of the sets; it is made where missing. It may not be in O(source), nor O(source) in it.
    type: path
    required: true
  budget_bytes:
    description:
      - Bytes that all sets in O(path) may take; V(0) is no limit. Sets that this module copied and nothing uses go for
        the new one, least recently asked for first.
      - A set is in use while a process has a file of it in its memory, as the trainer has, or holds a shared lock
        (C(flock -s)) on C(.NAME.lock) in O(path), and while one of its O(users) is recorded.
    type: int
    default: 0
  keep:
    description: Names of further sets that do not go for this one.
    type: list
    elements: str
    default: []
  users:
    description:
      - Who uses the set from now on, be it running or waiting to run. A name is a systemd unit of the node, as
        V(gaudi-train-demo.service), or one of your own.
      - It is recorded until O(state=unused). The unit of a job of M(gaudi3.scale.gaudi_train) with its C(datasets)
        takes its own record back when it ends. After a boot a unit counts only if it runs or the boot starts it.
    type: list
    elements: str
    default: []
  lock_timeout:
    description:
      - Seconds to wait while another copies into O(path) or removes from it. After that the module fails, and names
        the process.
    type: int
    default: 3600
  verify:
    description: Read every file of the set that is there, and copy those again whose SHA-256 differs.
    type: bool
    default: false
  state:
    description:
      - V(absent) removes the set, if this module copied it and nothing uses it. The source stays.
      - V(used) records O(users) of a set that is there, and V(unused) takes their records back. Of O(source) only
        the last part counts then.
    type: str
    choices: [present, absent, used, unused]
    default: present
  rclone_executable:
    description: The program of rclone.
    type: path
    default: rclone
  systemctl_executable:
    description: The program that asks systemd.
    type: path
    default: systemctl
  proc_root:
    description: Where the kernel's files of processes are.
    type: path
    default: /proc
attributes:
  check_mode:
    description: Refuses and reports the same, and changes nothing.
    support: full
  diff_mode:
    description: Shows which files are copied and why, and which sets go.
    support: full
  platform:
    description: Linux.
    platforms: linux
    support: full
notes:
  - Units of systemd are asked for by C(systemctl), and only after a boot.
  - The index has no digests of the tokenizer's files; these are compared by name and size.
"""

EXAMPLES = r"""
- name: Bring the data to the node
  gaudi3.scale.gaudi_dataset:
    source: /mnt/prepared/755fdfaaf01f
    path: /data
    budget_bytes: 2000000000000

- name: Bring the data from an object store
  gaudi3.scale.gaudi_dataset:
    source: corpora/prepared/755fdfaaf01f
    path: /data
    remote: {type: s3, provider: Ceph, endpoint: "https://objects.example.com"}
    remote_secrets:
      access_key_id: "{{ vault_corpora_key }}"
      secret_access_key: "{{ vault_corpora_secret }}"

- name: Keep it for a job that waits in a queue
  gaudi3.scale.gaudi_dataset:
    source: 755fdfaaf01f
    path: /data
    users: [nightly-42]
    state: used
"""

RETURN = r"""
folder: {description: "The set on the node.", returned: success, type: str, sample: /data/755fdfaaf01f}
copied:
  description: Bytes of the files that were copied. What a cut copy had of a file counts with it.
  returned: success
  type: int
  sample: 62
copied_files:
  description: Why each file was copied, by its name. It was missing, its size differed, or it was changed.
  returned: success
  type: dict
  sample: {shard-00000.bin: missing}
evicted: {description: "Names of the sets that went for it.", returned: success, type: list, elements: str, sample: []}
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gaudi3.scale.plugins.module_utils._module_bodies import dataset


def main() -> None:
    """Run the module."""
    # The node's journal gets no options: a secret in the wrong one is refused only after they would be written there.
    module = AnsibleModule(argument_spec=dataset.ARGUMENT_SPEC, supports_check_mode=True, no_log=True)
    module.exit_json(**dataset.run(module))


if __name__ == "__main__":
    main()
