# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Judge a SynapseAI release on the controller, before a node is touched."""

from __future__ import annotations

from ansible.errors import AnsibleFilterError
from ansible.utils.display import Display

from ansible_collections.gaudi3.scale.plugins.module_utils._printable import printable
from ansible_collections.gaudi3.scale.plugins.module_utils._release.support_matrix import (
    release_cautions,
    release_problem,
)
from ansible_collections.gaudi3.scale.plugins.plugin_utils.filters import filter_module

DOCUMENTATION = r"""
name: synapseai_release
short_description: Say why a SynapseAI release must not be installed on an operating system
version_added: 0.1.0
author:
  - gaudi3.scale contributors (@gaudi3)
description:
  - Looks a release up in the support matrix that comes with the collection.
  - A pair that the matrix neither lists nor denies (unconfirmed) passes with a warning, and so does a release whose
    PyTorch is too old for the trainer.
options:
  _input:
    description: The release, for example V(1.23.0-695).
    type: str
    required: true
  distribution:
    description: The operating system as C(ansible_facts.distribution) has it.
    type: str
    required: true
  version:
    description: Its version as C(ansible_facts.distribution_version) has it.
    type: str
    required: true
  accept_unsupported:
    description: Let a pair pass that the matrix does not list.
    type: bool
    default: false
  accept_unknown:
    description: Let a release pass, with a warning, that the matrix does not know.
    type: bool
    default: false
  generation:
    description: Generation of the host's cards, as C(ansible_facts.gaudi_pci.generation) has it; null where it is not
      known.
    type: str
"""

EXAMPLES = r"""
- name: Stop where the release is not for this operating system
  ansible.builtin.assert:
    that: problem == ''
    fail_msg: "{{ problem }}"
  vars:
    problem: "{{ '1.23.0-695' | gaudi3.scale.synapseai_release('Ubuntu', '22.04') }}"
"""

RETURN = r"""
_value:
  description: One sentence on what is wrong and what is allowed; empty where the release may be installed.
  type: str
  sample: ""
"""


def synapseai_release(
    release: str,
    distribution: str,
    version: str,
    accept_unsupported: bool = False,
    accept_unknown: bool = False,
    generation: str | None = None,
) -> str:
    """See DOCUMENTATION."""
    if not isinstance(release, str):
        raise AnsibleFilterError(
            f"synapseai_release needs the release as a string such as '1.23.0-695', not {release!r}."
        )
    # Of the node, which may have said anything.
    system = printable(f"{distribution} {version}", 200)
    generation = None if generation is None else printable(generation, 60)
    problem = release_problem(release, system, accept_unsupported, accept_unknown, generation)
    for caution in [] if problem else release_cautions(release, system):
        Display().warning(caution)
    return problem


FilterModule = filter_module(synapseai_release=synapseai_release)
