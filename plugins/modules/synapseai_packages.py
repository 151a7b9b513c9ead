#!/usr/bin/python
# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Ansible module: the vendor's package set at one release."""

from __future__ import annotations

DOCUMENTATION = r"""
module: synapseai_packages
short_description: "Internal to the collection: hold the SynapseAI packages of an apt node at one release"
version_added: 0.1.0
author:
  - gaudi3.scale contributors (@gaudi3)
description:
  - Verifies the vendor's apt repository (key, signature of C(InRelease), digest of C(Packages)) before apt gets
    it, then writes key, source and pin, installs the whole set in one transaction and puts it on hold.
  - Installed packages of the family C(habanalabs-*) that are not in O(packages) are moved with the set, since a mixed
    set does not work.
  - Where all stands at the release already, the repository is not asked.
  - Everything that can be judged beforehand (release unknown to the repository, wrong key, packages on a host that
    cannot be reached, downgrade, no compiler, no component C(universe)) fails before anything is changed.
options:
  release:
    description: The release for the whole set, such as V(1.23.0-695).
    type: str
    required: true
  packages:
    description: Packages that have to be there, at O(release).
    type: list
    elements: str
    required: true
  prerequisites:
    description: Packages of the distribution that have to be there first, in any version (kernel headers, for example).
    type: list
    elements: str
    default: []
  repository_url:
    description: Base URL of the repository, the folder that holds C(dists).
    type: str
    required: true
  suite:
    description: Suite of the repository, such as V(jammy).
    type: str
    required: true
  key_url:
    description: URL of the repository's public key.
    type: str
    required: true
  key_fingerprint:
    description:
      - Fingerprint (40 hexadecimal digits, blanks allowed) that the signing key must have. Of the file at
        O(key_url) only this key is kept, and apt accepts the repository with its signature or one of its subkeys'
        only.
      - Empty means trust on first use - the key which signs the repository is kept on the node, its fingerprint is
        returned and warned about, and from then on a repository signed with another key is refused.
    type: str
    default: ""
  take_over_sources:
    description:
      - What to do with another source file that names the repository, such as the vendor's installer leaves. With
        V(false) the task fails, since apt refuses one repository with two keys; with V(true) the file is moved aside,
        with a backup beside it.
      - A file that names other repositories too is never moved.
    type: bool
    default: false
  allow_downgrade:
    description: Whether packages that are newer than O(release) may be taken back to it.
    type: bool
    default: false
  timeout:
    description: Seconds to wait for the repository's answers, and for another apt or dpkg to release its lock.
    type: int
    default: 120
attributes:
  check_mode:
    support: full
    description: Predicts files, packages and versions; the repository is verified too.
  diff_mode:
    support: full
    description: Shows source, pin, key fingerprint and the version of each package.
seealso:
  - module: gaudi3.scale.gaudi_driver
"""

EXAMPLES = r"""
- name: Install the driver and tools of one release
  gaudi3.scale.synapseai_packages:
    release: 1.23.0-695
    packages: [habanalabs-firmware, habanalabs-dkms, habanalabs-firmware-tools, habanalabs-qual]
    prerequisites: ["linux-headers-{{ ansible_facts.kernel }}"]
    repository_url: https://vault.habana.ai/artifactory/debian
    suite: jammy
    key_url: https://vault.habana.ai/artifactory/api/gpg/key/public
"""

RETURN = r"""
done:
  description: What was changed (or in check mode, would be) - V(key), V(files) of apt, V(packages).
  returned: success
  type: list
  elements: str
  sample: [packages]
release:
  description: The release asked for.
  returned: always
  type: str
  sample: 1.23.0-695
fingerprints:
  description: Fingerprints of the trusted keys.
  returned: always
  type: list
  elements: str
  sample: [60A50F673807C0B7C6EE925DC33CB03EB55E8F00]
taken_over:
  description: Other files that named the repository and were moved aside (in check mode, would be).
  returned: always
  type: list
  elements: str
  sample: [/etc/apt/sources.list.d/habanalabs_synapseai.list]
packages:
  description: The whole set, with what was installed before.
  returned: always
  type: list
  elements: dict
  contains:
    name:
      description: Package name.
      type: str
      sample: habanalabs-dkms
    before:
      description: Version before, null where it was not installed.
      type: str
      sample: 1.22.0-740
    version:
      description: Version now, or after a real run.
      type: str
      sample: 1.23.0-695
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gaudi3.scale.plugins.module_utils._module_bodies import packages


def main() -> None:
    """Run the module."""
    module = AnsibleModule(argument_spec=packages.ARGUMENT_SPEC, supports_check_mode=True)
    module.exit_json(**packages.run(module))


if __name__ == "__main__":
    main()
