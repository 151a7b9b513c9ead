# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Say on the controller which hosts gave no facts that can be used."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.gaudi3.scale.plugins.module_utils._host.facts import Gathered
from ansible_collections.gaudi3.scale.plugins.plugin_utils.filters import filter_module

DOCUMENTATION = r"""
name: gathered_facts
short_description: Say which hosts gave no facts that can be used
version_added: 0.1.0
author:
  - gaudi3.scale contributors (@gaudi3)
description:
  - Takes what the task that gathers facts registered on each host. A host is named if it did not answer, if its facts
    failed or are odd, or if tasks run there as another user than root.
options:
  _input:
    description: The registered result of each host by its name, of any form.
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Show the hosts that do not answer
  ansible.builtin.debug:
    msg: "{{ (answers | gaudi3.scale.gathered_facts).silent }}"
  vars:
    answers:
      gaudi-1: {unreachable: true}
"""

RETURN = r"""
_value:
  description:
    - C(silent), C(mute) and C(powerless) have names of hosts. C(why) says in words why the first C(mute) host is one,
      and C(user) who runs the tasks on the first C(powerless) one.
  type: dict
  sample: {silent: [gaudi-1], mute: [], why: "", powerless: [], user: ""}
"""


def gathered_facts(answers: Mapping[str, object]) -> dict[str, Any]:
    """See DOCUMENTATION."""
    found = Gathered.of(answers)
    return {
        "silent": list(found.silent),
        "mute": list(found.mute),
        "why": found.why,
        "powerless": list(found.powerless),
        "user": found.user,
    }


FilterModule = filter_module(gathered_facts=gathered_facts)
