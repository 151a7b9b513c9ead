#!/usr/bin/python
# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""The certificates of machines, written and signed on the controller."""

from __future__ import annotations

DOCUMENTATION = r"""
module: gaudi_certificate_page
short_description: "Internal to the collection: write and sign certificates of Gaudi nodes"
version_added: 0.1.0
author: gaudi3.scale contributors (@gaudi3)
description:
  - Judges what P(gaudi3.scale.certificate_answers#filter) read of each node, and writes
    C(NODE.certificate.json) and C(NODE.certificate.html).
  - With O(key) the file is signed by C(ssh-keygen), and C(NODE.certificate.json.sig) lies beside it.
  - A certificate that says what was there before, but for the time, is kept.
options:
  answers:
    description: What the filter returned, by the name of the node in the inventory.
    type: dict
    required: true
  folder:
    description: Folder of the certificates, which has to exist.
    type: path
    required: true
  key:
    description: Private key of SSH that signs, without a passphrase or in the agent. If omitted, nothing is signed.
    type: path
attributes:
  check_mode:
    description: Writes nothing and says what it would do.
    support: full
  diff_mode:
    description: Shows which certificates come or change.
    support: full
"""

EXAMPLES = r"""
- name: Write the certificates
  gaudi3.scale.gaudi_certificate_page:
    answers: "{{ {inventory_hostname: said} | gaudi3.scale.certificate_answers }}"
    folder: certificates
    key: ~/.ssh/id_ed25519
  delegate_to: localhost
  run_once: true
"""

RETURN = r"""
nodes:
  description: The grade of each node (A, B, C or none), and why.
  returned: success
  type: dict
  sample: {gaudi-1: {grade: none, why: "no grade, because hl_qual did not answer: it was not asked for"}}
unread:
  description: Why a node has no certificate, by node.
  returned: success
  type: dict
  sample: {}
"""

import os
from typing import Any, Optional

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gaudi3.scale.plugins.module_utils._certificate import document, page, signature
from ansible_collections.gaudi3.scale.plugins.module_utils._certificate.evidence import Evidence, read
from ansible_collections.gaudi3.scale.plugins.module_utils._files import ensure_file
from ansible_collections.gaudi3.scale.plugins.module_utils._kinds import mapping, text
from ansible_collections.gaudi3.scale.plugins.module_utils._printable import printable
from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal
from ansible_collections.gaudi3.scale.plugins.module_utils._ssh_keygen import SIGNATURE


def content(path: str) -> Optional[str]:
    """A file's text, None where there is none."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read()
    except FileNotFoundError:
        return None


class Registry:
    """Writes certificates into a folder, and remembers what changed there."""

    def __init__(self, module: AnsibleModule) -> None:
        self.module, self.folder, self.key = module, module.params["folder"], module.params["key"]
        self.changed = False
        self.diffs: list[dict[str, Any]] = []

    def ensure(self, name: str, wanted: Optional[str]) -> None:
        """Have a file of this text, or none."""
        diff = ensure_file(self.module, os.path.join(self.folder, name), wanted, own=False)
        if diff is not None:
            self.changed = True
            self.diffs += [diff] if diff else []

    def issue(self, evidence: Evidence) -> dict[str, Any]:
        """Write the certificate of a node, or keep the one that says the same; Refusal where the key does not sign."""
        name = document.file_of(evidence.node)
        kept = content(os.path.join(self.folder, name))
        wanted = kept if kept is not None and document.is_same(kept, evidence) else document.write(evidence)
        certificate = document.load(wanted, name)
        signed, by = self._signature(wanted, content(os.path.join(self.folder, name + SIGNATURE)))
        # An old signature never lies beside a new file, whenever this is cut off.
        self.ensure(name + SIGNATURE, signed if wanted == kept else None)
        self.ensure(name, wanted)
        self.ensure(name + SIGNATURE, signed)
        self.ensure(name[: -len(".json")] + ".html", page.html(certificate, by))
        return {"grade": certificate.judgement.grade, "why": certificate.judgement.why}

    def _signature(self, wanted: str, kept: Optional[str]) -> tuple[Optional[str], str]:
        """The signature over a text and the fingerprint of its key; one of this key that is there is kept."""
        if self.key is None:
            return None, ""
        public = content(self.key + ".pub")
        if kept is not None and public is not None and not signature.problem(wanted, kept, public):
            return kept, signature.signer(wanted, kept)[0]
        made = signature.sign(wanted, self.key)
        return made, signature.signer(wanted, made)[0]


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "answers": {"type": "dict", "required": True},
            "folder": {"type": "path", "required": True},
            # The path of a key, which is no secret; its content never comes here.
            "key": {"type": "path", "no_log": False},
        },
        supports_check_mode=True,
    )
    given = module.params
    if not module.check_mode and not os.path.isdir(given["folder"]):  # a dry run may have made none
        module.fail_json(msg=f"There is no folder {given['folder']}: make it first.")
    registry = Registry(module)
    nodes, unread = {}, {}
    for node, answer in sorted(given["answers"].items()):
        try:
            evidence = read(mapping(answer).get("evidence"))
        except Refusal:
            unread[node] = text(mapping(answer).get("why"), 300) or "it gave no answer"
            continue
        try:
            nodes[node] = registry.issue(evidence)
        except Refusal as error:
            module.fail_json(msg=str(error))
        except OSError as error:
            place = printable(error.filename or registry.folder, 300)
            module.fail_json(msg=f"{place} cannot be used ({error.strerror}): remove it, or give another folder.")
    module.exit_json(changed=registry.changed, nodes=nodes, unread=unread, diff=registry.diffs)


if __name__ == "__main__":
    main()
