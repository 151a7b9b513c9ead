# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""The port of a service: nobody else's before it starts, and its own afterwards."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .._host import listeners
from .._host.address import single_host
from .._printable import printable
from .._refusal import Refusal

if TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule


#: Where a service listens. ``container`` is the command that prints the identifier of the container that listens.
LISTENS: dict[str, dict[str, Any]] = {
    "address": {"type": "str", "required": True},
    "port": {"type": "int", "required": True},
    "variable": {"type": "str", "required": True},
    "container": {"type": "list", "elements": "str", "default": []},
    "timeout": {"type": "int", "default": 15},
    "proc_root": {"type": "path", "default": "/proc"},
}
ARGUMENT_SPEC: dict[str, dict[str, Any]] = {"unit": {"type": "str", "required": True}, **LISTENS}
_PAUSE = 0.25


def run(module: AnsibleModule) -> dict[str, Any]:
    """Refuse a port that somebody else's process holds, for a preflight."""
    try:
        refuse_foreign(module, module.params["unit"], module.params)
    except Refusal as refusal:
        module.fail_json(msg=str(refusal))
    return {"changed": False}


def refuse_foreign(module: AnsibleModule, unit: str, wanted: dict[str, Any]) -> None:
    """Refuse an address that is none, and a port that a process of another unit holds."""
    address, port = wanted["address"], wanted["port"]
    if single_host(address) is None:
        raise Refusal(
            f"{unit} is to listen on {printable(address)!r}, which is no address of one host: give an IP address or a "
            f"host name as {wanted['variable']}_address or {wanted['variable']}_listen_address."
        )
    others = _others(module, unit, wanted)
    if others:
        raise Refusal(
            f"Port {port} of {address} is held by {printable(' and '.join(others))}, so {unit} cannot listen there: "
            f"stop and disable what holds it, or give another port as {wanted['variable']}_port."
        )


def wait_for_own(
    module: AnsibleModule, unit: str, wanted: dict[str, Any], state: Callable[[], tuple[bool, bool]]
) -> None:
    """Wait until the unit is active and the port is its own; ``state`` says whether it is active or has failed."""
    deadline = time.monotonic() + wanted["timeout"]
    while True:
        active, failed = state()
        if active and _found(module, unit, wanted)[0]:
            return
        if failed or time.monotonic() > deadline:
            break
        time.sleep(_PAUSE)
    others = _others(module, unit, wanted)
    why = (
        f"{printable(' and '.join(others))} listens there"
        if others
        else "the unit has failed"
        if failed
        else f"nothing of the unit listens after {wanted['timeout']} seconds"
    )
    raise Refusal(
        f"{unit} does not listen on {wanted['address']} port {wanted['port']}, since {why}: see "
        f"'journalctl -u {unit}', and check the role's address, port and further arguments."
    )


def _others(module: AnsibleModule, unit: str, wanted: dict[str, Any]) -> list[str]:
    return list(dict.fromkeys(str(each) for each in _found(module, unit, wanted)[1]))


def _found(
    module: AnsibleModule, unit: str, wanted: dict[str, Any]
) -> tuple[list[listeners.Listener], list[listeners.Listener]]:
    """Who listens on the port: of the unit, and others."""
    found = listeners.on_port(wanted["port"], wanted["address"], wanted["proc_root"])
    owners = (unit,)
    if found and wanted["container"]:
        code, output, _errors = module.run_command(wanted["container"])
        owners += (output.strip(),) if code == 0 and output.strip() else ()
    own = [each for each in found if each.belongs_to(owners)]
    return own, [each for each in found if each not in own]
