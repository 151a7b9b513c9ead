# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""What a switch says about its ports, whatever language its configuration is written in."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Optional

#: Words of a line that may be about what the linter judges. A line with one of them that nobody understands is named.
SUBJECT = ("mtu", "qos", "priority-flow", "pfc", "pause", "dscp", "ecn", "random-detect", "wred", "vlan", "service-p")


@dataclass
class Port:
    """One port of a switch. What its configuration leaves open is None, or not in the dictionary."""

    name: str
    mtu: Optional[int] = None
    pfc: set[int] = field(default_factory=set)
    """Priorities that are paused instead of dropped."""
    dscp: dict[int, int] = field(default_factory=dict)
    """The priority that each DSCP gets."""
    ecn: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Least and most bytes in the queue between which packets of a priority are marked."""
    vlan: Optional[int] = None
    """The VLAN of frames without a tag."""
    trunk: bool = False
    """Whether it carries several VLANs, of which the native one is that of frames without a tag."""
    vlans: dict[bool, int] = field(default_factory=dict)
    """The VLAN of frames without a tag as a trunk, and as no trunk: configurations have both."""


@dataclass(frozen=True)
class Unread:
    """A line, or a key, that nobody understood."""

    location: str
    text: str
    port: str = ""
    """The port that it is of; empty: it is of the whole switch."""


@dataclass
class Switch:
    """A switch as its configuration describes it."""

    name: str
    syntax: str
    ports: dict[str, Port] = field(default_factory=dict)
    unread: list[Unread] = field(default_factory=list)
    """What may be about the linter's subject and was not understood."""
    aliases: dict[str, str] = field(default_factory=dict)
    """Names of ports by what the switch announces them as, where that is another."""
    others: int = 0
    """How many lines or tables are about something else."""


def numbers(text: str) -> Optional[set[int]]:
    """The numbers of ``3,5-7``; None where the text is not such a list."""
    found: set[int] = set()
    for part in text.replace(" ", "").split(","):
        first, dash, last = part.partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            return None
        if len(first) > 5 or len(last) > 5 or int(last or first) < int(first):
            return None
        found.update(range(int(first), int(last or first) + 1))
    return found


def whole(text: str) -> Optional[int]:
    """A number in decimals; None of what is none, and of more digits than anything of a switch has."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= 12 else None


def bytes_of(amount: str, unit: str) -> Optional[int]:
    """An amount such as ``150 kbytes`` in bytes, a kilobyte being 1000 of them; None for units that are not of size."""
    factor = {"bytes": 1, "kbytes": 1000, "mbytes": 1000000}.get(unit)
    number = whole(amount)
    return number * factor if factor and number is not None else None


_SUBJECT = re.compile(rf"(?<![a-z0-9_/$.])(?:{'|'.join(SUBJECT)})")
#: Begin lines whose rest is a name, a secret or a remark, or which are of protocols and filters: with all below them
#: they leave a port's frame size, pauses, marks and VLAN alone. "no" before them unsets the same.
_OTHERS = (
    *("description ", "hostname ", "name ", "remark ", "snmp-server ", "banner ", "username ", "enable secret "),
    *("ip access-list ", "ipv6 access-list ", "mac access-list ", "application ", "spanning-tree ", "ip igmp "),
    *("lldp ", "system vlan ", "mlag configuration", "ip route ", "ipv6 route ", "ip verify source ", "ptp "),
    "hardware vethernet ",
)


def about_subject(text: str) -> bool:
    """Whether a line may be about what the linter judges."""
    return not is_other(text) and bool(_SUBJECT.search(text.lower()))


def is_other(text: str) -> bool:
    """Whether a line, and all below it, is about something else whatever words are in it."""
    return text.lower().removeprefix("no ").startswith(_OTHERS)
