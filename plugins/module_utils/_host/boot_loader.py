# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Gives arguments of the kernel's command line to the boot loader: GRUB by its drop-ins, others by grubby."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from .._cards.pci import read
from .._files import ensure_file
from .command_line import checked, grub_text, grubby_arguments, missing

if TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule


def compare(module: AnsibleModule, root: str, name: str, arguments: list[str], state: str) -> dict[str, Any]:
    """What the running kernel lacks, and with state ``present`` the change of the boot loader, made or predicted.

    Raises Refusal for what is no argument, and fails the module where no boot loader is recognized.
    """
    arguments = checked(arguments)
    lacking = missing(arguments, read(root, "proc/cmdline") or "")
    found: dict[str, Any] = {"changed": False, "missing": lacking, "reboot_needed": False, "diff": {}}
    if state == "reported" or not arguments:
        return found
    update_grub, grubby = module.get_bin_path("update-grub"), module.get_bin_path("grubby")
    if update_grub:
        difference = _with_update_grub(module, update_grub, root, name, arguments)
    elif grubby:
        difference = _with_grubby(module, grubby, arguments)
    else:
        module.fail_json(
            msg="Neither update-grub nor grubby was found on this host: add the arguments "
            f"{' '.join(arguments)} to its boot loader by hand, or use state=reported."
        )
    return {**found, "changed": difference is not None, "reboot_needed": bool(lacking), "diff": difference or {}}


def _with_update_grub(
    module: AnsibleModule, update_grub: str, root: str, name: str, arguments: list[str]
) -> dict[str, Any] | None:
    """Write the drop-in and build GRUB's configuration; put the drop-in back where that fails."""
    path = os.path.join(root, "etc/default/grub.d", f"90-{name}.cfg")
    before = None
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            before = file.read()
    difference = ensure_file(module, path, grub_text(arguments))
    if difference and not module.check_mode:
        code, _output, error = module.run_command([update_grub])
        if code != 0:
            ensure_file(module, path, before)
            said = (error.strip().splitlines() or ["nothing"])[-1]
            module.fail_json(msg=f"update-grub ended with exit code {code} and said {said!r}: nothing was changed.")
    return difference


def _with_grubby(module: AnsibleModule, grubby: str, arguments: list[str]) -> dict[str, Any] | None:
    """Add the arguments to every installed kernel."""
    _code, info, _error = module.run_command([grubby, "--info=DEFAULT"], check_rc=True)
    before = grubby_arguments(info)
    lacking = missing(arguments, before)
    if not lacking:
        return None
    if not module.check_mode:
        module.run_command([grubby, "--update-kernel=ALL", f"--args={' '.join(lacking)}"], check_rc=True)
    return {"before": before + "\n", "after": " ".join([before, *lacking]).strip() + "\n"}
