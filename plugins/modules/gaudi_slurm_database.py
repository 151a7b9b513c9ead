#!/usr/bin/python
# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""The database in which Slurm keeps what jobs used."""

from __future__ import annotations

DOCUMENTATION = r"""
module: gaudi_slurm_database
short_description: "Internal to the collection: make the database of slurmdbd and its user"
version_added: 0.1.0
author:
  - gaudi3.scale contributors (@gaudi3)
description:
  - Makes the database C(slurm_acct_db) of the MariaDB on this host, and the user C(slurm), who has all rights in it and
    no others. Another password replaces the old one.
  - The password is given to the client on its standard input, so that no list of processes shows it.
options:
  password:
    description: The user's password, of 8 to 72 letters, digits and C(._~@%+=:,/-).
    type: str
    required: true
  client_executable:
    description: The client of MariaDB, which root uses without a password.
    type: str
    default: mariadb
attributes:
  check_mode:
    description: Looks whether the user can use the database, and predicts that both are made where not.
    support: full
  diff_mode:
    description: Shows what would change.
    support: none
    details: A password is all that differs.
  platform:
    description: Linux.
    platforms: linux
    support: full
"""

EXAMPLES = r"""
- name: Make the database of slurmdbd
  gaudi3.scale.gaudi_slurm_database:
    password: "{{ vault_slurm_database_password }}"
"""

RETURN = r"""
database:
  description: The database.
  returned: success
  type: str
  sample: slurm_acct_db
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gaudi3.scale.plugins.module_utils._module_bodies import slurm_database


def main() -> None:
    """Run the module."""
    module = AnsibleModule(argument_spec=slurm_database.ARGUMENT_SPEC, supports_check_mode=True)
    module.exit_json(**slurm_database.run(module))


if __name__ == "__main__":
    main()
