"""The chain from key to package version, and the one sentence for each broken link."""

from __future__ import annotations

import gzip
import hashlib
from dataclasses import replace

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._apt import openpgp
from ansible_collections.gaudi3.scale.plugins.module_utils._apt.openpgp import Verdict
from ansible_collections.gaudi3.scale.plugins.module_utils._apt.repository import (
    Repository,
    Source,
    check,
    lacks_component,
    missing_release,
    names_only,
    other_sources,
)
from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal

# A key made for this test.
FINGERPRINT = "E018D37BD400078AF43182DC2A0A86B8212642E1"
KEY = b"""-----BEGIN PGP PUBLIC KEY BLOCK-----

mDMEawDOGxYJKwYBBAHaRw8BAQdAdm9pBdFQ72fXxLXVzo93ptPFdA+WWt2jD7f0
B9SHGm60NmdhdWRpMy5zY2FsZSBzaW11bGF0b3IgKHNpZ25zIHNpbXVsYXRlZCBw
YWNrYWdlcyBvbmx5KYiQBBMWCAA4FiEE4BjTe9QAB4r0MYLcKgqGuCEmQuEFAmsA
zhsCGwMFCwkIBwIGFQoJCAsCBBYCAwECHgECF4AACgkQKgqGuCEmQuFabwD9F6LU
ShzGBMIn+ZUmUcneHmHDK+5Vvu1pp+zGleIWsNoA/2mo7lyOFGLNZ5emw5Jrf4XF
Du32ptfUN5JfUbQKK/wJ
=w6lh
-----END PGP PUBLIC KEY BLOCK-----
"""
OTHER = "6D4D7C0F52A263F383D782791E676CE836A2DE65"
INDEX = gzip.compress(
    b"Package: habanalabs-dkms\nVersion: 1.22.0-740\nArchitecture: all\n\n"
    b"Package: habanalabs-dkms\nVersion: 1.23.0-695\n\nPackage: habanalabs-graph\nVersion: 1.23.0-695\n",
    mtime=0,
)
SOURCE = Source("http://vault/debian", "jammy", "http://vault/key")


def release_text(valid_until: str = "", index: bytes = INDEX) -> str:
    return (
        f"Origin: test\nDate: Wed, 01 Jan 2025 00:00:00 UTC\n{valid_until}SHA256:\n "
        f"{hashlib.sha256(index).hexdigest()} {len(index)} main/binary-amd64/Packages.gz\n"
    )


class Vault:
    """A repository in memory; ``verdict`` is what gpgv says of it."""

    def __init__(self) -> None:
        self.files = {
            "http://vault/key": KEY,
            "http://vault/debian/dists/jammy/InRelease": b"(signed)",
            "http://vault/debian/dists/jammy/main/binary-amd64/Packages.gz": INDEX,
        }
        self.text = release_text()
        self.verdict = Verdict(fingerprint=FINGERPRINT)
        self.fetched: list[str] = []

    def fetch(self, url: str) -> bytes:
        self.fetched.append(url)
        return self.files[url]

    def verify(self, signed: bytes, keyring: bytes) -> tuple[Verdict, str]:
        assert signed == b"(signed)"
        assert openpgp.fingerprints(keyring) == [FINGERPRINT]
        return self.verdict, self.text

    def check(self, source: Source = SOURCE, trusted: bytes | None = None) -> Repository:
        return check(source, trusted, self.fetch, self.verify)

    def problem(self, source: Source = SOURCE, trusted: bytes | None = None) -> str:
        with pytest.raises(Refusal) as caught:
            self.check(source, trusted)
        return str(caught.value)


@pytest.fixture
def vault() -> Vault:
    return Vault()


def test_an_armored_key_becomes_a_keyring_with_its_fingerprint() -> None:
    keyring = openpgp.dearmor(KEY)
    assert openpgp.fingerprints(keyring) == [FINGERPRINT]
    assert openpgp.dearmor(keyring) == keyring
    assert openpgp.fingerprints(openpgp.dearmor(KEY + KEY)) == [FINGERPRINT, FINGERPRINT]


@pytest.mark.parametrize("data", [b"", b"<html>not found</html>", b"\x99\x00", KEY.replace(b"mDME", b"!!!!")])
def test_what_is_no_key_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"no OpenPGP public key|armor is damaged"):
        openpgp.dearmor(data)


