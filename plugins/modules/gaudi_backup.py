#!/usr/bin/python
# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""What a machine cannot make again, in an encrypted repository."""

from __future__ import annotations

DOCUMENTATION = r"""
module: gaudi_backup
short_description: Back up what a machine cannot make again, with restic
version_added: 0.1.0
author:
  - gaudi3.scale contributors (@gaudi3)
description:
  - Copies the state of a monitoring host, a node, a host of Slurm or a controller while it is in use, and adds it to an
    encrypted repository of restic as one snapshot, with a list of every file, its mode, owner and SHA-256.
  - Prometheus is not stopped and its admin API stays off. Its log is copied before its blocks, so the copy is what
    Prometheus would find after a power cut up to that moment. Grafana's database is copied by SQLite's own backup, that
    of Slurm's accounting by a dump of one transaction.
  - Nothing is added where the newest whole snapshot has the same content. A run that is killed leaves no snapshot.
extends_documentation_fragment:
  - gaudi3.scale.backup
attributes:
  check_mode:
    description: Copies, compares and reports the same, adds nothing, and removes its copies.
    support: full
  diff_mode:
    description: Shows the lists of files before and after, with modes, owners, sizes and digests, without contents.
    support: full
  platform:
    description: Linux.
    platforms: linux
    support: full
notes:
  - The repository is made where the address has none. A local one is refused where the folder above it is missing,
    as that of a disk that is not mounted is.
seealso:
  - module: gaudi3.scale.gaudi_restore
"""

EXAMPLES = r"""
- name: Back up a monitoring host
  gaudi3.scale.gaudi_backup:
    repository: "sftp:backup@store:/srv/gaudi/{{ inventory_hostname }}"
    password: "{{ vault_backup_password }}"
    host: "{{ inventory_hostname }}"
    kinds: [monitoring]
"""

RETURN = r"""
snapshot:
  description: Name of the snapshot that has this content; empty where a dry run would add one.
  returned: success
  type: str
  sample: 1a2b3c4d
items: {description: "What was backed up.", returned: success, type: list, elements: str, sample: [fence]}
missing: {description: "What this machine does not have.", returned: success, type: list, elements: str, sample: []}
files: {description: "How many files, folders and links.", returned: success, type: int, sample: 12}
bytes: {description: "Bytes of all files.", returned: success, type: int, sample: 4711}
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gaudi3.scale.plugins.module_utils._module_bodies import backup


def main() -> None:
    """Run the module."""
    module = AnsibleModule(argument_spec=backup.BACKUP_SPEC, supports_check_mode=True)
    module.exit_json(**backup.back_up(module))


if __name__ == "__main__":
    main()
