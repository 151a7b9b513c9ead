#!/usr/bin/python
# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Ansible module: the vendor's package set at one release."""

from __future__ import annotations

DOCUMENTATION = r"""
module: synapseai_packages
short_description: Bring the SynapseAI packages of an apt node to one release, and hold them there
version_added: 0.1.0
author:
  - gaudi3.scale contributors (@gaudi3)
description:
  - Verifies the vendor's apt repository (key, signature of C(InRelease), digest of C(Packages)) before apt is told of
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

import os
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gaudi3.scale.plugins.module_utils._apt import packages as apt
from ansible_collections.gaudi3.scale.plugins.module_utils._apt.node import (
    KEYRING,
    NEEDS,
    PIN,
    SOURCE,
    Node,
    foreign_sources,
    lacking,
    open_repository,
    read,
    sources,
)
from ansible_collections.gaudi3.scale.plugins.module_utils._apt.openpgp import fingerprints, normalized
from ansible_collections.gaudi3.scale.plugins.module_utils._apt.repository import Source
from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal
from ansible_collections.gaudi3.scale.plugins.module_utils._release.versions import Release


def source_of(given: dict[str, Any]) -> Source:
    """The repository asked for; ValueError says in one sentence what is wrong with the parameters."""
    Release.parse(given["release"])
    fingerprint = normalized(given["key_fingerprint"])
    return Source(given["repository_url"].rstrip("/"), given["suite"], given["key_url"], fingerprint)


def main() -> None:
    """Compare, verify, act."""
    module = AnsibleModule(
        argument_spec={
            "release": {"type": "str", "required": True},
            "packages": {"type": "list", "elements": "str", "required": True},
            "prerequisites": {"type": "list", "elements": "str", "default": []},
            "repository_url": {"type": "str", "required": True},
            "suite": {"type": "str", "required": True},
            "key_url": {"type": "str", "required": True, "no_log": False},
            "key_fingerprint": {"type": "str", "default": "", "no_log": False},
            "take_over_sources": {"type": "bool", "default": False},
            "allow_downgrade": {"type": "bool", "default": False},
            "timeout": {"type": "int", "default": 120},
        },
        supports_check_mode=True,
    )
    given: dict[str, Any] = module.params
    node = Node(module, given["timeout"])
    release = given["release"]
    try:
        source = source_of(given)
        files = sources()
        foreign = foreign_sources(files, source.url, given["take_over_sources"])
    except (ValueError, Refusal) as error:
        module.fail_json(msg=str(error))

    state = node.state([*given["packages"], *given["prerequisites"], *NEEDS])
    plan = apt.make_plan(state, given["packages"], given["prerequisites"], release)
    if plan.downgrades and not given["allow_downgrade"]:
        module.fail_json(msg=apt.newer(state, plan))
    lack = lacking(plan, state, given["prerequisites"], source)
    if lack:
        module.fail_json(msg=lack)

    keyring = trusted = read(KEYRING)
    key = source.key(trusted)
    texts = {SOURCE: source.entry(KEYRING, key), PIN: apt.preferences(release)}
    present = {path: (read(path) or b"").decode(errors="replace") for path in texts}
    if not key or present != texts or plan.install:
        try:
            repository = open_repository(node, source, trusted, plan.packages, release)
        except Refusal as error:
            module.fail_json(msg=str(error))
        keyring = repository.keyring
        texts[SOURCE] = source.entry(KEYRING, repository.fingerprint)
    stale = [path for path, text in texts.items() if present[path] != text]
    old_keys, keys = fingerprints(trusted or b""), fingerprints(keyring or b"")
    new_key = keyring != trusted
    if new_key and not source.fingerprint:
        module.warn(
            f"The key of {source.url} is trusted on first use: compare {', '.join(keys)} with the vendor's and set "
            "synapseai_key_fingerprint to it."
        )
    wanted = {"key": new_key, "files": bool(stale or foreign), "packages": not plan.empty}
    done = [name for name, differs in wanted.items() if differs]
    if done and not module.check_mode:
        for path in foreign:
            module.backup_local(path)
            os.unlink(path)
        node.install_prerequisites(plan)
        if keyring and new_key:
            node.write(KEYRING, keyring)
        for path in stale:
            node.write(path, texts[path].encode())
        node.carry_out(plan, state, refresh=new_key or SOURCE in stale)

    shown = {path: (present[path], text) for path, text in texts.items()}
    shown[KEYRING] = ("".join(f"{key}\n" for key in old_keys), "".join(f"{key}\n" for key in keys))
    shown.update({path: (files[path], "") for path in foreign})
    shown["packages"] = (apt.describe(state, [*plan.packages, *plan.prerequisites]), apt.describe_after(plan))
    module.exit_json(
        changed=bool(done),
        done=done,
        release=release,
        fingerprints=keys,
        taken_over=foreign,
        packages=[
            {"name": name, "before": state[name].version if name in state else None, "version": release}
            for name in plan.packages
        ],
        diff=[
            {"before_header": name, "after_header": name, "before": before, "after": after}
            for name, (before, after) in shown.items()
        ],
    )


if __name__ == "__main__":
    main()
