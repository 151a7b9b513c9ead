#!/usr/bin/python
# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Hold a fleet to the plan of its upgrade, and keep on record how far each node is."""

from __future__ import annotations

DOCUMENTATION = r"""
module: gaudi_upgrade
short_description: "Internal to the collection: hold a fleet to the plan of its upgrade, and record its steps"
version_added: 0.1.0
author:
  - gaudi3.scale contributors (@gaudi3)
description:
  - With O(state=fits) it fails where the plan is none, is not signed as asked, or was made for another fleet than
    O(looks) show, and names each node and fact that differs.
  - With O(state=next) it records how the step of O(node) ended that was begun, then begins and returns the next one.
    The record is written before the module returns, so a run that is cut off is continued by the next one.
  - Run it on the controller, with C(delegate_to). It changes nothing on any node. The playbook C(gaudi3.scale.upgrade)
    carries the steps out.
options:
  state:
    description: Whether the fleet is held to the plan, or a node's next step begins.
    type: str
    choices: [fits, next]
    required: true
  plan:
    description: File of the plan, as C(gaudi3-deploy upgrade plan) writes it.
    type: path
    required: true
  folder:
    description: Folder of the records, which has to exist. Each plan has a folder of its own in it.
    type: path
    required: true
  allowed_signers:
    description: File of allowed signers, as ssh-keygen describes it. With it the plan has to be signed by O(signer).
    type: path
  signer:
    description: Name of the signer in O(allowed_signers).
    type: str
    default: ""
  unrehearsed_allowed:
    description: Whether a plan is taken that was not rehearsed, with O(state=fits).
    type: bool
    default: false
  flash_allowed:
    description: Whether a plan is taken that flashes firmware, with O(state=fits).
    type: bool
    default: false
  looks:
    description:
      - What nodes show, by name - C(versions), C(cards), C(firmware) and C(held) of M(gaudi3.scale.gaudi_release_info),
        C(fence) and C(jobs) of M(gaudi3.scale.gaudi_fence). One that did not answer has none.
    type: dict
    required: true
  examinations:
    description:
      - What M(gaudi3.scale.gaudi_health_info) returned of nodes, by name, with O(state=fits). One that has not begun
        and has a fault that the upgrade does not end is refused.
    type: dict
    default: {}
  node:
    description: The node whose step is recorded, with O(state=next).
    type: str
    default: ""
  carried_out:
    description: The step that this run carried out since the call before; empty for the first call.
    type: str
    default: ""
  problem:
    description: Why O(carried_out) failed; empty where it did not.
    type: str
    default: ""
  left:
    description: Jobs that O(carried_out) made leave the node.
    type: list
    elements: str
    default: []
attributes:
  check_mode:
    description: Writes no record.
    support: full
  diff_mode:
    description: Shows the record.
    support: full
"""

EXAMPLES = r"""
- name: Hold the fleet to the plan
  gaudi3.scale.gaudi_upgrade:
    state: fits
    plan: /srv/plan.json
    folder: /srv/upgrade
    looks: "{{ looks }}"
  delegate_to: localhost
  run_once: true
"""

RETURN = r"""
batches:
  description: With O(state=fits), the nodes of each batch.
  returned: success
  type: list
  elements: list
  sample: [[gaudi-3], [gaudi-1, gaudi-2]]
pytorch:
  description: With O(state=fits), the nodes that have not begun and get another PyTorch.
  returned: success
  type: list
  elements: str
  sample: [gaudi-3]
step:
  description: The step that begins now; empty where the node has none any more, or waits.
  returned: success
  type: str
  sample: packages
again:
  description: Whether that step was begun by a run that was cut off.
  returned: success
  type: bool
  sample: false
phase:
  description: V(up), V(back), V(there), V(returned) or V(stuck).
  returned: success
  type: str
  sample: up
reason:
  description: The node's surprise, or why it does not begin.
  returned: success
  type: str
  sample: ""
release:
  description: The release that the node's present way leads to.
  returned: success
  type: str
  sample: 1.23.0-695
card:
  description: PCI address of the card that RV(step) flashes; empty where it flashes none.
  returned: success
  type: str
  sample: ""
firmware:
  description: Preboot firmware that the cards are to have; empty where none is planned.
  returned: success
  type: str
  sample: ""
downgrade:
  description: Whether that is older than the one that the packages have.
  returned: success
  type: bool
  sample: false
surplus:
  description: Packages that the node did not have before, on its way back.
  returned: success
  type: list
  elements: str
  sample: []
unhold:
  description: Packages that were not held back before, on its way back.
  returned: success
  type: list
  elements: str
  sample: []
jobs:
  description: Jobs that left the node for its upgrade.
  returned: success
  type: list
  elements: str
  sample: [pretrain]
"""

