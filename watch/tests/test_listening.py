"""Where the page is served: beyond this machine over TLS and with a password, or not at all."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from gaudi3_scale.errors import ConfigError
from gaudi3_watch import listening
from gaudi3_watch.listening import Place


def certificate(folder: Path, begins: int, ends: int) -> tuple[Path, Path]:
    """A certificate that is valid between two days from now, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "watch")])
    now = datetime.datetime.now(datetime.UTC)
    builder = (
        x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key()).serial_number(1)
    )
    made = (
        builder.not_valid_before(now + datetime.timedelta(begins))
        .not_valid_after(now + datetime.timedelta(ends))
        .sign(key, hashes.SHA256())
    )
    paths = folder / "a.crt", folder / "a.key"
    paths[0].write_bytes(made.public_bytes(serialization.Encoding.PEM))
    paths[1].write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return paths


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("127.0.0.1:80", Place("127.0.0.1", 80)),
        ("127.0.0.1", Place("127.0.0.1", 9109)),
        ("localhost:0", Place("localhost", 0)),
        ("[::1]:80", Place("::1", 80)),
        ("[::1]", Place("::1", 9109)),
        ("::1", Place("::1", 9109)),
        ("0.0.0.0:1", Place("0.0.0.0", 1)),
    ],
)
def test_an_address_is_read(given: str, found: Place) -> None:
    assert listening.listen_address(given) == found


@pytest.mark.parametrize(
    "given", ["", "watch.example:80", "127.0.0.1:x", "127.0.0.1:70000", "127.0.0.1:", "1.2.3:4", "[::1"]
)
def test_what_is_no_address_is_refused(given: str) -> None:
    with pytest.raises(ConfigError, match="--listen"):
        listening.listen_address(given)


@pytest.mark.parametrize("address", ["127.0.0.1", "127.5.5.5", "::1", "localhost"])
def test_this_machine_needs_nothing(address: str) -> None:
    listening.check(Place(address, 1), has_tls=False, has_password=False)


@pytest.mark.parametrize("address", ["0.0.0.0", "::", "10.0.0.1", "2001:db8::1"])
def test_beyond_this_machine_both_are_needed(address: str) -> None:
    listening.check(Place(address, 1), has_tls=True, has_password=True)
    for has_tls, has_password, missing in (
        (True, False, "--password-file"),
        (False, True, "--certificate"),
        (False, False, "--key and --password-file"),
    ):
        with pytest.raises(ConfigError, match=missing):
            listening.check(Place(address, 1), has_tls, has_password)


def test_a_name_may_be_any_machines() -> None:
    assert not Place("mon.example", 1).is_loopback
    with pytest.raises(ConfigError, match="which other machines reach"):
        listening.check(Place("mon.example", 1), has_tls=True, has_password=False)


def test_a_password_is_the_line_of_a_file_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "password"
    path.write_text("correct horse battery\n")
    path.chmod(0o600)
    assert listening.password("--password-file", path) == "correct horse battery"
    assert listening.password("--password-file", None) == ""
    path.chmod(0o604)
    with pytest.raises(ConfigError, match="every user"):
        listening.password("--password-file", path)


@pytest.mark.parametrize(
    "content", [b"", b"short", b"two lines of it\nare none", b"\xff" * 20, b"x" * 2000, b"a\x00b" * 9]
)
def test_what_is_no_password_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "password"
    path.write_bytes(content)
    path.chmod(0o600)
    with pytest.raises(ConfigError, match="12 to 1000 characters"):
        listening.password("--password-file", path)
    with pytest.raises(ConfigError, match="cannot be read"):
        listening.password("--password-file", tmp_path / "none")


def test_a_certificate_in_date_is_taken(tmp_path: Path) -> None:
    assert listening.tls(None, None) is None
    assert listening.tls(*certificate(tmp_path, -1, 2)) is not None


@pytest.mark.parametrize(("begins", "ends", "said"), [(-9, -1, "has expired"), (1, 9, "is not valid yet")])
def test_a_certificate_out_of_date_is_refused(tmp_path: Path, begins: int, ends: int, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        listening.tls(*certificate(tmp_path, begins, ends))


def test_half_a_pair_and_no_pair_are_refused(tmp_path: Path) -> None:
    found, key = certificate(tmp_path, -1, 2)
    for pair, said in (
        ((found, None), "give both"),
        ((None, key), "give both"),
        ((key, found), "not a certificate"),
        ((tmp_path / "x", key), "cannot be read"),
    ):
        with pytest.raises(ConfigError, match=said):
            listening.tls(*pair)


def test_an_authority_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_text("nothing")
    for name in ("ca.crt", "none.crt"):
        with pytest.raises(ConfigError, match="--prometheus-ca-file"):
            listening.authority(tmp_path / name)
    assert listening.authority(certificate(tmp_path, -1, 2)[0]).cert_store_stats()["x509"] == 1
