"""The folder of passwords and certificates: made once, renewed in time, for its owner only."""

from __future__ import annotations

import datetime
import ssl
import subprocess
import threading
from pathlib import Path

import bcrypt
import pytest
from cryptography import x509

from ansible_collections.gaudi3.scale.plugins.module_utils._credentials import (
    Certificate,
    Folder,
    Lifetimes,
    keep_certificate,
    keep_password,
)
from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal

NOW = datetime.datetime(2026, 5, 1, 12, tzinfo=datetime.UTC)
HOSTS = ["10.89.78.3", "monitor-1"]


def days(number: float) -> datetime.datetime:
    return NOW + datetime.timedelta(days=number)


def certificate(
    path: Path, now: datetime.datetime = NOW, hosts: list[str] = HOSTS, name: str = "web"
) -> tuple[Certificate, list[str]]:
    folder = Folder(str(path))
    with folder.opened():
        kept = keep_certificate(folder, name, hosts, Lifetimes(), now)
    return kept, [Path(file).name for file in folder.changed]


def password(path: Path) -> tuple[str, str, list[str]]:
    folder = Folder(str(path))
    with folder.opened():
        kept = keep_password(folder, "web")
    return kept.password, kept.hash, [Path(file).name for file in folder.changed]


def test_a_password_is_made_once(tmp_path: Path) -> None:
    first = password(tmp_path / "secrets")
    assert len(first[0]) == 32
    assert bcrypt.checkpw(first[0].encode(), first[1].encode())
    assert first[2] == ["secrets", "web_password", "web_password.bcrypt"]
    assert password(tmp_path / "secrets") == (*first[:2], [])


def test_two_folders_have_different_passwords(tmp_path: Path) -> None:
    assert password(tmp_path / "a")[0] != password(tmp_path / "b")[0]


def test_a_password_that_a_person_writes_is_taken_and_hashed(tmp_path: Path) -> None:
    password(tmp_path)
    (tmp_path / "web_password").write_text("by hand\n")
    kept = password(tmp_path)
    assert kept[0] == "by hand"
    assert bcrypt.checkpw(b"by hand", kept[1].encode())
    assert kept[2] == ["web_password.bcrypt"]


@pytest.mark.parametrize("text", ["\n", "x" * 73])
def test_a_password_that_cannot_be_hashed_is_refused(tmp_path: Path, text: str) -> None:
    tmp_path.chmod(0o700)
    (tmp_path / "web_password").write_text(text)
    with pytest.raises(Refusal, match=r"write a password of 1 to 72 bytes into it, or delete the file"):
        password(tmp_path)


def test_only_the_owner_may_read(tmp_path: Path) -> None:
    path = tmp_path / "secrets"
    certificate(path)
    assert path.stat().st_mode & 0o777 == 0o700
    modes = {file.name: oct(file.stat().st_mode & 0o777) for file in path.iterdir()}
    assert modes == {"ca.crt": "0o600", "ca.key": "0o600", "web.crt": "0o600", "web.key": "0o600"}


def test_wider_permissions_are_taken_away_and_said(tmp_path: Path) -> None:
    path = tmp_path / "secrets"
    certificate(path)
    path.chmod(0o755)
    (path / "web.key").chmod(0o644)
    assert certificate(path)[1] == ["secrets", "web.key"]
    assert (path.stat().st_mode & 0o777, (path / "web.key").stat().st_mode & 0o777) == (0o700, 0o600)


def test_a_dry_run_writes_nothing_and_says_what_it_would(tmp_path: Path) -> None:
    folder = Folder(str(tmp_path / "secrets"), dry_run=True)
    with folder.opened():
        kept = keep_certificate(folder, "web", HOSTS, Lifetimes(), NOW)
    assert kept.certificate.startswith("-----BEGIN CERTIFICATE-----")
    assert [Path(file).name for file in folder.changed] == ["secrets", "ca.key", "ca.crt", "web.key", "web.crt"]
    assert list(tmp_path.iterdir()) == []


def test_openssl_accepts_the_certificate_for_its_hosts_only(tmp_path: Path) -> None:
    certificate(tmp_path)

    def verify(*options: str) -> int:
        command = ["openssl", "verify", "-x509_strict", "-attime", str(int(NOW.timestamp())), "-CAfile", "ca.crt"]
        return subprocess.run(
            [*command, *options, "web.crt"], cwd=tmp_path, capture_output=True, check=False
        ).returncode

    assert verify("-verify_ip", "10.89.78.3", "-purpose", "sslserver") == 0
    assert verify("-verify_hostname", "monitor-1") == 0
    assert verify("-verify_ip", "10.89.78.4") == 2
    # Prometheus shows its own to the exporters.
    assert verify("-purpose", "sslclient") == 0
    assert verify("-purpose", "smimesign") == 2
    ssl.create_default_context().load_cert_chain(tmp_path / "web.crt", tmp_path / "web.key")


