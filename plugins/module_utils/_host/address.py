# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Addresses that an inventory or a node gives for one host: an IP address or a host name, and nothing else."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from typing import Any

_LABEL = r"[A-Za-z0-9_][A-Za-z0-9_-]{0,62}"
_NAME = re.compile(rf"(?=.{{1,253}}\Z){_LABEL}(?:\.{_LABEL})*\.?", re.ASCII)


def single_ip(value: object) -> str | None:
    """The IP address in its usual form, without brackets; None for anything else, such as a network or a name.

    Addresses that stand for no single host are none: unspecified, multicast, and the broadcast address. An address of
    IPv4 in the form of IPv6 is that of IPv4, as sockets and certificates have it.
    """
    if not isinstance(value, str):
        return None
    try:
        found = ipaddress.ip_address(value[1:-1] if value[:1] == "[" and value[-1:] == "]" else value)
    except ValueError:
        return None
    found = getattr(found, "ipv4_mapped", None) or found
    everywhere = found.is_unspecified or found.is_multicast or str(found) == "255.255.255.255"
    return None if everywhere or getattr(found, "scope_id", None) else str(found)


def single_host(value: object) -> str | None:
    """An IP address as ``single_ip`` takes it, or a host name of letters, digits, hyphens, underscores and dots."""
    address = single_ip(value)
    if address or not isinstance(value, str):
        return address
    # A name that ends with a number is an address that was misspelt, or one that some resolvers read as another: 10.5
    # and 0xa000005 are 10.0.0.5.
    last = value.rstrip(".").rpartition(".")[2]
    return value if _NAME.fullmatch(value) and not re.fullmatch(r"\d+|0[xX][0-9A-Fa-f]*", last) else None


def cluster_address(host: str, variables: Mapping[str, Any]) -> object:
    """What the inventory gives as a host's address on the cluster network, whatever it is."""
    return variables.get("gaudi_cluster_address") or variables.get("ansible_host") or host


def names_of(host: str, variables: Mapping[str, Any]) -> list[str]:
    """The names and addresses that are a host's, in their usual forms."""
    given = (host, cluster_address(host, variables))
    return list(dict.fromkeys(found.lower().rstrip(".") for each in given if (found := single_host(each))))


def authority(address: str, port: object) -> str:
    """Address and port as a URL has them: an address of IPv6 stands in brackets."""
    return f"[{address}]:{port}" if ":" in address and not address.startswith("[") else f"{address}:{port}"
