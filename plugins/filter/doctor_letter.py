# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Say what the examinations of all nodes found, and what to do next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Optional

from ansible_collections.gaudi3.scale.plugins.module_utils._progress.doctor import doctor_lines
from ansible_collections.gaudi3.scale.plugins.module_utils._progress.unreachable import Login, leading
from ansible_collections.gaudi3.scale.plugins.plugin_utils.filters import filter_module

DOCUMENTATION = r"""
name: doctor_letter
short_description: Say what the examinations of all nodes found, and what to do next
version_added: 0.1.0
author:
  - gaudi3.scale contributors (@gaudi3)
description:
  - Returns the lines for all nodes. Each odd finding is a sentence, and says which phase of the site does away with it.
    Nodes with the same findings share their lines. A node that does not answer has the cause (no route, host key,
    login) and a command. The last line is the command to type next.
  - The answers may be of any form.
options:
  _input:
    description: What M(gaudi3.scale.gaudi_doctor_info) returned of each node, by its name.
    type: dict
    required: true
  logins:
    description:
      - The address, user, port, key and arguments of ssh with which Ansible logs in to each node, as a list by the
        node's name. What is empty, ssh decides.
    type: dict
    default: {}
  sources:
    description: The sources of the inventory, for the command.
    type: list
    elements: str
    default: []
"""

EXAMPLES = r"""
- name: Show what was found
  ansible.builtin.debug:
    msg: "{{ {'gaudi-1': answer} | gaudi3.scale.doctor_letter({}, ['mine']) }}"
"""

RETURN = r"""
_value:
  description: The lines.
  type: list
  elements: str
  sample:
    - "gaudi-1: 8 Gaudi cards, driver not loaded, Ubuntu 24.04.2 LTS, kernel 6.8.0; 1 that a phase of the site cures"
    - "  cured by the phase drivers:"
    - "    the driver (module habanalabs) is not loaded"
    - "Next, to see what the site would change:"
    - "  ansible-playbook -i mine gaudi3.scale.site --check --diff"
"""


def login(host: str, given: object) -> Login:
    """How Ansible logs in to a host, by variables that may be of any type."""
    values = [str(each or "") for each in given] if isinstance(given, (list, tuple)) else []
    address, user, port, key, options = [*values, "", "", "", "", ""][:5]
    try:
        leads = leading(options)
    except ValueError:
        return Login("")
    return Login(address or host, user, int(port) if port.isdigit() else 0, key, leads)


def doctor_letter(
    answers: Mapping[str, object], logins: Optional[Mapping[str, object]] = None, sources: Sequence[str] = ()
) -> list[str]:
    """See DOCUMENTATION."""
    given = {host: login(host, (logins or {}).get(host)) for host in answers}
    return doctor_lines(answers, given, [str(each) for each in sources])


FilterModule = filter_module(doctor_letter=doctor_letter)
