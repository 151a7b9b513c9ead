#!/usr/bin/python
# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""A backup of a machine, put back and compared."""

from __future__ import annotations

DOCUMENTATION = r"""
module: gaudi_restore
short_description: Restore a backup of a machine, and compare every file
version_added: 0.1.0
author:
  - gaudi3.scale contributors (@gaudi3)
description:
  - Takes the newest whole snapshot of a machine, compares its content with its list, puts each item in its place as a
    whole, and compares every file, mode and owner afterwards. What is as in the backup stays untouched.
  - Install the services first, as files belong to their users, and stop those whose data is restored.
options:
  repository:
    description:
      - Where the backups lie, as restic names it. That is an absolute path, or an address such as
        V(sftp:backup@store:/srv/gaudi) and V(s3:https://store/bucket).
      - One repository for each machine keeps its secrets from the others, as all who have the password read all of it.
    type: str
    required: true
  password:
    description:
      - The password that encrypts the repository. Nobody can read a backup without it, so keep it elsewhere.
      - It is given to restic in its environment, and written nowhere.
    type: str
    required: true
  environment:
    description: What the store asks for, such as C(AWS_ACCESS_KEY_ID) and C(AWS_SECRET_ACCESS_KEY).
    type: dict
    default: {}
  host:
    description: The name of the machine in the repository.
    type: str
    required: true
  kinds:
    description: What the machine is, which says where its state lies. What is not there is left out.
    type: list
    elements: str
    choices: [monitoring, node, slurm, controller]
    default: []
  folders:
    description: Folders by the names that they have in the backup, such as a controller's C(secrets).
    type: dict
    default: {}
  paths:
    description: Further files and folders.
    type: list
    elements: path
    default: []
  working_folder:
    description: Folder for the copies of a run and restic's cache. It is made where missing, for its owner alone.
    type: path
    default: /var/lib/gaudi3-backup
  root:
    description: Folder below which the machine's files lie, such as a mounted disk. MariaDB is then left out.
    type: path
    default: /
  restic_executable:
    description: The program restic, of version 0.14 or later.
    type: str
    default: restic
  snapshot:
    description: V(latest) is the newest whole one; or the name of one, which has to be whole.
    type: str
    default: latest
  overwrite:
    description:
      - Whether an item whose place is not empty is replaced. What was there before stays beside it as
        C(NAME.before-TIME). Otherwise that is refused.
    type: bool
    default: false
attributes:
  check_mode:
    description: Refuses and reports the same, but for services that run, and changes nothing.
    support: full
  diff_mode:
    description: Shows how the machine differs from the backup.
    support: full
  platform:
    description: Linux.
    platforms: linux
    support: full
seealso:
  - module: gaudi3.scale.gaudi_backup
"""

EXAMPLES = r"""
- name: Restore a monitoring host
  gaudi3.scale.gaudi_restore:
    repository: "sftp:backup@store:/srv/gaudi/{{ inventory_hostname }}"
    password: "{{ vault_backup_password }}"
    host: "{{ inventory_hostname }}"
    kinds: [monitoring]
    overwrite: true
"""

RETURN = r"""
snapshot: {description: "Name of the snapshot.", returned: success, type: str, sample: 1a2b3c4d}
time: {description: "When it was made.", returned: success, type: str, sample: "2026-11-29T11:58:52.476941408Z"}
items: {description: "What was put back.", returned: success, type: list, elements: str, sample: [fence]}
kept: {description: "Where what was there before lies.", returned: success, type: list, elements: str, sample: []}
skipped:
  description: Newer snapshots, which are not whole.
  returned: success
  type: list
  elements: str
  sample: []
differences:
  description: How the machine differed from the backup before.
  returned: success
  type: list
  elements: str
  sample: ["fence is missing"]
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gaudi3.scale.plugins.module_utils._module_bodies import backup


def main() -> None:
    """Run the module."""
    module = AnsibleModule(argument_spec=backup.RESTORE_SPEC, supports_check_mode=True)
    module.exit_json(**backup.restore(module))


if __name__ == "__main__":
    main()
