# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Passwords and certificates that are handed over, by a vault for instance, instead of kept in a folder.

What cannot be handed over as it is, a password's hash or a certificate that the given authority signs, stays the one
that the host has for as long as it serves, so that nothing has to be kept on the controller.
"""

from __future__ import annotations

import datetime
import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Optional

from ._credentials import (
    Authority,
    Certificate,
    Lifetimes,
    Password,
    certificate_fault,
    described,
    hash_of,
    issue,
    matches,
)
from ._refusal import Refusal

#: Services whose secrets one dictionary may hold; each role takes its own out of it.
SERVICES = (
    "prometheus",
    "alertmanager",
    "grafana",
    "watch",
    "node_exporter",
    "hpu_exporter",
    "trainer",
    "slurm_database",
    "slurm_munge",
)
_KINDS = ("password", "password_hash", "certificate", "key")
_PEM = re.compile(r"-----BEGIN ([A-Z ]+)-----.+?-----END \1-----", re.DOTALL)
_HASH = re.compile(r"\$2[aby]\$\d\d\$[./A-Za-z0-9]{53}")


@dataclass(frozen=True)
class Given:
    """The secrets by name, and texts of the host among which usable ones may be."""

    values: Mapping[str, Any] = field(default_factory=dict)
    present: Sequence[str] = ()

    def fault(self, services: Iterable[str]) -> str:
        """What is wrong with the names and types, in one sentence; empty where nothing is."""
        known = ["ca_certificate", "ca_key"]
        known += [f"{name}_{kind}" for name in dict.fromkeys((*SERVICES, *services)) for kind in _KINDS]
        for name, value in self.values.items():
            if name not in known:
                return f"{name} is none of the secrets that can be handed over ({', '.join(known)}); correct its name."
            if not isinstance(value, str) or not value.strip():
                what = "empty" if value is None or isinstance(value, str) else "no text"
                return f"The secret {name} is {what}; hand it over as text, or leave it out to have one made."
        return ""

    def missing(self, passwords: Iterable[str], certificate: bool) -> list[str]:
        """Names of what is asked for, not handed over, and has to be kept in a folder therefore."""
        lacking = [f"{name}_password" for name in passwords if f"{name}_password" not in self.values]
        return lacking + (["ca_certificate"] if certificate and "ca_certificate" not in self.values else [])

    def password(self, name: str) -> Optional[Password]:
        """The password and a hash of it; None where it is not handed over."""
        text, given = self._text(f"{name}_password"), self._text(f"{name}_password_hash")
        if not text:
            if given:
                raise Refusal(f"{name}_password_hash is handed over without {name}_password; add that.")
            return None
        password = text.encode()
        if len(password) > 72:
            raise Refusal(f"{name}_password has {len(password)} bytes; hand over one of 1 to 72 bytes.")
        if given and not matches(password, given.encode()):
            raise Refusal(f"{name}_password_hash is no bcrypt hash of {name}_password; correct it, or leave it out.")
        known = (found for text in self.present for found in _HASH.findall(text))
        kept = given or next((each for each in known if matches(password, each.encode())), "")
        return Password(text, kept or hash_of(password).decode())

    def certificate(
        self, service: str, hosts: list[str], lifetimes: Lifetimes, now: datetime.datetime
    ) -> Optional[Certificate]:
        """The server's certificate: handed over, or signed by the authority that is; None without an authority."""
        authority = Authority(self._pem("ca_certificate") or b"", self._pem("ca_key"))
        leaf, key = self._pem(f"{service}_certificate"), self._pem(f"{service}_key")
        if not authority.certificate:
            alone = [name for name in ("ca_key", f"{service}_certificate", f"{service}_key") if name in self.values]
            if alone:
                raise Refusal(f"{alone[0]} is handed over without ca_certificate; add that.")
            return None
        end = _end(authority, now)
        if leaf or key:
            fault = certificate_fault(leaf, key, authority.certificate, hosts, now)
            if fault:
                raise Refusal(
                    f"{service}_certificate with {service}_key cannot be used, since "
                    f"{fault.replace('ca.crt', 'ca_certificate')}; hand over one for {', '.join(hosts)}, or ca_key "
                    "to have it made."
                )
            return described(leaf or b"", key or b"", authority.certificate)
        if authority.key is None:
            raise Refusal(
                f"ca_certificate is handed over without ca_key and without {service}_certificate and {service}_key; "
                f"add the key, or a certificate for {', '.join(hosts)}."
            )
        until = min(now + datetime.timedelta(days=lifetimes.renew_before), end)
        blocks = [(match[1], match[0].encode() + b"\n") for text in self.present for match in _PEM.finditer(text)]
        leaves = [text for kind, text in blocks if kind == "CERTIFICATE"]
        keys = [text for kind, text in blocks if kind == "PRIVATE KEY"]
        for leaf, key in itertools.product(leaves, keys):
            if not certificate_fault(leaf, key, authority.certificate, hosts, until):
                return described(leaf, key, authority.certificate)
        return described(*issue(authority, hosts, lifetimes.certificate, now), authority.certificate)

    def _text(self, name: str) -> str:
        return str(self.values.get(name, "")).strip()

    def _pem(self, name: str) -> Optional[bytes]:
        text = self._text(name)
        return text.encode() + b"\n" if text else None


def _end(authority: Authority, now: datetime.datetime) -> datetime.datetime:
    """When the authority ends; refuses one that cannot sign, or whose key is another's."""
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        certificate = x509.load_pem_x509_certificate(authority.certificate)
    except ValueError as error:
        raise Refusal(f"ca_certificate cannot be read ({error}); hand over a PEM certificate.") from error
    try:
        signs = certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    except x509.ExtensionNotFound:
        signs = False
    if not signs:
        raise Refusal("ca_certificate is no authority's; hand over the one that signs the servers'.")
    end = certificate.not_valid_after_utc
    if end <= now:
        raise Refusal(f"ca_certificate ended on {end:%Y-%m-%d}; hand over a new one.")
    if authority.key is not None:
        try:
            own = load_pem_private_key(authority.key, None).public_key() == certificate.public_key()
        except (TypeError, ValueError) as error:
            raise Refusal(f"ca_key cannot be read ({error}); hand over its PEM key without a password.") from error
        if not own:
            raise Refusal("ca_key is not the key of ca_certificate; hand over the two that belong together.")
    return end
