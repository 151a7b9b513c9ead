#!/usr/bin/python
# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Silence the alerts on nodes for a while."""

from __future__ import annotations

DOCUMENTATION = r"""
module: gaudi_silence
short_description: "Internal to the collection: silence the alerts on nodes for a while"
version_added: 0.1.0
author:
  - gaudi3.scale contributors (@gaudi3)
description:
  - Makes one silence for each node in Alertmanager, and ends it. Silences that others have made are left alone.
  - A silence of the same length and reason stays as it is, so that a second run changes nothing. With another length or
    reason it is made again from now on.
options:
  url:
    description: Alertmanager's address, such as V(https://10.0.0.5:9093).
    type: str
    required: true
  ca_path:
    description: File with the certificate of the authority to trust. The default are those that the host trusts anyway.
    type: path
  password:
    description: The password of its user C(alertmanager).
    type: str
    required: true
  nodes:
    description: Names of nodes in the inventory.
    type: list
    elements: str
    required: true
  length:
    description: For how long, as numbers of C(m), C(h), C(d) and C(w), such as V(2h). Needed with O(state=present).
    type: str
    default: ""
  reason:
    description: Why, for those who look for the alerts. Needed with O(state=present).
    type: str
    default: ""
  state:
    description: Whether the nodes are to be silent.
    type: str
    choices: [present, absent]
    default: present
attributes:
  check_mode:
    description: Says which nodes would become silent, or be heard again.
    support: full
  diff_mode:
    description: Shows the nodes.
    support: full
  platform:
    description: Where Alertmanager is reached.
    platforms: posix
    support: full
"""

EXAMPLES = r"""
- name: Keep quiet about a node whose cable is exchanged
  gaudi3.scale.gaudi_silence:
    url: https://10.0.0.5:9093
    ca_path: /etc/prometheus/alertmanager-ca.crt
    password: "{{ alertmanager_password }}"
    nodes: [gaudi-5]
    length: 2h
    reason: new cable
"""

RETURN = r"""
silenced:
  description: Nodes that became silent.
  returned: success
  type: list
  elements: str
  sample: [gaudi-5]
ended:
  description: Ids of silences that were ended, also to be made again.
  returned: success
  type: list
  elements: str
  sample: []
"""

import json
from datetime import datetime, timezone
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.urls import open_url

from ansible_collections.gaudi3.scale.plugins.module_utils._monitoring.silences import Wanted, changes, seconds

#: Seconds that Alertmanager may take for an answer.
PATIENCE = 15


def ask(module: AnsibleModule, path: str, method: str = "GET", data: Any = None) -> Any:
    """An answer of Alertmanager's, or the end of the module."""
    try:
        with open_url(
            f"{module.params['url'].rstrip('/')}/api/v2/{path}",
            method=method,
            data=None if data is None else json.dumps(data),
            headers={"Content-Type": "application/json"},
            url_username="alertmanager",
            url_password=module.params["password"],
            force_basic_auth=True,
            ca_path=module.params["ca_path"],
            timeout=PATIENCE,
        ) as answer:
            text = answer.read()
        return json.loads(text) if text else None
    except (OSError, ValueError) as error:
        module.fail_json(
            msg=f"Alertmanager at {module.params['url']} does not do what it is asked ({error}): see whether it runs"
            " (systemctl status prometheus-alertmanager), and run again."
        )


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "url": {"type": "str", "required": True},
            "ca_path": {"type": "path"},
            "password": {"type": "str", "required": True, "no_log": True},
            "nodes": {"type": "list", "elements": "str", "required": True},
            "length": {"type": "str", "default": ""},
            "reason": {"type": "str", "default": ""},
            "state": {"type": "str", "default": "present", "choices": ["present", "absent"]},
        },
        supports_check_mode=True,
    )
    given = module.params
    present = given["state"] == "present"
    length = seconds(given["length"]) if present else 0
    if present and not (length and given["reason"].strip()):
        module.fail_json(
            msg=f'A silence of "{given["length"]}" because of "{given["reason"]}" is not made: give a length such as 2h'
            " and a reason."
        )
    wanted = Wanted(given["nodes"], length, given["reason"].strip())
    made = changes(ask(module, "silences"), wanted, datetime.now(timezone.utc))
    if not module.check_mode:
        # The new one first, so that nothing is sent in between.
        for each in made.make:
            ask(module, "silences", "POST", each)
        for identity in made.end:
            ask(module, f"silence/{identity}", "DELETE")
    module.exit_json(
        changed=bool(made.make or made.end),
        silenced=made.nodes(),
        ended=made.end,
        diff={
            "before": "".join(f"silence {identity}\n" for identity in made.end),
            "after": "".join(
                f"{node} is silent until {each['endsAt']}\n" for node, each in zip(made.nodes(), made.make)
            ),
        },
    )


if __name__ == "__main__":
    main()
