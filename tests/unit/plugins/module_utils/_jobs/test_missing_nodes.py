"""Which nodes of a job are not there yet, by the connections of the head."""

from __future__ import annotations

import socket

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._jobs import missing_nodes

HEAD = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
#: As a kernel prints them: 10.0.0.2, 10.0.0.3 which only begins to connect, one to ssh; fd00::4 and ::ffff:10.0.0.5.
V4 = HEAD + (
    "   0: 0100000A:72D8 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1\n"
    "   1: 0100000A:72D8 0200000A:C001 01 00000000:00000000 00:00000000 00000000     0        0 2\n"
    "   2: 0100000A:72D8 0300000A:C002 03 00000000:00000000 00:00000000 00000000     0        0 3\n"
    "   3: 0100000A:0016 0300000A:C003 01 00000000:00000000 00:00000000 00000000     0        0 4\n"
)
V6 = HEAD + (
    "   0: 000000FD000000000000000001000000:72D8 000000FD000000000000000004000000:C004 01 0:0 0:0 0 0 0 5\n"
    "   1: 0000000000000000FFFF00000100000A:72D8 0000000000000000FFFF00000500000A:C005 01 0:0 0:0 0 0 0 6\n"
)


def test_only_established_connections_to_the_port_count() -> None:
    assert missing_nodes.connected([V4, V6], 29400) == {"10.0.0.2", "fd00::4", "10.0.0.5"}
    assert missing_nodes.connected([V4, V6], 29500) == set()


@pytest.mark.parametrize(
    ("peers", "absent"),
    [
        ({"gaudi-2": ["10.0.0.2", "", "gaudi-2"], "gaudi-3": ["", "10.0.0.3", "gaudi-3"]}, ["gaudi-3"]),
        ({"gaudi-4": ["fd00::4", "10.9.9.9", "gaudi-4"]}, []),
        ({"gaudi-5": ["", "10.0.0.5", "gaudi-5"], "gaudi-9": ["", "", "gaudi-9.invalid"]}, ["gaudi-9"]),
        ({}, []),
    ],
)
def test_who_is_missing(peers: dict[str, list[str]], absent: list[str]) -> None:
    there = {"10.0.0.1", "10.0.0.2", "fd00::4", "10.0.0.5"}
    own = {str(address) for given in peers.values() for address in given}
    assert missing_nodes.missing(peers, there & own) == absent


def test_nodes_from_unknown_addresses_are_not_called_missing() -> None:
    peers = {"gaudi-2": ["10.0.0.2"], "gaudi-3": ["10.0.0.3"]}
    assert missing_nodes.missing(peers, {"10.0.0.1", "10.1.0.2", "10.1.0.3"}) == []


def test_a_real_connection() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        peers, job = {"gaudi-2": ["127.0.0.1"]}, {"rdzv_port": port}
        assert missing_nodes.missing_here(peers, job) == ["gaudi-2"]
        with socket.create_connection(("127.0.0.1", port)), server.accept()[0]:
            assert missing_nodes.missing_here(peers, job) == []
