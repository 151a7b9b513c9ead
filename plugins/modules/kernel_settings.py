#!/usr/bin/python
# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Kernel settings, live and at boot, in one task."""

from __future__ import annotations

DOCUMENTATION = r"""
module: kernel_settings
short_description: "Internal to the collection: set sysctl values and sysfs attributes, now and at boot"
version_added: 0.1.0
author:
  - gaudi3.scale contributors (@gaudi3)
description:
  - Compares the live value of every setting with the wanted one, writes those which differ, and writes one
    file in
    C(/etc/sysctl.d) and one in C(/etc/tmpfiles.d) so that they are set again at boot.
  - Takes all settings of a profile in one task, where M(ansible.posix.sysctl) needs a task for each.
  - A value that someone changed by hand since the last run is found and put right.
  - What the kernel cannot take is refused before the first value is written, and in check mode, too - a word where the
    kernel has a number, and a choice that the kernel does not offer.
notes:
  - A setting which this kernel does not have is left out of the live values and named in C(absent). It stays
    in the
    files, so that it applies once the kernel has it.
  - A setting which is taken out of the profile keeps its live value until the next boot.
options:
  name:
    description:
      - Name of the profile. Its files are C(/etc/sysctl.d/90-NAME.conf) and C(/etc/tmpfiles.d/NAME.conf).
    type: str
    default: gaudi3-scale
  sysctl:
    description:
      - Names of kernel parameters with their values. When empty, the profile's sysctl file is removed.
      - The value V(auto) of C(vm.nr_hugepages) is the number that the vendor's installer reserves, 110 MB for each
        CPU, twice; it never lowers what is there. Where the kernel finds no memory for all of them, that is a warning
        and no failure.
    type: dict
    default: {}
  sysfs:
    description:
      - Files below C(/sys) with their values. C(*) stands for any name in a folder. When empty, the profile's
        tmpfiles file is removed.
      - For an attribute which lists its choices, the chosen one counts.
    type: dict
    default: {}
  memlock:
    description:
      - Locked memory of login sessions, as C(pam_limits) words it, in C(/etc/security/limits.d/90-NAME.conf). When
        empty, that file is left as it is.
    type: str
    default: ""
  command_line:
    description:
      - Arguments of the kernel's command line that are compared, and given to the boot loader with V(present), as
        M(gaudi3.scale.kernel_command_line) does.
    type: list
    elements: dict
    default: []
    suboptions:
      name: {description: "Names the file of the boot loader.", type: str, required: true}
      arguments: {description: "Arguments.", type: list, elements: str, required: true}
      state:
        description: Whether they are given to the boot loader.
        type: str
        choices: [reported, present]
        default: reported
      reason:
        description: Why they are wanted, for RV(remarks), which says nothing of missing ones without it.
        type: str
        default: ""
  reboots:
    description: A reboot follows where arguments wait for one, so that RV(remarks) does not ask for it.
    type: bool
    default: false
  root:
    description:
      - Folder in which C(/etc), C(/proc) and C(/sys) are looked for.
    type: path
    default: /
attributes:
  check_mode:
    description: Predicts what it would change, live values included, and changes nothing.
    support: full
  diff_mode:
    description: Shows the live values and the files before and after.
    support: full
"""

EXAMPLES = r"""
- name: Reserve huge pages and keep the cores at full clock
  gaudi3.scale.kernel_settings:
    sysctl:
      vm.nr_hugepages: 15000
    sysfs:
      /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor: performance
"""

RETURN = r"""
live:
  description: The live values which were changed.
  returned: success
  type: list
  elements: dict
  contains:
    name:
      description: The sysctl or sysfs file, as given.
      type: str
      sample: vm.nr_hugepages
    before:
      description: Its value before. Several where a pattern names files of different values.
      type: str
      sample: "0"
    after:
      description: Its value now.
      type: str
      sample: "15000"
absent:
  description: Settings which this kernel does not have.
  returned: success
  type: list
  elements: str
  sample: ["/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor"]
files:
  description: The files which were changed.
  returned: success
  type: list
  elements: str
  sample: [/etc/sysctl.d/90-gaudi3-scale.conf]
command_line:
  description: The compared arguments, as given, in their order.
  returned: success
  type: list
  elements: dict
  contains:
    name:
      description: Their name.
      type: str
      sample: gaudi3-scale
    missing:
      description: Those which the running kernel does not have.
      type: list
      elements: str
      sample: [iommu=pt]
    reboot_needed:
      description: Whether the boot loader has arguments which the running kernel does not have yet.
      type: bool
      sample: false
remarks:
  description: What this host does not have, each in a sentence.
  returned: success
  type: list
  elements: str
  sample: ["This kernel does not offer /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor."]
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gaudi3.scale.plugins.module_utils._module_bodies import kernel_settings


def main() -> None:
    """Run the module."""
    module = AnsibleModule(argument_spec=kernel_settings.ARGUMENT_SPEC, supports_check_mode=True)
    module.exit_json(**kernel_settings.run(module))


if __name__ == "__main__":
    main()
