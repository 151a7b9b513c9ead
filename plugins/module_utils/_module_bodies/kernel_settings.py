# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""What kernel_settings does: settings that are live, those of the next boot, and the kernel's command line."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from .._files import ensure_file
from .._host import boot_loader
from .._host.command_line import checked
from .._host.kernel_settings import (
    AUTO,
    HUGEPAGES,
    apply,
    limits_text,
    remarks,
    resolved,
    settings,
    sysctl_text,
    tmpfiles_text,
)
from .._refusal import Refusal

if TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule

ARGUMENT_SPEC: dict[str, dict[str, Any]] = {
    "name": {"type": "str", "default": "gaudi3-scale"},
    "sysctl": {"type": "dict", "default": {}},
    "sysfs": {"type": "dict", "default": {}},
    "memlock": {"type": "str", "default": ""},
    "command_line": {
        "type": "list",
        "elements": "dict",
        "default": [],
        "options": {
            "name": {"type": "str", "required": True},
            "arguments": {"type": "list", "elements": "str", "required": True},
            "state": {"type": "str", "choices": ["reported", "present"], "default": "reported"},
            "reason": {"type": "str", "default": ""},
        },
    },
    "reboots": {"type": "bool", "default": False},
    "root": {"type": "path", "default": "/"},
}


def run(module: AnsibleModule) -> dict[str, Any]:
    """Compare and set what is live, then what counts at boot, then the command line."""
    given = module.params
    try:
        for each in given["command_line"]:
            checked(each["arguments"])
        limits = limits_text(given["memlock"]) if given["memlock"] else None
        sysctl = resolved(given["root"], given["sysctl"])
        outcome = apply(settings(given["root"], sysctl, given["sysfs"]), module.check_mode)
        written = _write(module, sysctl, limits)
        lines = [
            {**each, **boot_loader.compare(module, given["root"], each["name"], each["arguments"], each["state"])}
            for each in given["command_line"]
        ]
    except Refusal as error:
        module.fail_json(msg=str(error))
    differences = _live_difference(outcome.changes) + written + [line["diff"] for line in lines if line["changed"]]
    result = {
        "changed": bool(differences),
        "live": outcome.changes,
        "absent": outcome.absent,
        "files": [difference["after_header"] for difference in written],
        "command_line": [{key: line[key] for key in ("name", "missing", "reboot_needed")} for line in lines],
        "remarks": remarks(outcome.absent, lines, given["reboots"]),
    }
    if outcome.short:
        sentence = (
            f"{'; '.join(outcome.short)}: for huge pages this means too little contiguous memory, so reboot (the value "
            "is set at boot) or ask for less."
        )
        if given["sysctl"].get(HUGEPAGES) != AUTO or len(outcome.short) > 1:
            module.fail_json(msg=sentence, **result)
        module.warn(sentence)
    return {"diff": differences, **result}


def _write(module: AnsibleModule, sysctl: dict[str, str], limits: str | None) -> list[dict[str, Any]]:
    """Write the files that are read at boot and at a login; their differences."""
    root, name = module.params["root"], module.params["name"]
    texts = {
        f"etc/sysctl.d/90-{name}.conf": sysctl_text(sysctl),
        f"etc/tmpfiles.d/{name}.conf": tmpfiles_text(module.params["sysfs"]),
    }
    if limits is not None:
        texts[f"etc/security/limits.d/90-{name}.conf"] = limits
    written = (ensure_file(module, os.path.join(root, path), text) for path, text in texts.items())
    return [difference for difference in written if difference]


def _live_difference(changes: list[dict[str, str]]) -> list[dict[str, Any]]:
    """The difference of the live values, for diff mode; none without changes."""
    if not changes:
        return []
    sides = {
        side: "".join(f"{change['name']} = {change[side]}\n" for change in changes) for side in ("before", "after")
    }
    return [{"before_header": "live values", "after_header": "live values", **sides}]
