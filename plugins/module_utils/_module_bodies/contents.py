# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""What is in files of a host. For secrets, too: who asks hides the answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule


ARGUMENT_SPEC: dict[str, dict[str, Any]] = {"paths": {"type": "list", "elements": "path", "required": True}}


def run(module: AnsibleModule) -> dict[str, Any]:
    """The texts by path; a new host has none of them."""
    texts = {}
    for path in module.params["paths"]:
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                texts[path] = file.read()
        except OSError:
            continue
    return {"changed": False, "texts": texts}
