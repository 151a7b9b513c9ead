"""Texts and addresses of nodes, before they are shown or written."""

from __future__ import annotations

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._host.address import names_of, single_host, single_ip
from ansible_collections.gaudi3.scale.plugins.module_utils._printable import printable


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("loss 5.6: naïve", "loss 5.6: naïve"),
        ("\x1b[2J\x1b]0;title\x07", r"\x1b[2J\x1b]0;title\x07"),
        ("one\ntwo\r\ttab", r"one\ntwo\r\ttab"),
        ("\x9b31m \x7f", r"\x9b31m \x7f"),
        ("a\u202eb\u2066c\u2028d", r"a\u202eb\u2066c\u2028d"),
        ("\ud83d", r"\ud83d"),
        (None, "None"),
        (12.5, "12.5"),
        ({"a": "\x1b"}, r"{'a': '\x1b'}"),
    ],
)
def test_what_a_terminal_would_act_on_is_shown_as_an_escape(given: object, shown: str) -> None:
    assert printable(given) == shown


def test_a_long_text_is_cut() -> None:
    assert printable("x" * 1000) == "x" * 1000
    assert printable("x" * 1001) == "x" * 997 + "..."
    assert printable("\x1b" * 5, longest=12) == r"\x1b\x1b\..."


@pytest.mark.parametrize(
    ("given", "address"),
    [
        ("10.0.0.5", "10.0.0.5"),
        ("[2001:db8:0::5]", "2001:db8::5"),
        ("127.0.0.1", "127.0.0.1"),
        # One of IPv4 in the form of IPv6: certificates and sockets take both for the same.
        ("::ffff:10.0.0.5", "10.0.0.5"),
        ("[::FFFF:a00:5]", "10.0.0.5"),
        ("::ffff:0.0.0.0", None),
        ("::ffff:224.0.0.1", None),
        *((each, None) for each in ("0.0.0.0", "::", "0.0.0.0/0", "10.0.0.0/8", "10.0.0.5/32", "224.0.0.1", "ff02::1")),
        *(
            (each, None)
            for each in ("255.255.255.255", "fe80::1%eth0", "10.0.0.5\n", " 10.0.0.5", "gaudi-1", "", 5, None)
        ),
    ],
)
def test_an_address_is_one_address(given: object, address: str | None) -> None:
    assert single_ip(given) == address


@pytest.mark.parametrize("name", ["gaudi-1", "GPU_01.example.com", "a.b.c.", "1and1.example", "2001:db8::5"])
def test_a_host_is_an_address_or_a_name(name: str) -> None:
    assert single_host(name) == name


@pytest.mark.parametrize(
    "given",
    [
        "10.0.0.2:9100",
        'a", "b',
        "a\nb",
        "{{ x }}",
        "-x",
        "a..b",
        "1.2.3",
        "0xa000005",
        "host.5",
        "0",
        "a b",
        "x" * 64,
        "ä.example",
        None,
        ["a"],
    ],
)
def test_anything_else_is_no_host(given: object) -> None:
    assert single_host(given) is None


def test_the_names_of_a_host_have_one_form() -> None:
    assert names_of("Mon.Example.", {"gaudi_cluster_address": "::ffff:10.0.0.5"}) == ["mon.example", "10.0.0.5"]
