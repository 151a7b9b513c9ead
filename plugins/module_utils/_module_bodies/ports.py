# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""What gaudi_ports does: the external ports of the cards up."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from .._hl_smi import ports
from .._hl_smi.command import (
    HL_SMI_SPEC,
    DriverDown,
    HlSmi,
    HlSmiMissing,
    Runner,
    environment,
    from_module,
)
from .._hl_smi.hl_smi import HlSmiError, quote
from .._printable import few

if TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule


ARGUMENT_SPEC: dict[str, Any] = {
    **HL_SMI_SPEC,
    "state": {"type": "str", "choices": ["up", "reported"], "default": "up"},
    "script": {"type": "path", "default": "/opt/habanalabs/qual/gaudi3/bin/manage_network_ifs.sh"},
    "wait": {"type": "int", "default": 60},
    "script_timeout": {"type": "int", "default": 300},
}


def run(module: AnsibleModule) -> dict[str, Any]:
    """Bring the ports up, or tell which are down."""
    try:
        result = _find_and_act(module)
    except (HlSmiMissing, DriverDown) as error:
        if module.check_mode:
            return {"changed": False, "external": 0, "msg": f"No port can be looked at yet: {error}."}
        module.fail_json(msg=f"{error}.")
    except HlSmiError as error:
        module.fail_json(msg=f"{error}.")
    return result


def _bring_up(module: AnsibleModule, tool: HlSmi, cards: list[ports.CardPorts]) -> list[str]:
    """Run the script and wait; return the ports which are down afterwards."""
    script = module.params["script"]
    if not os.access(script, os.X_OK):
        raise HlSmiError(
            f"{script} is not on this host: install package habanalabs-qual (role "
            "gaudi3.scale.synapseai does), or give its path as 'script'"
        )
    code, output, error = Runner(module.params["script_timeout"], environment(module))([script, "--up"])
    if code != 0:
        said = next((line for line in (error + "\n" + output).splitlines() if line.strip()), "nothing")
        raise HlSmiError(f"{os.path.basename(script)} --up ended with exit code {code} and said {quote(said)}")
    return ports.wait_up(tool, cards, module.params["wait"])


def _find_and_act(module: AnsibleModule) -> dict[str, Any]:
    """Find, bring up, verify."""
    tool = from_module(module)
    cards = ports.external(tool)
    count = sum(len(card.ports) for card in cards)
    before = ports.down(cards)
    act = bool(before) and module.params["state"] == "up"
    after = _bring_up(module, tool, cards) if act and not module.check_mode else before
    brought_up = [] if not act else before if module.check_mode else [n for n in before if n not in after]
    result: dict[str, Any] = {
        "changed": bool(brought_up),
        "external": count,
        "down": after,
        "brought_up": brought_up,
        "diff": {
            "before": "".join(f"{name} down\n" for name in before),
            "after": "".join(f"{name} down\n" for name in before if name not in brought_up),
        },
    }
    if act and after and not module.check_mode:
        module.fail_json(
            msg=f"{len(after)} of {count} external ports stayed down after {module.params['wait']} seconds: "
            f"{few(after)}; check cables and switch ports, and see 'hl-smi -n stats' for faults.",
            **result,
        )
    return result
