# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Whose signature a certificate has.

The owner names a key of SSH. Whoever verifies needs its public half from the owner, by a way that is trusted.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from typing import Optional

from .._ssh_keygen import key_of
from .._ssh_keygen import sign as sign_for

NAMESPACE = "gaudi3-certificate"
_PUBLIC = re.compile(r"(?:ssh-|ecdsa-|sk-)[A-Za-z0-9@.-]{1,60} ([A-Za-z0-9+/=]{16,16384})(?: [^\n]*)?\n?")


def sign(text: str, key: str) -> str:
    """The signature of a text by the key in a file; Refusal where it does not sign."""
    return sign_for(text, key, NAMESPACE)


def signer(text: str, signature: str) -> tuple[str, str]:
    """The fingerprint of the key that signed a text, or else "" and why the signature is none of it."""
    return key_of(text, signature, NAMESPACE)


def problem(text: str, signature: Optional[str], public: str) -> str:
    """Why the signature is not one of this public key over this text, for a sentence; empty where it is."""
    if signature is None:
        return "there is no signature"
    wanted = _fingerprint(public)
    if not wanted:
        return "the key that was given is no public key of SSH"
    by, why = signer(text, signature)
    if not by:
        return f"the signature is none of it ({why})"
    return "" if by == wanted else f"it is signed by the key {by}, and the one that was given is {wanted}"


def _fingerprint(public: str) -> str:
    """As ssh-keygen -l shows it; empty for what is no public key."""
    found = _PUBLIC.fullmatch(public)
    try:
        content = base64.b64decode(found.group(1), validate=True) if found else b""
    except binascii.Error:
        return ""
    return f"SHA256:{base64.b64encode(hashlib.sha256(content).digest()).decode().rstrip('=')}" if content else ""
