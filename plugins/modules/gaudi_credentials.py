#!/usr/bin/python
# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Passwords and TLS certificates of the cluster's services, made once and kept on the controller."""

from __future__ import annotations

DOCUMENTATION = r"""
module: gaudi_credentials
short_description: "Internal to the collection: make and keep the passwords and certificates of a cluster's services"
version_added: 0.1.0
author:
  - gaudi3.scale contributors (@gaudi3)
description:
  - Keeps a folder of generated passwords, their bcrypt hashes, one certificate authority and the certificates
    it signs, and returns what was asked for.
  - What is handed over in O(given), from a vault for instance, is checked, returned and written nowhere. Where all
    is given, no folder is needed and none is made.
  - What is there stays as it is, so that a second run changes nothing. A certificate is made again when it is
    about to expire, does not name all O(hosts) or is not signed by the folder's authority.
  - The folder has mode 0700 and each file 0600; wider permissions are taken away.
notes:
  - Meant for C(delegate_to=localhost), with C(no_log=true) on the task since it returns secrets.
  - To use an own password, write it into C(NAME_password). To use an own authority, put C(ca.crt) and each
    service's C(NAME.crt) and C(NAME.key) there, and no C(ca.key). Or hand them over in O(given).
requirements:
  - cryptography >= 42 (comes with ansible-core), only with O(certificate)
  - bcrypt, only with O(passwords)
options:
  directory:
    description:
      - The folder. On the controller one below an inventory source is refused, since Ansible reads every file there as
        an inventory, and would take the passwords for names of hosts.
      - The default on the controller is the folder that P(gaudi3.scale.secrets_dir#lookup) names. Not used where
        O(given) has everything.
    type: path
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
  others:
    description:
      - Names and addresses of other hosts, by host. A certificate that is to be for one of these is refused, as it
        could stand for that host.
    type: dict
    default: {}
  given:
    description:
      - Secrets that come from elsewhere, by name. C(SERVICE_password); C(SERVICE_password_hash), a bcrypt hash of it;
        C(ca_certificate) and C(ca_key), the authority; C(SERVICE_certificate) and C(SERVICE_key), a server's.
        Certificates and keys are PEM text.
      - A certificate without its key and the like are refused. What is omitted is taken from O(directory), and made
        where it is not there. With C(ca_certificate) and C(ca_key) alone the server's certificate is signed with
        them, and with C(SERVICE_password) alone it is hashed, unless O(present) has one that serves.
      - On the controller it is refused without C(no_log=true) on the task.
    type: dict
    default: {}
  service:
    description:
      - The service whose C(SERVICE_certificate) in O(given) is the one that O(certificate) names.
    type: str
  present:
    description:
      - Texts of the host's files, in which a certificate with its key and hashes of passwords are looked for. One
        that serves is returned instead of a new one. Used with O(given) only.
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
      - A certificate with less time than this left is made again.
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

- name: Take the password and the authority from a vault, and write no folder
  gaudi3.scale.gaudi_credentials:
    given:
      prometheus_password: "{{ vault_prometheus_password }}"
      ca_certificate: "{{ vault_ca_certificate }}"
      ca_key: "{{ vault_ca_key }}"
    passwords: [prometheus]
    certificate: "prometheus-{{ inventory_hostname }}"
    service: prometheus
    hosts: ["{{ ansible_host }}", "{{ inventory_hostname }}"]
    present: "{{ _files_of_the_host }}"
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
authority_expires:
  description: When the authority ends.
  returned: with O(certificate)
  type: str
  sample: "2036-12-19T21:09:31+00:00"
files:
  description: What was written or had its permissions narrowed.
  returned: success
  type: list
  elements: str
  sample: [/srv/cluster/secrets/prometheus_password]
"""

from dataclasses import asdict

from ansible.module_utils.basic import AnsibleModule, missing_required_lib

from ansible_collections.gaudi3.scale.plugins.module_utils._credentials import Lifetimes
from ansible_collections.gaudi3.scale.plugins.module_utils._monitoring.secrets import Wanted, keep
from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal


def main() -> None:
    """Module entry point."""
    module = AnsibleModule(
        argument_spec={
            "directory": {"type": "path"},
            "passwords": {"type": "list", "elements": "str", "default": [], "no_log": False},
            "certificate": {"type": "str"},
            "hosts": {"type": "list", "elements": "str", "default": []},
            "others": {"type": "dict", "default": {}},
            # Masked values would be masked in the result, too; the action plugin demands no_log of the task.
            "given": {"type": "dict", "default": {}, "no_log": False},
            "service": {"type": "str"},
            "present": {"type": "list", "elements": "str", "default": []},
            "certificate_days": {"type": "int", "default": 397},
            "authority_days": {"type": "int", "default": 3650},
            "renew_before_days": {"type": "int", "default": 30},
        },
        required_by={"certificate": ("hosts",)},
        supports_check_mode=True,
    )
    options = module.params
    wanted = Wanted(
        options["passwords"],
        options["certificate"] or "",
        options["service"] or "",
        options["hosts"],
        options["others"],
        options["given"],
        options["present"],
        options["directory"] or "",
        Lifetimes(options["certificate_days"], options["authority_days"], options["renew_before_days"]),
    )
    fault = wanted.fault()
    if fault:
        module.fail_json(msg=fault)
    for library, needed in (("cryptography", options["certificate"]), ("bcrypt", options["passwords"])):
        if needed:
            try:
                __import__(library)
            except ImportError:
                module.fail_json(msg=missing_required_lib(library, reason="on the controller"))
    try:
        found = keep(wanted, module.check_mode)
    except (Refusal, OSError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(
        changed=bool(found.files),
        files=found.files,
        passwords={name: asdict(known) for name, known in found.passwords.items()},
        **(asdict(found.certificate) if found.certificate else {}),
    )


if __name__ == "__main__":
    main()