def test_it_is_kept_until_thirty_days_before_its_end(tmp_path: Path) -> None:
    first = certificate(tmp_path)[0]
    assert first.expires == "2027-06-02T12:00:00+00:00"
    assert certificate(tmp_path, days(366.9)) == (first, [])
    renewed, written = certificate(tmp_path, days(367.1))
    assert written == ["web.key", "web.crt"]
    assert renewed.authority == first.authority
    assert renewed.certificate != first.certificate
    assert renewed.private_key != first.private_key


def test_a_new_host_makes_a_new_certificate(tmp_path: Path) -> None:
    certificate(tmp_path)
    assert certificate(tmp_path, hosts=[*HOSTS, "prometheus.example.org"])[1] == ["web.key", "web.crt"]
    assert certificate(tmp_path, hosts=HOSTS)[1] == []


def test_an_authority_outlives_what_it_signs(tmp_path: Path) -> None:
    first = certificate(tmp_path)[0]
    later, written = certificate(tmp_path, days(3650 - 396))
    assert written == ["ca.key", "ca.crt", "web.key", "web.crt"]
    assert later.authority != first.authority
    names = [x509.load_pem_x509_certificate(one.authority.encode()).subject for one in (first, later)]
    assert names[0] != names[1]


def test_two_services_share_the_authority(tmp_path: Path) -> None:
    assert certificate(tmp_path)[0].authority == certificate(tmp_path, name="other")[0].authority


@pytest.mark.parametrize("content", [b"", b"nonsense", None])
def test_a_damaged_or_foreign_key_is_replaced_with_its_certificate(tmp_path: Path, content: bytes | None) -> None:
    certificate(tmp_path)
    if content is None:
        certificate(tmp_path, name="other")
        content = (tmp_path / "other.key").read_bytes()
    (tmp_path / "web.key").write_bytes(content)
    assert certificate(tmp_path)[1] == ["web.key", "web.crt"]


def test_a_sites_own_authority_is_used_and_never_signed_for(tmp_path: Path) -> None:
    kept = certificate(tmp_path)[0]
    (tmp_path / "ca.key").unlink()
    assert certificate(tmp_path) == (kept, [])
    with pytest.raises(Refusal) as error:
        certificate(tmp_path, days(380))
    assert str(error.value) == (
        f"{tmp_path} has a ca.crt without its ca.key, so web.crt cannot be made here, and it ends on 2027-06-02; "
        "put one for 10.89.78.3, monitor-1 there as web.crt with its key as web.key."
    )


def test_a_certificate_of_another_authority_is_replaced(tmp_path: Path) -> None:
    certificate(tmp_path / "a")
    certificate(tmp_path / "b")
    for name in ("web.crt", "web.key"):
        (tmp_path / "a" / name).write_bytes((tmp_path / "b" / name).read_bytes())
    assert certificate(tmp_path / "a")[1] == ["web.key", "web.crt"]


def test_a_write_that_fails_leaves_the_file_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = password(tmp_path / "secrets")

    def fail(*_: object, **__: object) -> None:
        raise OSError("no space")

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(OSError, match="no space"):
        Folder(str(tmp_path / "secrets")).write("web_password", b"other")
    monkeypatch.undo()
    assert password(tmp_path / "secrets")[0] == first[0]
    assert len(list((tmp_path / "secrets").iterdir())) == 2


def test_hosts_which_run_at_once_take_turns_and_get_one_authority(tmp_path: Path) -> None:
    path = tmp_path / "secrets"
    path.mkdir(mode=0o700)
    made: list[tuple[Certificate, list[str]]] = []

    def make(name: str) -> None:
        made.append(certificate(path, name=name))

    threads = [threading.Thread(target=make, args=(name,)) for name in ("one", "two")]
    # As the first of the hosts does: the others wait outside.
    with Folder(str(path)).opened():
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(0.2)
        assert (made, list(path.iterdir())) == ([], [])
    for thread in threads:
        thread.join(10)
    (first, changed_first), (second, changed_second) = made
    assert first.authority == second.authority
    assert ("ca.key" in changed_first, "ca.key" in changed_second) == (True, False)
