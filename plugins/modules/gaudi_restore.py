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
extends_documentation_fragment:
  - gaudi3.scale.backup
options:
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
not_whole:
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