@pytest.mark.parametrize(
    ("lines", "verdict"),
    [
        ("GOODSIG 2A0A x\n[GNUPG:] VALIDSIG AB 2025-01-01 0 0 4 0 22 8 00 "
            "" + FINGERPRINT, Verdict(fingerprint=FINGERPRINT)),
        ("BADSIG 2A0A simulator", Verdict(fault="bad", key="2A0A")),
        ("ERRSIG 1EC4 22 8 01 1763 9 -\n[GNUPG:] NO_PUBKEY 1EC4", Verdict(fault="unknown", key="1EC4")),
        ("EXPKEYSIG 2A0A x\n[GNUPG:] VALIDSIG AB 2025-01-01 0 0 4 0 22 8 00 "
            "" + FINGERPRINT, Verdict(fault="expired", key="2A0A")),
        ("REVKEYSIG 2A0A x\n[GNUPG:] VALIDSIG AB 2025-01-01 0 0 4 0 22 8 00 "
            "" + FINGERPRINT, Verdict(fault="expired", key="2A0A")),
        ("NODATA 1", Verdict(fault="unknown")),
    ],
)  # fmt: skip
def test_only_a_good_signature_of_a_living_key_counts(lines: str, verdict: Verdict) -> None:
    assert openpgp.read_verdict(f"[GNUPG:] NEWSIG\n[GNUPG:] {lines}\n") == verdict


def test_a_good_repository_gives_versions_and_its_key(vault: Vault) -> None:
    found = vault.check()
    assert found.fingerprint == FINGERPRINT
    assert found.versions == {"habanalabs-dkms": ["1.22.0-740", "1.23.0-695"], "habanalabs-graph": ["1.23.0-695"]}


def test_a_trusted_keyring_is_kept_and_the_key_not_fetched_again(vault: Vault) -> None:
    trusted = openpgp.dearmor(KEY)
    assert vault.check(trusted=trusted).keyring == trusted
    assert "http://vault/key" not in vault.fetched


def test_a_repository_with_another_key_is_refused_by_name(vault: Vault) -> None:
    vault.verdict = Verdict(fault="unknown", key="1EC4268F30B24577")
    assert vault.problem(trusted=openpgp.dearmor(KEY)) == (
        "http://vault/debian/dists/jammy/InRelease is signed with key 1EC4268F30B24577, not with the trusted key "
        f"{FINGERPRINT}; if the vendor has announced a new key, give its fingerprint as synapseai_key_fingerprint."
    )


def test_a_key_with_another_fingerprint_than_asked_for_is_refused(vault: Vault) -> None:
    assert vault.problem(replace(SOURCE, fingerprint=OTHER)) == (
        f"The key at http://vault/key has fingerprint {FINGERPRINT}, not {OTHER} as synapseai_key_fingerprint says; "
        "find out which is right before you go on."
    )


def test_a_second_key_of_the_keyring_does_not_count_where_one_is_asked_for(vault: Vault) -> None:
    vault.verdict = Verdict(fingerprint=OTHER)
    assert f"is signed with key {OTHER}, not with {FINGERPRINT} as" in vault.problem(
        replace(SOURCE, fingerprint=FINGERPRINT)
    )


@pytest.mark.parametrize(
    ("fault", "words"),
    [("bad", "was changed after it was signed (bad signature of key AB)"), ("expired", "has expired or was revoked")],
)
def test_a_bad_or_expired_signature_is_told(vault: Vault, fault: str, words: str) -> None:
    vault.verdict = Verdict(fault=fault, key="AB")
    assert words in vault.problem()


def test_an_index_that_is_not_the_signed_one_is_refused(vault: Vault) -> None:
    vault.files["http://vault/debian/dists/jammy/main/binary-amd64/Packages.gz"] += b"x"
    assert vault.problem().startswith(
        "http://vault/debian/dists/jammy/main/binary-amd64/Packages.gz is not what the signed InRelease says"
    )


def test_an_expired_index_is_refused(vault: Vault) -> None:
    vault.text = release_text(valid_until="Valid-Until: Thu, 02 Jan 2025 00:00:00 UTC\n")
    assert vault.problem() == (
        "The index of http://vault/debian jammy expired on Thu, 02 Jan 2025 00:00:00 UTC; refresh the mirror, or "
        "correct the node's clock."
    )
    vault.text = release_text(valid_until="Valid-Until: Fri, 02 Jan 2099 00:00:00 UTC\n")
    assert vault.check().fingerprint == FINGERPRINT


