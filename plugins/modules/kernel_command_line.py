#!/usr/bin/python
# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Arguments of the kernel's command line: told, or given to the boot loader. Never reboots."""

from __future__ import annotations

DOCUMENTATION = r"""
module: kernel_command_line
short_description: Report or add arguments of the kernel's command line
version_added: 0.1.0
author:
  - gaudi3.scale contributors (@gaudi3)
description:
  - Tells which of the wanted arguments the running kernel was not started with.
  - With O(state=present) it also gives them to the boot loader, through a file in C(/etc/default/grub.d) and
    C(update-grub)
    where that exists, and with C(grubby) elsewhere.
  - It never reboots. C(reboot_needed) says that the arguments wait for one.
options:
  arguments:
    description:
      - Arguments, each a C(NAME) or C(NAME=VALUE).
    type: list
    elements: str
    required: true
  state:
    description:
      - V(reported) changes nothing.
      - V(present) adds the arguments to the boot loader's configuration.
    type: str
    choices: [reported, present]
    default: reported
  name:
    description:
      - Names the file C(/etc/default/grub.d/90-NAME.cfg).
    type: str
    default: gaudi3-scale
  root:
    description:
      - Folder in which C(/etc) and C(/proc) are looked for.
    type: path
    default: /
attributes:
  check_mode:
    description: Predicts the change and makes none.
    support: full
  diff_mode:
    description: Shows the boot loader's configuration before and after.
    support: full
"""

EXAMPLES = r"""
- name: Tell whether this host was started with IOMMU passthrough
  gaudi3.scale.kernel_command_line:
    arguments: [iommu=pt, intel_iommu=on]

- name: Have it so from the next boot on
  gaudi3.scale.kernel_command_line:
    arguments: [iommu=pt, intel_iommu=on]
    state: present
"""

RETURN = r"""
missing:
  description: The wanted arguments which the running kernel does not have.
  returned: success
  type: list
  elements: str
  sample: [iommu=pt]
reboot_needed:
  description: Whether the boot loader has arguments which the running kernel does not have yet.
  returned: success
  type: bool
  sample: false
"""

import os
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gaudi3.scale.plugins.module_utils._cards.pci import read
from ansible_collections.gaudi3.scale.plugins.module_utils._files import ensure_file
from ansible_collections.gaudi3.scale.plugins.module_utils._host import command_line
from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal


def with_update_grub(module: AnsibleModule, update_grub: str) -> dict[str, Any] | None:
    """Write the drop-in and build GRUB's configuration; put the drop-in back where that fails."""
    path = os.path.join(module.params["root"], "etc/default/grub.d", f"90-{module.params['name']}.cfg")
    before = None
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            before = file.read()
    difference = ensure_file(module, path, command_line.grub_text(module.params["arguments"]))
    if difference and not module.check_mode:
        code, _output, error = module.run_command([update_grub])
        if code != 0:
            ensure_file(module, path, before)
            said = (error.strip().splitlines() or ["nothing"])[-1]
            module.fail_json(msg=f"update-grub ended with exit code {code} and said {said!r}: nothing was changed.")
    return difference


def with_grubby(module: AnsibleModule, grubby: str) -> dict[str, Any] | None:
    """Add the arguments to every installed kernel."""
    _code, info, _error = module.run_command([grubby, "--info=DEFAULT"], check_rc=True)
    before = command_line.grubby_arguments(info)
    lacking = command_line.missing(module.params["arguments"], before)
    if not lacking:
        return None
    if not module.check_mode:
        module.run_command([grubby, "--update-kernel=ALL", f"--args={' '.join(lacking)}"], check_rc=True)
    return {"before": before + "\n", "after": " ".join([before, *lacking]).strip() + "\n"}


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "arguments": {"type": "list", "elements": "str", "required": True},
            "state": {"type": "str", "choices": ["reported", "present"], "default": "reported"},
            "name": {"type": "str", "default": "gaudi3-scale"},
            "root": {"type": "path", "default": "/"},
        },
        supports_check_mode=True,
    )
    try:
        arguments = command_line.checked(module.params["arguments"])
    except Refusal as error:
        module.fail_json(msg=str(error))
    missing = command_line.missing(arguments, read(module.params["root"], "proc/cmdline") or "")
    if module.params["state"] == "reported" or not arguments:
        module.exit_json(changed=False, missing=missing, reboot_needed=False)
    update_grub, grubby = module.get_bin_path("update-grub"), module.get_bin_path("grubby")
    if update_grub:
        difference = with_update_grub(module, update_grub)
    elif grubby:
        difference = with_grubby(module, grubby)
    else:
        module.fail_json(
            msg="Neither update-grub nor grubby was found on this host: add the arguments "
            f"{' '.join(arguments)} to its boot loader by hand, or use state=reported."
        )
    module.exit_json(
        changed=difference is not None, missing=missing, reboot_needed=bool(missing), diff=difference or {}
    )


if __name__ == "__main__":
    main()
