#!/usr/bin/python
# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Ansible module: kernels without the Gaudi driver, held back."""

from __future__ import annotations

DOCUMENTATION = r"""
module: kernel_holds
short_description: "Internal to the collection: hold back kernels that have no Gaudi driver"
version_added: 0.1.0
author:
  - gaudi3.scale contributors (@gaudi3)
description:
  - Puts the packages that bring the next kernel, such as C(linux-generic), on hold, and lifts the hold where the
    kernel that they offer has the driver of O(release) and is one that the support matrix names for the system.
  - Where they offer no kernel they are held, too, as the next one would come with an automatic upgrade before its
    driver can be built.
  - What was held is on record on the node. A hold that the site has set by itself is never lifted.
  - Says in a warning which kernel is offered, and why it does not come.
  - On a node with dnf 4 and its plugin C(versionlock), lines of the plugin's list name the kernels that have the
    driver, and dnf installs no other. dnf5 has no need of a plugin, and a file of locks in a form of its own. Where
    both are there, both are locked. A package that the site has locked is left alone.
options:
  release:
    description: The release whose driver the kernels have to have, such as V(1.23.0-695).
    type: str
    required: true
  hold:
    description: Whether kernels are held back. With V(false) every hold on record is lifted.
    type: bool
    default: true
  timeout:
    description: Seconds to wait for another program to release dpkg's database.
    type: int
    default: 120
  record:
    description: File of the packages that were held.
    type: path
    default: /etc/gaudi3-scale/kernel-holds
  versionlock:
    description: List of dnf 4's plugin C(versionlock).
    type: path
    default: /etc/dnf/plugins/versionlock.list
  versionlock_dnf5:
    description: File of dnf5's locks, in the form that C(dnf5 versionlock add) writes.
    type: path
    default: /etc/dnf/versionlock.toml
  modules:
    description: Folder of the kernels' modules.
    type: path
    default: /lib/modules
  os_release:
    description: File with name and version of the system.
    type: path
    default: /etc/os-release
attributes:
  check_mode:
    support: full
    description: Predicts the holds; a driver that is not built yet is taken as not built.
  diff_mode:
    support: full
    description: Shows the packages on hold and the record before and after.
seealso:
  - module: gaudi3.scale.gaudi_driver
  - module: gaudi3.scale.synapseai_packages
"""

EXAMPLES = r"""
- name: Hold back kernels that have no driver
  gaudi3.scale.kernel_holds:
    release: 1.23.0-695
"""

RETURN = r"""
hold:
  description: Packages that were put on hold, or locks that dnf got, dnf5's after C(dnf5:) (in check mode, would be).
  returned: success
  type: list
  elements: str
  sample: [linux-generic, linux-image-generic]
lift:
  description: Packages whose hold was lifted, or locks that were taken out (in check mode, would be).
  returned: success
  type: list
  elements: str
  sample: []
held:
  description: Packages that bring kernels and are on hold now, those of the site among them; with dnf the locks.
  returned: success
  type: list
  elements: str
  sample: [linux-generic, linux-image-generic]
remarks:
  description: Sentences on kernels that are offered and do not come.
  returned: success
  type: list
  elements: str
  sample: ["Kernel 6.8.0-60-generic is offered and held back (linux-generic): the driver of 1.23.0-695 is ..."]
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gaudi3.scale.plugins.module_utils._module_bodies import kernel_holds


def main() -> None:
    """Run the module."""
    module = AnsibleModule(argument_spec=kernel_holds.ARGUMENT_SPEC, supports_check_mode=True)
    module.exit_json(**kernel_holds.run(module))


if __name__ == "__main__":
    main()
