#!/usr/bin/python
# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Passwords and TLS certificates of the cluster's services, made once and kept on the controller."""

from __future__ import annotations

DOCUMENTATION = r"""
module: gaudi_credentials
short_description: Make and keep the passwords and certificates of a cluster's services
version_added: 0.1.0
author:
  - gaudi3.scale contributors (@gaudi3)
description:
  - Keeps a folder of generated passwords, their bcrypt hashes, one certificate authority and the certificates
    it signs, and returns what was asked for.
  - What is there stays as it is, so that a second run changes nothing. A certificate is made anew when it is
    about to expire, does not name all O(hosts) or is not signed by the folder's authority.
  - The folder has mode 0700 and each file 0600; wider permissions are taken away.
notes:
  - Meant for C(delegate_to=localhost), with C(no_log=true) on the task since it returns secrets.
  - To use an own password, write it into C(NAME_password). To use an own authority, put C(ca.crt) and each
    service's C(NAME.crt) and C(NAME.key) there, and no C(ca.key).
requirements:
  - cryptography >= 42 (comes with ansible-core), only with O(certificate)
  - bcrypt, only with O(passwords)
options:
  directory:
    description:
      - The folder. On the controller one below an inventory source is refused, since Ansible reads every file there as
        an inventory, and would take the passwords for names of hosts.
    type: path
    required: true
  passwords:
    description:
      - Names of the passwords to return, each kept as C(NAME_password).
    type: list
    elements: str
    default: []
  certificate:
    description:
      - Name of the certificate to return, kept as C(NAME.crt) and C(NAME.key).
    type: str
  hosts:
    description:
      - Host names and addresses that the certificate is for.
      - Needed with O(certificate).
    type: list
    elements: str
    default: []
  certificate_days:
    description:
      - How long a new certificate is valid.
    type: int
    default: 397
  authority_days:
    description:
      - How long a new authority is valid.
    type: int
    default: 3650
  renew_before_days:
    description:
      - A certificate with less time than this left is made anew.
    type: int
    default: 30
attributes:
  check_mode:
    description:
      - Says what would be made and makes nothing. For secrets that are not there yet it returns passing ones.
    support: full
  diff_mode:
    description: Shows what would change.
    support: none
    details: The files are secrets; RV(files) names those that changed.
"""

EXAMPLES = r"""
- name: Make the password and the certificate of a service
  gaudi3.scale.gaudi_credentials:
    directory: "{{ gaudi_secrets_dir }}"
    passwords: [prometheus]
    certificate: "prometheus-{{ inventory_hostname }}"
    hosts: ["{{ ansible_host }}", "{{ inventory_hostname }}"]
  delegate_to: localhost
  register: _credentials
  no_log: true
"""

RETURN = r"""
passwords:
  description: The passwords by name.
  returned: success
  type: dict
  sample: {prometheus: {password: zUz9..., hash: $2b$10$...}}
certificate:
  description: The certificate, PEM.
  returned: with O(certificate)
  type: str
  sample: "-----BEGIN CERTIFICATE-----..."
private_key:
  description: Its key, PEM.
  returned: with O(certificate)
  type: str
  sample: "-----BEGIN PRIVATE KEY-----..."
authority:
  description: The certificate of the authority that signed it, PEM.
  returned: with O(certificate)
  type: str
  sample: "-----BEGIN CERTIFICATE-----..."
expires:
  description: When the certificate ends.
  returned: with O(certificate)
  type: str
  sample: "2027-12-22T21:09:31+00:00"
files:
  description: What was written or had its permissions narrowed.
  returned: success
  type: list
  elements: str
  sample: [/srv/cluster/secrets/prometheus_password]
"""

import datetime
import re
from typing import Any

from ansible.module_utils.basic import AnsibleModule, missing_required_lib

from ansible_collections.gaudi3.scale.plugins.module_utils.credentials import (
    CredentialError,
    Folder,
    Lifetimes,
    keep_certificate,
    keep_password,
)

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def main() -> None:
    """Module entry point."""
    module = AnsibleModule(
        argument_spec={
            "directory": {"type": "path", "required": True},
            "passwords": {"type": "list", "elements": "str", "default": [], "no_log": False},
            "certificate": {"type": "str"},
            "hosts": {"type": "list", "elements": "str", "default": []},
            "certificate_days": {"type": "int", "default": 397},
            "authority_days": {"type": "int", "default": 3650},
            "renew_before_days": {"type": "int", "default": 30},
        },
        required_by={"certificate": ("hosts",)},
        supports_check_mode=True,
    )
    options = module.params
    fault = _fault(options)
    if fault:
        module.fail_json(msg=fault)
    for library, needed in (("cryptography", options["certificate"]), ("bcrypt", options["passwords"])):
        if needed:
            try:
                __import__(library)
            except ImportError:
                module.fail_json(msg=missing_required_lib(library, reason="on the controller"))
    folder = Folder(options["directory"], dry_run=module.check_mode)
    result: dict[str, Any] = {}
    try:
        with folder.opened():
            result["passwords"] = {name: vars(keep_password(folder, name)) for name in options["passwords"]}
            if options["certificate"]:
                lifetimes = Lifetimes(
                    options["certificate_days"], options["authority_days"], options["renew_before_days"]
                )
                now = datetime.datetime.now(datetime.timezone.utc)
                kept = keep_certificate(folder, options["certificate"], options["hosts"], lifetimes, now)
                result.update(vars(kept))
    except (CredentialError, OSError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=bool(folder.changed), files=folder.changed, **result)


def _fault(options: dict[str, Any]) -> str:
    """What is wrong with the options, in one sentence; empty where nothing is."""
    names = [*options["passwords"], *([options["certificate"]] if options["certificate"] else [])]
    for name in names:
        if not _NAME.fullmatch(name):
            return f"{name!r} is no name for a secret; use letters, digits, dots, hyphens and underscores."
    if options["certificate"] and not options["hosts"]:
        return f"The certificate {options['certificate']} is for no host; give its names as hosts."
    if not 0 < options["renew_before_days"] < options["certificate_days"] < options["authority_days"]:
        return (
            f"renew_before_days {options['renew_before_days']}, certificate_days "
            f"{options['certificate_days']} and authority_days {options['authority_days']} must grow in this "
            "order; correct them."
        )
    return ""


if __name__ == "__main__":
    main()
