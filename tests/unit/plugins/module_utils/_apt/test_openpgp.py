"""Packets of keys: where they begin and end, which belong to a key, and the armor that rpm reads."""

from __future__ import annotations

import hashlib

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._apt import openpgp


def body(size: int, filler: bytes = b"k") -> bytes:
    """What a version 4 key of this size begins with, filled up."""
    return b"\x04" + filler * (size - 1)


def fingerprint(key: bytes) -> str:
    return hashlib.sha1(b"\x99" + len(key).to_bytes(2, "big") + key).hexdigest().upper()


def packet(tag: int, content: bytes) -> bytes:
    """A packet in the new format, with the shortest form of its length."""
    size = len(content)
    if size < 192:
        length = bytes([size])
    elif size < 8384:
        length = bytes([((size - 192) >> 8) + 192, (size - 192) & 0xFF])
    else:
        length = b"\xff" + size.to_bytes(4, "big")
    return bytes([0xC0 | tag]) + length + content


def old_packet(tag: int, content: bytes, octets: int) -> bytes:
    """A packet in the old format, with a length of 1, 2 or 4 octets."""
    return bytes([0x80 | tag << 2 | {1: 0, 2: 1, 4: 2}[octets]]) + len(content).to_bytes(octets, "big") + content


@pytest.mark.parametrize("size", [2, 191, 192, 193, 447, 448, 525, 8383, 8384, 70000])
def test_a_key_of_any_length_has_its_own_fingerprint(size: int) -> None:
    # The key behind it is found only where the length of the one before was read right.
    if size < 65536:
        assert openpgp.fingerprints(packet(6, body(size)) + packet(6, body(50, b"n"))) == [
            fingerprint(body(size)),
            fingerprint(body(50, b"n")),
        ]
    assert openpgp.fingerprints(packet(2, body(size)) + packet(6, body(50))) == [fingerprint(body(50))]


@pytest.mark.parametrize(("size", "octets"), [(2, 1), (255, 1), (2, 2), (525, 2), (65535, 2), (525, 4)])
def test_lengths_of_the_old_format(size: int, octets: int) -> None:
    data = old_packet(6, body(size), octets) + old_packet(6, body(9, b"n"), 1)
    assert openpgp.fingerprints(data) == [fingerprint(body(size)), fingerprint(body(9, b"n"))]


@pytest.mark.parametrize(
    "cut", [b"\xc6", b"\xc6\xc1", b"\xc6\xff\x00", b"\x99\x00", b"\xc6\x05\x04a", b"\xc6\xe1a", b"\x9b\x04a"]
)
def test_what_is_cut_off_or_of_unknown_length_ends_the_keyring(cut: bytes) -> None:
    assert openpgp.fingerprints(cut) == []
    assert openpgp.fingerprints(packet(6, body(9)) + cut) == [fingerprint(body(9))]
    assert openpgp.only(packet(6, body(9)) + cut, fingerprint(body(9))) == packet(6, body(9))


def key(filler: bytes) -> bytes:
    """A primary key with a name, a subkey and their signatures."""
    return b"".join(
        [
            packet(6, body(51, filler)),
            packet(13, b"name " + filler),
            packet(2, b"signature " + filler * 300),
            packet(14, body(51, filler.upper())),
            packet(2, b"binding " + filler),
        ]
    )


@pytest.mark.parametrize("filler", [b"a", b"b", b"c"])
def test_one_key_of_a_keyring_with_all_that_belongs_to_it(filler: bytes) -> None:
    keyring = key(b"a") + key(b"b") + key(b"c")
    assert openpgp.only(keyring, fingerprint(body(51, filler))) == key(filler)


def test_a_key_that_is_not_there_gives_nothing() -> None:
    assert openpgp.only(key(b"a"), fingerprint(body(51, b"b"))) == b""
    # A subkey is no key of its own.
    assert openpgp.only(key(b"a"), fingerprint(body(51, b"A"))) == b""


def test_a_key_that_is_there_twice_is_kept_once() -> None:
    assert openpgp.only(key(b"a") + key(b"b") + key(b"a"), fingerprint(body(51, b"a"))) == key(b"a")


def test_what_follows_a_key_of_another_version_is_not_the_key_befores() -> None:
    other = packet(6, b"\x06" + b"x" * 40) + packet(13, b"six")
    secret = packet(5, body(60, b"s")) + packet(13, b"secret")
    assert openpgp.only(key(b"a") + other + secret, fingerprint(body(51, b"a"))) == key(b"a")


@pytest.mark.parametrize("size", [0, 1, 2, 3, 47, 48, 49, 500])
def test_armor_comes_back_as_it_was(size: int) -> None:
    keyring = key(b"a") + packet(13, b"x" * size)
    assert openpgp.dearmor(openpgp.armor(keyring)) == keyring


def test_the_checksum_of_an_armor_is_gpgs() -> None:
    # Example of a published armor: "mDME..." of a key made for the tests of the repository ends with =w6lh.
    from .test_repository import KEY

    assert openpgp.armor(openpgp.dearmor(KEY)).split() == KEY.split()


def test_a_fingerprint_as_people_write_it() -> None:
    assert openpgp.normalized("6d4d 7c0f 52a2 63f3 83d7  8279 1e67 6ce8 36a2 de65") == (
        "6D4D7C0F52A263F383D782791E676CE836A2DE65"
    )
    assert openpgp.normalized("") == ""
    with pytest.raises(ValueError, match=r"^'36A2DE65' is not a key fingerprint; .*\.$"):
        openpgp.normalized("36A2DE65")
