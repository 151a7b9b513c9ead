# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""gaudinet.json: the addresses of Gaudi's external ports in a layer-3 fabric.

The file present and valid means layer 3, absent means layer 2, and an empty one makes trouble: it is written
whole or removed.
"""

from __future__ import annotations

import hashlib
import ipaddress
import json
import os
import re
from dataclasses import dataclass

from .._refusal import Refusal

DEFAULT_PATH = "/etc/habanalabs/gaudinet.json"
KEYS = ("nic_mac", "nic_ip", "subnet_mask", "gateway_mac")
_MAC = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}")


def checked(nics: list[dict[str, str]], known_macs: set[str]) -> list[dict[str, str]]:
    """The entries in normal form, or an error that names the first wrong one.

    ``known_macs`` are the ports this host has; where it is empty (no driver yet) they are not compared.
    """
    if not nics:
        raise Refusal(
            "layer 3 needs the address of every external port and none was given: list them as "
            f"{', '.join(KEYS)}, or use layer 2"
        )
    entries: list[dict[str, str]] = []
    for number, nic in enumerate(nics, start=1):
        entry = {key: str(nic.get(key) or "").strip().lower() for key in KEYS}
        complaint = _complaint(entry, known_macs) or _repeated(entry, entries)
        if complaint:
            raise Refusal(f"entry {number} of the port addresses {complaint}")
        entries.append(entry)
    return sorted(entries, key=lambda entry: entry["nic_mac"])


def is_mac(text: str) -> bool:
    """Whether this is a MAC address in normal form."""
    return bool(_MAC.fullmatch(text))


def _complaint(entry: dict[str, str], known_macs: set[str]) -> str | None:
    for key, value in entry.items():
        if not value:
            return f"has no {key}: each entry needs {', '.join(KEYS)}"
        if key.endswith("_mac") and not is_mac(value):
            return f"has {key} {value!r}: write six pairs of hex digits, such as 02:00:00:00:00:01"
    try:
        address = ipaddress.IPv4Interface(f"{entry['nic_ip']}/{entry['subnet_mask']}")
    except ValueError:
        given = f"{entry['nic_ip']!r} with mask {entry['subnet_mask']!r}"
        return f"has address {given}: write both as IPv4, such as 10.120.0.1 and 255.255.255.252"
    network = address.network
    if network.prefixlen < 31 and address.ip in (network.network_address, network.broadcast_address):
        return f"has address {address.ip}, which is no host's in {network}: use one between its ends"
    if known_macs and entry["nic_mac"] not in known_macs:
        return f"has nic_mac {entry['nic_mac']}, which no external port of this host has"
    return None


def _repeated(entry: dict[str, str], entries: list[dict[str, str]]) -> str | None:
    for other in entries:
        for key in ("nic_mac", "nic_ip"):
            if entry[key] == other[key]:
                return f"repeats {key} {entry[key]}: every port has its own"
    return None


def file_text(entries: list[dict[str, str]]) -> str:
    """The file's text, with the key names the library reads."""
    config = [{key.upper(): entry[key] for key in KEYS} for entry in entries]
    return json.dumps({"NIC_NET_CONFIG": config}, indent=2) + "\n"


@dataclass(frozen=True)
class Present:
    """The gaudinet.json of a host, and who wrote it."""

    text: str | None
    """None: there is no file."""
    foreign: bool
    """It has content that the digest beside the environment file does not know."""

    @property
    def empty(self) -> bool:
        """A file of no use to anybody, which the library stumbles over."""
        return self.text is not None and not self.text.strip()


def look(path: str, record: str) -> Present:
    """The file at this path; ``record`` is that of the digest of what was last written there."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            text = file.read()
    except FileNotFoundError:
        return Present(None, False)
    known = ""
    if os.path.exists(record):
        with open(record, encoding="utf-8") as file:
            known = file.read()
    return Present(text, bool(text.strip()) and known != digest_text(text))


def digest_text(text: str) -> str:
    """The record of what was written, in the form of sha256sum."""
    return f"{hashlib.sha256(text.encode(errors='surrogateescape')).hexdigest()}  {os.path.basename(DEFAULT_PATH)}\n"
