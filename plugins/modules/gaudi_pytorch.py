#!/usr/bin/python
# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Ansible module: the vendor's PyTorch of one release in an environment of its own."""

from __future__ import annotations

DOCUMENTATION = r"""
module: gaudi_pytorch
short_description: Install the vendor's PyTorch of one release in an environment of its own
version_added: 0.1.0
author:
  - gaudi3.scale contributors (@gaudi3)
description:
  - Downloads the vendor's tarball of PyTorch, checks its SHA-256, installs it with its own C(install.sh) into a virtual
    environment for this release, and adds a pinned list of packages without what they depend on. C(torch) in O(root)
    links to the environment in use.
  - What the tarball brought is never replaced by the list. An environment whose torch was replaced is made again. So is
    one in which a file of the tarball's packages has another size than it was installed with, as after a power cut.
  - A release of a package that is known to do harm is refused by its name, in the list and in the environment.
  - One run at a time installs below O(root). Another one is refused meanwhile.
  - Once it is installed, the user of the jobs has to be able to import torch with the plugin for the cards. The
    driver's packages have to be there for it.
  - Before anything is changed, and in check mode, it looks for a tarball for this system and Python, for free space,
    and whether all hosts of the download can be reached.
options:
  state:
    description:
      - With V(present) PyTorch is installed.
      - With V(preinstalled) O(executable) has to have it, as in the vendor's image, and nothing is changed.
    type: str
    choices: [present, preinstalled]
    default: present
  release:
    description: The SynapseAI release, as MAJOR.MINOR.PATCH-BUILD. It has to be the driver's.
    type: str
    required: true
  driver_release:
    description: The driver's release, which O(release) has to equal. Empty where it is not known.
    type: str
    default: ""
  system:
    description: The vendor's folder for this operating system, such as V(ubuntu2404).
    type: str
    default: ""
  distribution:
    description: Name and version of the operating system, such as V(Ubuntu 24.04). O(system) follows from it.
    type: str
    default: ""
  version:
    description: Version of PyTorch in the tarball's name. May be omitted where it is known of the release.
    type: str
    default: ""
  kind:
    description: The vendor's build (V(fork)), or upstream torch with the vendor's plugin (V(public)).
    type: str
    choices: [fork, public]
    default: fork
  executable:
    description: The Python that the environment is made with, or with O(state=preinstalled) the one that has PyTorch.
    type: path
    default: /usr/bin/python3
  pythons:
    description: Versions of Python that the tarball's wheels are for, where a mirror has others than the vendor.
    type: list
    elements: str
    default: []
  python_later:
    description:
      - Packages that have O(executable) are installed afterwards. A Python that is missing, or cannot make
        environments, is then no error in check mode.
    type: bool
    default: false
  repository_url:
    description: Folder of all tarballs.
    type: str
    default: https://vault.habana.ai/artifactory/gaudi-pt-modules
  sha256:
    description:
      - SHA-256 that the tarball must have.
      - Empty means trust on first use - the digest is kept on the node and warned about, and another is refused from
        then on.
    type: str
    default: ""
  lock_url:
    description: Address of C(lock.json) of a sealed mirror, which has the tarball's SHA-256 where O(sha256) is empty.
    type: str
    default: ""
  lock_sha256:
    description: SHA-256 that the lock itself must have. Empty for any.
    type: str
    default: ""
  requirements:
    description:
      - Packages beside PyTorch, each as C(name==version --hash=sha256:DIGEST), with the SHA-256 of every file that may
        be installed. torch cannot be one of them.
      - Wheels alone are installed, as what a build needs has no hashes.
    type: list
    elements: str
    default: []
  index_url:
    description: Package index for O(requirements). Empty for what pip is configured for.
    type: str
    default: ""
  index_plain_http:
    description:
      - Allows an O(index_url) with C(http://) that is not on the node itself. Everyone on the way may then read the
        traffic, a password in the address included. The hashes in O(requirements) still decide which files are
        installed.
    type: bool
    default: false
    version_added: 0.1.0
  root:
    description: Folder of the environments.
    type: path
    default: /opt/gaudi3-scale
  user:
    description: User of the jobs, who has to be able to use the environment. Until it exists, nobody stands for it.
    type: str
    default: gaudi3-scale
  timeout:
    description: Seconds to wait for an answer of a host.
    type: int
    default: 120
attributes:
  check_mode:
    description: Tells what would be installed, and refuses what cannot be.
    support: full
  diff_mode:
    description: Shows torch and plugin before, and the tarball after.
    support: full
  platform:
    description: Linux.
    platforms: linux
    support: full
seealso:
  - module: gaudi3.scale.trainer_install
  - module: gaudi3.scale.synapseai_packages
"""

EXAMPLES = r"""
- name: Install PyTorch of the driver's release
  gaudi3.scale.gaudi_pytorch:
    release: 1.23.0-695
    distribution: "{{ ansible_facts.distribution }} {{ ansible_facts.distribution_version }}"

- name: See that the vendor's image has it
  gaudi3.scale.gaudi_pytorch:
    release: 1.23.0-695
    state: preinstalled
    executable: /usr/bin/python3
"""

RETURN = r"""
python:
  description: The Python that has PyTorch.
  returned: success
  type: str
  sample: /opt/gaudi3-scale/torch/bin/python
torch:
  description: Version of torch. Empty where it would be installed in check mode.
  returned: success
  type: str
  sample: 2.9.0a0+git1234567
plugin:
  description: Version of the plugin for the cards, habana-torch-plugin.
  returned: success
  type: str
  sample: 1.23.0.695
tarball:
  description: The installed tarball, below O(repository_url). Empty where none is.
  returned: success
  type: str
  sample: 1.23.0/695/pytorch/ubuntu2404/pytorch_modules-v2.9.0_1.23.0_695.tgz
sha256:
  description: SHA-256 of the installed tarball. Empty where none is.
  returned: success
  type: str
  sample: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
done:
  description: What was done (or in check mode, would be) - V(pytorch), V(requirements), V(link).
  returned: success
  type: list
  elements: str
  sample: [pytorch, requirements, link]
"""

import os

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gaudi3.scale.plugins.module_utils._module_bodies import pytorch


def main() -> None:
    """Run the module."""
    # The job's user reads all of this, whatever the umask of the one who installs.
    os.umask(0o022)
    module = AnsibleModule(argument_spec=pytorch.ARGUMENT_SPEC, supports_check_mode=True)
    module.exit_json(**pytorch.run(module))


if __name__ == "__main__":
    main()
