#!/usr/bin/python
# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Reset Gaudi cards with hl-smi, and wait until they work."""

from __future__ import annotations

DOCUMENTATION = r"""
module: gaudi_reset
short_description: "Internal to the collection: reset Gaudi cards"
version_added: 0.1.0
author:
  - gaudi3.scale contributors (@gaudi3)
description:
  - Resets cards with C(hl-smi -r -i BDF), and waits until the driver calls each of them C(Operational).
  - A card that a process holds is not reset, and the process is named.
  - It resets each time that it is run, and so is always changed.
options:
  cards:
    description: Indexes of the cards, as in C(accel3). If omitted, all cards.
    type: list
    elements: int
    default: []
  settle:
    description: Seconds that a card may take to become C(Operational) after its reset.
    type: int
    default: 300
extends_documentation_fragment:
  - gaudi3.scale.hl_smi
attributes:
  check_mode:
    description: Resets nothing and says which cards would be.
    support: full
  diff_mode:
    description: A reset changes no file, so there is no difference to show.
    support: none
"""

EXAMPLES = r"""
- name: Reset one card
  gaudi3.scale.gaudi_reset:
    cards: [3]
"""

RETURN = r"""
cards:
  description: Indexes of the cards that were reset (in check mode, that would be).
  returned: success
  type: list
  elements: int
  sample: [3]
"""

import time

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gaudi3.scale.plugins.module_utils._cards import accel
from ansible_collections.gaudi3.scale.plugins.module_utils._hl_smi.command import (
    HL_SMI_SPEC,
    HlSmiMissing,
    from_module,
    runner,
)
from ansible_collections.gaudi3.scale.plugins.module_utils._hl_smi.hl_smi import HlSmiError, quote


def bus_ids(module: AnsibleModule) -> "dict[int, str]":
    """PCI addresses of the cards that are meant, by index."""
    rows = from_module(module).query(("index", "bus_id"))
    found = {int(row["index"]): row["bus_id"] for row in rows}
    missing = sorted(set(module.params["cards"]) - set(found))
    if missing:
        names = ", ".join(f"accel{index}" for index in missing)
        raise HlSmiError(f"{names} cannot be reset, as hl-smi does not list it: reload the driver or reboot the node")
    return {index: found[index] for index in module.params["cards"] or sorted(found)}


def refuse_held(indexes: "list[int]") -> None:
    """Raise HlSmiError where a process holds one of the cards."""
    names = {f"accel{index}" for index in indexes}
    holders = [str(user) for user in accel.users() if not user.control and user.held & names]
    if holders:
        raise HlSmiError(f"process {holders[0]} holds a card that is to be reset: end it first")


def reset(module: AnsibleModule, cards: "dict[int, str]") -> None:
    """Reset each card and wait for all."""
    path = module.get_bin_path(module.params["executable"], required=True)
    run = runner(module)
    for index, bus_id in cards.items():
        code, output, error = run([path, "-r", "-i", bus_id])
        if code != 0:
            said = next((line for line in (error + "\n" + output).splitlines() if line.strip()), "nothing")
            raise HlSmiError(f"'hl-smi -r -i {bus_id}' ended with exit code {code} and said {quote(said)}")
        module.log(f"accel{index} ({bus_id}) was reset")
    deadline = time.monotonic() + module.params["settle"]
    while True:
        states = {device.name: device.status for device in accel.devices()}
        bad = {name: states.get(name, "missing") for name in (f"accel{index}" for index in cards)}
        bad = {name: status for name, status in bad.items() if status != accel.OPERATIONAL}
        if not bad:
            return
        if time.monotonic() >= deadline:
            said = ", ".join(f"{name} is {status!r}" for name, status in sorted(bad.items()))
            raise HlSmiError(f"{said} {module.params['settle']} seconds after the reset: reload the driver")
        time.sleep(1.0)


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec=dict(
            HL_SMI_SPEC,
            cards={"type": "list", "elements": "int", "default": []},
            settle={"type": "int", "default": 300},
        ),
        supports_check_mode=True,
    )
    try:
        cards = bus_ids(module)
        refuse_held(sorted(cards))
        if not module.check_mode:
            reset(module, cards)
    except (HlSmiMissing, HlSmiError) as error:
        module.fail_json(msg=f"{str(error).rstrip('.')}.")
    module.exit_json(changed=True, cards=sorted(cards))


if __name__ == "__main__":
    main()
