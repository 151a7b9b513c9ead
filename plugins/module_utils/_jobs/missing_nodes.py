# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Which nodes of a job have not come yet: the launcher of each is connected to the rendezvous port of the head.

The kernel of the head lists its connections in /proc/net/tcp and tcp6: proc_pid_net(5).
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

TABLES = ("/proc/net/tcp", "/proc/net/tcp6")
_ESTABLISHED = "01"


def _address(printed: str) -> str:
    """An address as the kernel prints it: words of four bytes in the machine's (little-endian) order."""
    data = b"".join(bytes.fromhex(printed[start : start + 8])[::-1] for start in range(0, len(printed), 8))
    if len(data) == 4:
        return socket.inet_ntop(socket.AF_INET, data)
    mapped = data[:12] == b"\0" * 10 + b"\xff\xff"
    return socket.inet_ntop(socket.AF_INET, data[12:]) if mapped else socket.inet_ntop(socket.AF_INET6, data)


def connected(tables: Iterable[str], port: int) -> set[str]:
    """Addresses that have a connection to a port of this node, by the text of the kernel's tables."""
    found = set()
    for table in tables:
        for line in table.splitlines()[1:]:
            fields = line.split()
            if len(fields) > 3 and fields[3] == _ESTABLISHED and int(fields[1].rpartition(":")[2], 16) == port:
                found.add(_address(fields[2].rpartition(":")[0]))
    return found


def missing(peers: Mapping[str, Sequence[str]], there: set[str]) -> list[str]:
    """Names of nodes none of whose addresses is connected. Of those that each node has, the first that is given counts.

    A node may come from an address that the inventory does not know. Where there are as many unknown ones as nodes that
    seem to be missing, besides the head's own, none is called so.
    """
    known = {name: _resolved(next((each for each in given if each), name)) for name, given in peers.items()}
    absent = [name for name, addresses in known.items() if not addresses & there]
    strangers = there - set().union(*known.values()) - {"127.0.0.1", "::1"} if known else set()
    return [] if len(strangers) > len(absent) else absent


def _resolved(name: str) -> set[str]:
    with contextlib.suppress(OSError):
        return {str(entry[4][0]) for entry in socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)}
    return {name}


def missing_here(peers: Mapping[str, Sequence[str]], specification: Mapping[str, Any]) -> list[str]:
    """The nodes that the head, which is this node, still waits for."""
    texts = []
    for path in TABLES:
        with contextlib.suppress(FileNotFoundError), open(path, encoding="ascii") as stream:
            texts.append(stream.read())
    return missing(peers, connected(texts, int(specification.get("rdzv_port") or 0)))
