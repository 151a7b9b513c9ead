# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""What gaudi_firewall does: the table that closes ports, and the file that has it at each boot."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Optional

from .._files import ensure_file
from .._host import firewall
from .._refusal import Refusal

if TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule


ARGUMENTS: dict[str, dict[str, Any]] = {
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "groups": {
        "type": "list",
        "elements": "dict",
        "default": [],
        "options": {
            "name": {"type": "str", "required": True},
            "ports": {"type": "list", "elements": "str", "required": True},
            "sources": {"type": "list", "elements": "str", "required": True},
        },
    },
    "open_ports": {"type": "list", "elements": "str", "default": []},
    "path": {"type": "path", "default": "/etc/gaudi3-scale/firewall.nft"},
    "nft_executable": {"type": "path", "default": "/usr/sbin/nft"},
}


def run(module: AnsibleModule) -> dict[str, Any]:
    """Have the table and its file, or neither."""
    return _present(module) if module.params["state"] == "present" else _absent(module)


def _nft(module: AnsibleModule, *arguments: str, data: Optional[str] = None) -> tuple[int, str, str]:
    """Run nft; without the program, a failure."""
    program = module.params["nft_executable"]
    if not os.path.exists(program):
        return 1, "", f"{program} does not exist"
    code, output, errors = module.run_command([program, *arguments], data=data)
    return code, output, errors


def _listing(module: AnsibleModule) -> str:
    """The table as it is now; nothing where there is none."""
    code, output, _errors = _nft(module, "list", "table", "inet", firewall.TABLE)
    return output if code == 0 else ""


def _load(module: AnsibleModule, text: str, *, check: bool = False) -> None:
    """Load a ruleset, or only ask nft whether it could."""
    code, output, errors = _nft(module, *(["-c"] if check else []), "-f", "-", data=text)
    if code != 0:
        said = " ".join((errors or output).split())[:300]
        module.fail_json(
            msg=f"nft does not take the ruleset ({said}): install nftables, and look whether this kernel has nf_tables."
        )


def _present(module: AnsibleModule) -> dict[str, Any]:
    """Have the file and the table."""
    options = module.params
    groups = [firewall.Group(each["name"], each["ports"], each["sources"]) for each in options["groups"]]
    try:
        text = firewall.ruleset(options["open_ports"], groups)
    except Refusal as error:
        module.fail_json(msg=str(error))
    missing = not firewall.is_loaded(text, _listing(module))
    if missing and (not module.check_mode or os.path.exists(options["nft_executable"])):
        _load(module, text, check=True)
    diff = ensure_file(module, options["path"], text)
    if missing and not module.check_mode:
        _load(module, text)
    done = (["file"] if diff is not None else []) + (["table"] if missing else [])
    return {"changed": bool(done), "done": done, "loaded": missing, "diff": diff or {}}


def _absent(module: AnsibleModule) -> dict[str, Any]:
    """Have neither."""
    live = bool(_listing(module))
    if live and not module.check_mode:
        _nft(module, "delete", "table", "inet", firewall.TABLE)
        if _listing(module):
            module.fail_json(msg=f"nft does not delete the table {firewall.TABLE}: delete it by hand and run again.")
    diff = ensure_file(module, module.params["path"], None)
    return {"changed": diff is not None or live, "diff": diff or {}}
