#!/usr/bin/python
# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Kernel settings, live and at boot, in one task."""

from __future__ import annotations

DOCUMENTATION = r"""
module: kernel_settings
short_description: Set sysctl values and sysfs attributes, now and at boot
version_added: 0.1.0
author:
  - gaudi3.scale contributors (@gaudi3)
description:
  - Compares the live value of every setting with the wanted one, writes those which differ, and writes one
    file in
    C(/etc/sysctl.d) and one in C(/etc/tmpfiles.d) so that they are set again at boot.
  - Takes all settings of a profile in one task, where M(ansible.posix.sysctl) needs a task for each.
  - A value that someone changed by hand since the last run is found and put right.
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
"""

import os

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gaudi3.scale.plugins.module_utils._files import ensure_file
from ansible_collections.gaudi3.scale.plugins.module_utils._host.kernel_settings import (
    AUTO,
    HUGEPAGES,
    apply,
    resolved,
    settings,
    sysctl_text,
    tmpfiles_text,
)
from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "name": {"type": "str", "default": "gaudi3-scale"},
            "sysctl": {"type": "dict", "default": {}},
            "sysfs": {"type": "dict", "default": {}},
            "root": {"type": "path", "default": "/"},
        },
        supports_check_mode=True,
    )
    root, name = module.params["root"], module.params["name"]
    sysctl, sysfs = module.params["sysctl"], module.params["sysfs"]
    try:
        sysctl = resolved(root, sysctl)
        outcome = apply(settings(root, sysctl, sysfs), module.check_mode)
    except Refusal as error:
        module.fail_json(msg=str(error))
    diffs = []
    if outcome.changes:
        diffs.append(
            {
                "before_header": "live values",
                "after_header": "live values",
                "before": "".join(f"{change['name']} = {change['before']}\n" for change in outcome.changes),
                "after": "".join(f"{change['name']} = {change['after']}\n" for change in outcome.changes),
            }
        )
    files = []
    for path, content in (
        (os.path.join(root, "etc/sysctl.d", f"90-{name}.conf"), sysctl_text(sysctl)),
        (os.path.join(root, "etc/tmpfiles.d", f"{name}.conf"), tmpfiles_text(sysfs)),
    ):
        difference = ensure_file(module, path, content)
        if difference:
            files.append(path)
            diffs.append(difference)
    result = {"changed": bool(diffs), "live": outcome.changes, "absent": outcome.absent, "files": files}
    if outcome.short:
        sentence = (
            f"{'; '.join(outcome.short)}: for huge pages this means too little contiguous memory, so reboot (the value "
            "is set at boot) or ask for less."
        )
        if module.params["sysctl"].get(HUGEPAGES) != AUTO or len(outcome.short) > 1:
            module.fail_json(msg=sentence, **result)
        module.warn(sentence)
    module.exit_json(diff=diffs, **result)


if __name__ == "__main__":
    main()
