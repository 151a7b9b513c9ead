#!/usr/bin/python
# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""What gaudi_packages takes; the work is done on the controller, by Ansible's own modules that it runs on the host."""

from __future__ import annotations

DOCUMENTATION = r"""
module: gaudi_packages
short_description: "Internal to the collection: install packages of the distribution"
version_added: 0.1.0
author:
  - gaudi3.scale contributors (@gaudi3)
description:
  - Installs packages with M(ansible.builtin.package), of apt with fresh lists and without what is only recommended. All
    in one task, as each costs the controller CPU time for each host.
  - Where apt's lists lack a package and a source is newer than they are, the sources are read again, however fresh the
    lists are.
  - A dry run reads no sources. A package that apt does not know is no error there where the run itself would read them.
    Without python3-apt, which the run installs, it asks dpkg which of the packages are there.
options:
  name:
    description: Names of the packages, with a version behind C(=) where the package manager takes one.
    type: list
    elements: str
    required: true
  cache_valid_time:
    description: Seconds for which apt's lists count as fresh.
    type: int
    default: 3600
  new_source:
    description: Whether a source was added just before, which apt's lists do not have yet.
    type: bool
    default: false
  start:
    description: Whether the packages' services may start at once, where the distribution starts them.
    type: bool
    default: true
  ask_version:
    description:
      - Asks for the version of the first package, and does nothing more where it is installed, in the version that its
        name has behind it if there is one.
    type: bool
    default: false
attributes:
  action:
    description: Runs modules on the host.
    support: full
  check_mode:
    description: Predicts what would be installed.
    support: full
  diff_mode:
    description: As the package manager's module shows it.
    support: full
  platform:
    description: Debian, Ubuntu and RHEL.
    platforms: debian, rhel
    support: full
seealso:
  - module: ansible.builtin.package
"""

EXAMPLES = r"""
- name: Install node_exporter, its service not yet started
  gaudi3.scale.gaudi_packages:
    name: [prometheus-node-exporter]
    start: false
    ask_version: true
"""

RETURN = r"""
version:
  description: Version of the first package. Empty where it is not installed, or its package manager is not known.
  returned: with O(ask_version=true)
  type: str
  sample: 1.7.0-1ubuntu0.3
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gaudi3.scale.plugins.module_utils._host.packages import ARGUMENT_SPEC


def main() -> None:
    """Refuse to run on a host."""
    module = AnsibleModule(argument_spec=ARGUMENT_SPEC, supports_check_mode=True)
    module.fail_json(msg="gaudi_packages runs on the controller: call it as gaudi3.scale.gaudi_packages.")


if __name__ == "__main__":
    main()
