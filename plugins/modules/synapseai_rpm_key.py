#!/usr/bin/python
# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Ansible module: the key of the vendor's rpm packages, checked and kept on the node."""

from __future__ import annotations

DOCUMENTATION = r"""
module: synapseai_rpm_key
short_description: "Internal to the collection: keep the checked key of the vendor's rpm packages in a file"
version_added: 0.1.0
author:
  - gaudi3.scale contributors (@gaudi3)
description:
  - Fetches the key of the vendor's rpm packages, checks its fingerprint and writes it to a file for C(gpgkey=file://...)
    of the repository. From a URL dnf imports whatever key it finds there at that moment.
  - A key that is there and right is not fetched again.
options:
  url:
    description: URL of the key, armored or binary.
    type: str
    required: true
  path:
    description: File on the node.
    type: path
    default: /etc/pki/rpm-gpg/RPM-GPG-KEY-habanalabs
  fingerprint:
    description:
      - Fingerprint (40 hexadecimal digits, blanks allowed) that the key must have. Of the file at O(url) only this key
        is kept.
      - Empty means trust on first use - what O(url) holds is kept on the node and warned about with its fingerprints,
        and from then on it stays.
    type: str
    default: ""
  timeout:
    description: Seconds to wait for the answer.
    type: int
    default: 120
attributes:
  check_mode:
    support: full
    description: Fetches and checks the key, and writes nothing.
  diff_mode:
    support: full
    description: Shows the file.
seealso:
  - module: gaudi3.scale.synapseai_packages
"""

EXAMPLES = r"""
- name: Keep the key of the vendor's packages
  gaudi3.scale.synapseai_rpm_key:
    url: https://vault.habana.ai/artifactory/gaudi-general/keyPairs/primary/public
    fingerprint: "{{ synapseai_rpm_key_fingerprint }}"

- name: Add the vendor's repository
  ansible.builtin.yum_repository:
    name: habanalabs
    description: Intel Gaudi software
    baseurl: https://vault.habana.ai/artifactory/rhel/9/9.4
    gpgkey: file:///etc/pki/rpm-gpg/RPM-GPG-KEY-habanalabs
"""

RETURN = r"""
fingerprints:
  description: Fingerprints of the keys in the file.
  returned: success
  type: list
  elements: str
  sample: [60A50F673807C0B7C6EE925DC33CB03EB55E8F00]
path:
  description: The file.
  returned: success
  type: str
  sample: /etc/pki/rpm-gpg/RPM-GPG-KEY-habanalabs
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gaudi3.scale.plugins.module_utils._apt.node import fetch, read
from ansible_collections.gaudi3.scale.plugins.module_utils._apt.openpgp import (
    armor,
    dearmor,
    fingerprints,
    normalized,
    only,
)
from ansible_collections.gaudi3.scale.plugins.module_utils._files import ensure_file
from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal

ADVICE = "check synapseai_rpm_key_url"


def kept(content: bytes | None, fingerprint: str) -> bytes:
    """The keyring that is on the node, if it is one and holds the key asked for and no other; nothing otherwise."""
    try:
        keyring = dearmor(content or b"")
    except ValueError:
        return b""
    return keyring if not fingerprint or fingerprints(keyring) == [fingerprint] else b""


def fetched(url: str, fingerprint: str, timeout: int) -> bytes:
    """The key asked for, from its URL; Refusal where it is not there."""
    try:
        keyring = dearmor(fetch(url, timeout, ADVICE))
    except ValueError as error:
        raise Refusal(f"{url} is not a signing key: {error}; {ADVICE}.") from error
    if not fingerprint:
        return keyring
    found = only(keyring, fingerprint)
    if not found:
        raise Refusal(
            f"The key at {url} has fingerprint {', '.join(fingerprints(keyring))}, not {fingerprint} as "
            "synapseai_rpm_key_fingerprint says; find out which is right before you go on."
        )
    return found


def main() -> None:
    """Keep what is right, fetch what is not."""
    module = AnsibleModule(
        argument_spec={
            "url": {"type": "str", "required": True},
            "path": {"type": "path", "default": "/etc/pki/rpm-gpg/RPM-GPG-KEY-habanalabs"},
            "fingerprint": {"type": "str", "default": ""},
            "timeout": {"type": "int", "default": 120},
        },
        supports_check_mode=True,
    )
    url, path = module.params["url"], module.params["path"]
    try:
        fingerprint = normalized(module.params["fingerprint"], "synapseai_rpm_key_fingerprint")
        present = kept(read(path), fingerprint)
        keyring = present or fetched(url, fingerprint, module.params["timeout"])
    except (ValueError, Refusal) as error:
        module.fail_json(msg=str(error))
    keys = fingerprints(keyring)
    if not present and not fingerprint:
        module.warn(
            f"The key of {url} is trusted on first use: compare {', '.join(keys)} with the vendor's and set "
            "synapseai_rpm_key_fingerprint to it."
        )
    diff = ensure_file(module, path, armor(keyring).decode())
    module.exit_json(changed=diff is not None, fingerprints=keys, path=path, diff=[diff] if diff else [])


if __name__ == "__main__":
    main()
