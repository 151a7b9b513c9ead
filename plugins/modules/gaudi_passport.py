#!/usr/bin/python
# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""A signed passport for a healthy node, kept on the controller."""

from __future__ import annotations

DOCUMENTATION = r"""
module: gaudi_passport
short_description: Issue the passport of a healthy Gaudi node
version_added: 0.1.0
author:
  - gaudi3.scale contributors (@gaudi3)
description:
  - Writes what a node was tested for - checks, figures, thresholds, versions of driver, board and firmware, serial
    numbers - and signs it (HMAC-SHA256) with a key that stays on the controller. Run it there, with C(delegate_to).
  - A passport expires, and is void when a version or a card changes. A node that is not in order, or that could not be
    read whole, is refused one, and a passport that it has is removed.
  - A passport that is valid and has more than half of its life left is kept.
options:
  node:
    description: Name of the node in the inventory.
    type: str
    required: true
  health:
    description: The result of M(gaudi3.scale.gaudi_health_info).
    type: dict
    required: true
  depth:
    description: The depth of that examination.
    type: str
    choices: [quick, standard, deep]
    default: quick
  path:
    description: File of the passport. Its folder has to exist.
    type: path
    required: true
  key_file:
    description: File of the key, made when it does not exist. Its folder has to exist.
    type: path
    required: true
  days:
    description: For how many days it is valid.
    type: int
    default: 7
attributes:
  check_mode:
    description: Writes nothing and says what it would do.
    support: full
  diff_mode:
    description: Shows which passport comes or goes. The key is never shown.
    support: full
"""

EXAMPLES = r"""
- name: Look at the node's health
  gaudi3.scale.gaudi_health_info:
  register: health

- name: Give it a passport
  gaudi3.scale.gaudi_passport:
    node: "{{ inventory_hostname }}"
    health: "{{ health }}"
    path: "health/{{ inventory_hostname }}.json"
    key_file: health/passports.key
  delegate_to: localhost
"""

RETURN = r"""
issued:
  description: Whether the node has a valid passport now.
  returned: success
  type: bool
  sample: true
reason:
  description: Why it has none, or why the former one was not kept; empty where it was.
  returned: success
  type: str
  sample: driver was 1.22.0-5f8fa9f and is 1.23.0-2eae87a
"""

import contextlib
import os
import secrets
import time

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gaudi3.scale.plugins.module_utils._files import ensure_file
from ansible_collections.gaudi3.scale.plugins.module_utils._health import passport
from ansible_collections.gaudi3.scale.plugins.module_utils._health.checks import CHECKS, DEPTHS
from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal


def read(path: str) -> "str | None":
    """A file's text, None where there is none."""
    with contextlib.suppress(FileNotFoundError), open(path, encoding="utf-8", errors="replace") as file:
        return file.read()
    return None


def key(module: AnsibleModule) -> "tuple[bytes, bool]":
    """The key, made when it is not there, and whether it was made."""
    text = read(module.params["key_file"])
    made = text is None
    if text is None:
        text = secrets.token_hex(32) + "\n"
        ensure_file(module, os.path.abspath(module.params["key_file"]), text, 0o600)
    return passport.read_key(text), made


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "node": {"type": "str", "required": True},
            "health": {"type": "dict", "required": True},
            "depth": {"type": "str", "choices": list(DEPTHS), "default": "quick"},
            "path": {"type": "path", "required": True},
            "key_file": {"type": "path", "required": True, "no_log": False},
            "days": {"type": "int", "default": passport.LIFETIME_DAYS},
        },
        supports_check_mode=True,
    )
    asked = module.params
    if asked["days"] < 1:
        module.fail_json(msg=f"days was {asked['days']}: give 1 or more.")
    for path in (asked["path"], asked["key_file"]):
        folder = os.path.dirname(os.path.abspath(path))
        if not module.check_mode and not os.path.isdir(folder):  # a dry run may have made none
            module.fail_json(msg=f"There is no folder {folder}: make it first.")
    lifetime, now = asked["days"] * passport.DAY_S, int(time.time())
    checks = tuple(check.name for check in CHECKS if DEPTHS.index(check.depth) <= DEPTHS.index(asked["depth"]))
    path = os.path.abspath(asked["path"])
    try:
        issued = passport.issue(asked["node"], asked["health"], checks, asked["depth"], now, lifetime)
    except Refusal as error:
        diff = ensure_file(module, path, None)
        module.exit_json(changed=diff is not None, issued=False, reason=str(error), diff=diff or {})
    try:
        secret, made = key(module)
    except Refusal as error:
        module.fail_json(msg=str(error))
    # Half of its life ahead: what was signed then is signed again.
    reason = passport.problem(read(path), secret, asked["node"], now + lifetime // 2, issued.versions, asked["depth"])
    diff = ensure_file(module, path, passport.sign(issued, secret)) if reason else None
    module.exit_json(changed=made or diff is not None, issued=True, reason=reason, diff=diff or {})


if __name__ == "__main__":
    main()