import os
import time
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gaudi3.scale.plugins.module_utils._files import ensure_file
from ansible_collections.gaudi3.scale.plugins.module_utils._health.passport import lacks
from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal
from ansible_collections.gaudi3.scale.plugins.module_utils._ssh_keygen import SIGNATURE, signer_of
from ansible_collections.gaudi3.scale.plugins.module_utils._upgrade import planned, rehearsed, standing
from ansible_collections.gaudi3.scale.plugins.module_utils._upgrade.record import Record, read
from ansible_collections.gaudi3.scale.plugins.module_utils._upgrade.steps import PYTORCH


def text_of(path: str, what: str) -> str:
    """A file's text; Refusal where it cannot be read."""
    try:
        with open(path, encoding="utf-8") as stream:
            return stream.read(planned.MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is no text"
        raise Refusal(f"{what} {path} cannot be read ({reason}): give the one that was written") from None


def verify(module: AnsibleModule, plan: str, text: str) -> None:
    """Refuse a plan that is not signed as asked."""
    signers, signer = module.params["allowed_signers"], module.params["signer"]
    if not signers and not signer:
        return
    if not signers or not signer:
        raise Refusal(
            "A signature is verified by a file and a name in it: give upgrade_allowed_signers and upgrade_signer"
        )
    signer_of(plan, text, text_of(plan + SIGNATURE, "The plan's signature"), planned.NAMESPACE, signers, signer)


def records_of(folder: str, plan: "dict[str, Any]", digest: str) -> "dict[str, Record]":
    """The records of a plan that are there, by node."""
    found = {}
    for name, node in plan["nodes"].items():
        path = os.path.join(folder, f"{name}.json")
        if os.path.exists(path):
            found[name] = read(text_of(path, "The record"), digest, name, node["up"])
    return found


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["fits", "next"], "required": True},
            "plan": {"type": "path", "required": True},
            "folder": {"type": "path", "required": True},
            "allowed_signers": {"type": "path"},
            "signer": {"type": "str", "default": ""},
            "unrehearsed_allowed": {"type": "bool", "default": False},
            "flash_allowed": {"type": "bool", "default": False},
            "looks": {"type": "dict", "required": True},
            "examinations": {"type": "dict", "default": {}},
            "node": {"type": "str", "default": ""},
            "carried_out": {"type": "str", "default": ""},
            "problem": {"type": "str", "default": ""},
            "left": {"type": "list", "elements": "str", "default": []},
        },
        supports_check_mode=True,
    )
    asked = module.params
    try:
        text = text_of(asked["plan"], "The plan")
        verify(module, asked["plan"], text)
        plan, digest = planned.read(text), planned.digest(text)
        folder = os.path.join(asked["folder"], digest[:16])
        records = records_of(folder, plan, digest)
        if asked["state"] == "fits":
            problems = standing.problems(plan, records, asked["looks"])
            problems += standing.flashes(plan, asked["flash_allowed"])
            problems += standing.unfit(plan, records, asked["examinations"], lacks)
            problems += rehearsed.refusals(plan, asked["unrehearsed_allowed"])
            if problems:
                raise Refusal(" ".join(problems))
            pytorch = [name for name, node in plan["nodes"].items() if PYTORCH in node["up"] and name not in records]
            module.exit_json(changed=False, batches=plan["batches"], release=plan["release"], pytorch=pytorch)
        name = asked["node"]
        ended = (asked["carried_out"], asked["problem"], asked["left"])
        now = time.monotonic()
        after, answer = standing.next_of(plan, digest, records, name, asked["looks"].get(name), ended, now)
        diff = None
        if after is not None:
            diff = ensure_file(module, os.path.join(folder, f"{name}.json"), after.text(), 0o600, own=False)
    except Refusal as error:
        module.fail_json(msg=str(error))
    except OSError as error:
        module.fail_json(msg=f"The record {error.filename} cannot be written ({error.strerror}): see to its folder.")
    module.exit_json(changed=diff is not None, diff=diff or {}, batches=plan["batches"], **answer)


if __name__ == "__main__":
    main()