def test_a_suite_without_packages_for_amd64_is_told(vault: Vault) -> None:
    vault.text = "SHA256:\n"
    assert "lists no main/binary-amd64/Packages.gz for suite jammy" in vault.problem()


def test_a_page_instead_of_a_key_is_told(vault: Vault) -> None:
    vault.files["http://vault/key"] = b"<html></html>"
    assert vault.problem() == (
        "http://vault/key is not a signing key: it holds no OpenPGP public key; check synapseai_key_url."
    )


def test_a_release_that_is_not_there_names_those_that_are(vault: Vault) -> None:
    found = vault.check()
    every = ["habanalabs-dkms", "habanalabs-graph"]
    assert missing_release(found, every, "1.23.0-695") == ""
    assert missing_release(found, every, "1.24.0-1007") == (
        "The repository has no 1.24.0-1007; it has 1.23.0-695: set synapseai_release to one of these."
    )
    assert missing_release(found, every, "1.22.0-740") == (
        "The repository has no 1.22.0-740 of habanalabs-graph; it has 1.23.0-695: set synapseai_release to one of "
        "these."
    )
    assert missing_release(found, [*every, "synapse-ai"], "1.23.0-695") == (
        "The repository has no package synapse-ai; correct synapseai_packages."
    )


def test_other_files_with_the_same_repository_are_found() -> None:
    files = {
        "own.list": "deb [signed-by=/k] http://vault/debian jammy main\n",
        "vendor.list": "deb http://vault/debian/ jammy main\n",
        "off.list": "# deb http://vault/debian jammy main\n",
        "more.sources": "Types: deb\nURIs: http://vault/debian\nSuites: jammy\n",
        "else.list": "deb http://vault/debian-security jammy main\n",
    }
    assert other_sources(files, "http://vault/debian", "own.list") == ["more.sources", "vendor.list"]


@pytest.mark.parametrize(
    ("text", "alone"),
    [
        ("deb http://vault/debian/ jammy main\n# deb http://else/debian jammy main\n", True),
        ("deb [trusted=yes] http://vault/debian jammy main\ndeb http://else/debian jammy main\n", False),
        ("Types: deb\nURIs: http://vault/debian\nSuites: jammy\nComponents: main\n", True),
        ("Types: deb\nURIs: http://vault/debian http://else/debian\nSuites: jammy\n", False),
        ("Types: deb\nURIs: http://vault/debian\n\nTypes: deb\nURIs: http://else/debian\nSuites: jammy\n", False),
    ],
)
def test_a_file_with_other_repositories_is_not_one_to_move_aside(text: str, alone: bool) -> None:
    assert names_only(text, "http://vault/debian") is alone


@pytest.mark.parametrize(
    ("text", "lacks"),
    [
        ("deb http://archive/ubuntu jammy main restricted\ndeb http://archive/ubuntu jammy-updates main\n", True),
        ("deb http://archive/ubuntu jammy main\ndeb http://archive/ubuntu jammy universe\n", False),
        ("deb http://archive/ubuntu jammy main\n# deb http://archive/ubuntu jammy universe\n", True),
        ("Types: deb\nURIs: http://archive/ubuntu\nSuites: jammy jammy-updates\nComponents: main universe\n", False),
        ("Types: deb\nURIs: http://archive/ubuntu\nSuites: jammy jammy-updates\nComponents: main\n", True),
        ("Types: deb\nEnabled: no\nURIs: http://a\nSuites: jammy\nComponents: universe\n\nTypes: deb\nURIs: http://a\n"
         "Suites: jammy\nComponents: main\n", True),
        ("deb [trusted=yes] file:/srv/mirror ./\n", False),
        ("deb http://archive/debian bookworm main\n", False),
        ("", False),
    ],
)  # fmt: skip
def test_a_distribution_without_universe_is_noticed(text: str, lacks: bool) -> None:
    """Of the vendor's own line, which has one component, nothing follows."""
    own = "deb http://vault/debian jammy main\n"
    assert lacks_component({"a.list": text, "vendor.list": own}, "jammy", "universe", "http://vault/debian") is lacks
