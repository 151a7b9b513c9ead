# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Public keys as apt takes them, and gpgv's verdict on a signature. No gpg is needed, only apt's gpgv."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass

_ARMOR = re.compile(
    rb"-----BEGIN PGP PUBLIC KEY BLOCK-----\r?\n(?:[^\r\n]+\r?\n)*\r?\n"
    rb"(.*?)-----END PGP PUBLIC KEY BLOCK-----",
    re.S,
)
_PUBLIC_KEY = 6


def dearmor(data: bytes) -> bytes:
    """The binary keyring in ``data``, armored or binary already; ValueError where it is no key."""
    blocks = _ARMOR.findall(data)
    if not blocks:
        if data[:1] and data[0] & 0x80 and fingerprints(data):
            return data
        raise ValueError("it holds no OpenPGP public key")
    binary = b""
    for block in blocks:
        # The last line, =XXXX, is a checksum that gpgv never asked for.
        lines = [line for line in block.split() if not line.startswith(b"=")]
        try:
            binary += base64.b64decode(b"".join(lines), validate=True)
        except binascii.Error as error:
            raise ValueError(f"its armor is damaged ({error})") from error
    if not fingerprints(binary):
        raise ValueError("it holds no OpenPGP public key")
    return binary


def fingerprints(keyring: bytes) -> list[str]:
    """Fingerprints of the primary (version 4) keys of a binary keyring, in capital hex digits."""
    found = []
    for tag, body in _packets(keyring):
        if tag == _PUBLIC_KEY and body[:1] == b"\x04":
            head = b"\x99" + len(body).to_bytes(2, "big")
            found.append(hashlib.sha1(head + body).hexdigest().upper())
    return found


def _packets(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Tag and body of each packet (RFC 4880, section 4.2); stops at the first one that makes no sense."""
    position = 0
    while position + 1 < len(data):
        head = data[position]
        position += 1
        first = data[position]
        if head & 0xC0 == 0xC0:
            tag = head & 0x3F
            if first < 192:
                size, used = first, 1
            elif first < 224:
                size, used = ((first - 192) << 8) + data[position + 1] + 192, 2
            elif first == 255:
                size, used = int.from_bytes(data[position + 1 : position + 5], "big"), 5
            else:
                return
        elif head & 0x80 and head & 0x03 != 3:
            tag = (head & 0x3C) >> 2
            used = 1 << (head & 0x03)
            size = int.from_bytes(data[position : position + used], "big")
        else:
            return
        position += used
        yield tag, data[position : position + size]
        position += size


@dataclass(frozen=True)
class Verdict:
    """What gpgv found: the primary key of a good signature, or what was wrong."""

    fingerprint: str | None = None
    #: bad: the text was changed; expired: the key has expired; unknown: signed by a key that is not in the
    # keyring.
    fault: str = ""
    #: Key id that gpgv named for a fault.
    key: str = ""


def read_verdict(status: str) -> Verdict:
    """Read gpgv's ``--status-fd`` lines. One good signature of an unexpired key is what apt asks for too."""
    fault = Verdict(fault="unknown")
    good = False
    for line in status.splitlines():
        words = line.split()
        if len(words) < 3 or words[0] != "[GNUPG:]":
            continue
        if words[1] == "GOODSIG":
            good = True
        elif words[1] == "VALIDSIG" and good:
            return Verdict(fingerprint=words[-1].upper())
        elif words[1] == "BADSIG":
            fault = Verdict(fault="bad", key=words[2])
        elif words[1] in ("EXPKEYSIG", "REVKEYSIG", "EXPSIG"):
            fault = Verdict(fault="expired", key=words[2])
        elif words[1] in ("NO_PUBKEY", "ERRSIG") and fault.fault == "unknown":
            fault = Verdict(fault="unknown", key=words[2])
    return fault
