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
#: A key begins with one of these; the packets up to the next one belong to it.
_PRIMARY_KEYS = (5, _PUBLIC_KEY)


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
    return [found for packet in _packets(keyring) if (found := packet.fingerprint)]


def only(keyring: bytes, fingerprint: str) -> bytes:
    """The packets of one primary key, with its names, subkeys and signatures; nothing where it is not there."""
    kept, wanted = b"", False
    for packet in _packets(keyring):
        if packet.tag in _PRIMARY_KEYS:
            # A key that is there twice is as good from its first copy.
            wanted = packet.fingerprint == fingerprint and not kept
        if wanted:
            kept += packet.whole
    return kept


def armor(keyring: bytes) -> bytes:
    """A binary keyring as text, which is the form that rpm reads."""
    text = base64.b64encode(keyring).decode()
    lines = [text[start : start + 64] for start in range(0, len(text), 64)]
    checksum = base64.b64encode(_crc24(keyring).to_bytes(3, "big")).decode()
    head, tail = "-----BEGIN PGP PUBLIC KEY BLOCK-----", "-----END PGP PUBLIC KEY BLOCK-----"
    return "\n".join([head, "", *lines, "=" + checksum, tail, ""]).encode()


def _crc24(data: bytes) -> int:
    """The checksum of an armor (RFC 4880, section 6.1)."""
    value = 0xB704CE
    for byte in data:
        value ^= byte << 16
        for _bit in range(8):
            value <<= 1
            if value & 0x1000000:
                value ^= 0x1864CFB
    return value


def normalized(fingerprint: str, variable: str = "synapseai_key_fingerprint") -> str:
    """A fingerprint in capital hex digits without blanks; ValueError where it is none. Empty stays empty."""
    digits = fingerprint.replace(" ", "").upper()
    if digits and (len(digits) != 40 or set(digits) - set("0123456789ABCDEF")):
        raise ValueError(
            f"'{fingerprint}' is not a key fingerprint; set {variable} to all 40 hexadecimal digits, or to ''."
        )
    return digits


@dataclass(frozen=True)
class _Packet:
    """One packet: its tag, its body, and all its bytes."""

    tag: int
    body: bytes
    whole: bytes

    @property
    def fingerprint(self) -> str:
        """Of a primary key of version 4; empty for all else."""
        if self.tag != _PUBLIC_KEY or self.body[:1] != b"\x04":
            return ""
        head = b"\x99" + len(self.body).to_bytes(2, "big")
        return hashlib.sha1(head + self.body).hexdigest().upper()


def _packets(data: bytes) -> Iterator[_Packet]:
    """The packets of a keyring (RFC 4880, section 4.2); stops at the first one that makes no sense."""
    position = 0
    while position + 1 < len(data):
        start, head = position, data[position]
        position += 1
        if head & 0xC0 == 0xC0:
            tag = head & 0x3F
            used, size = _new_length(data[position : position + 5])
        elif head & 0x80 and head & 0x03 != 3:
            tag = (head & 0x3C) >> 2
            used = 1 << (head & 0x03)
            size = int.from_bytes(data[position : position + used], "big")
        else:
            return
        position += used
        end = position + size
        if not used or end > len(data):
            return
        yield _Packet(tag, data[position:end], data[start:end])
        position = end


def _new_length(octets: bytes) -> tuple[int, int]:
    """How many octets say the length of a body, and the length; 0 octets where they say none (section 4.2.2)."""
    first = octets[0]
    if first < 192:
        return 1, first
    if first < 224 and len(octets) > 1:
        return 2, ((first - 192) << 8) + octets[1] + 192
    if first == 255 and len(octets) == 5:
        return 5, int.from_bytes(octets[1:5], "big")
    return 0, 0


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
