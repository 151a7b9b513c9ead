"""Addresses of stores over SFTP, and what ssh is told. The server itself is in modules/test_gaudi_backup_stores.py."""

from __future__ import annotations

import itertools
import os
import shlex
from pathlib import Path

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._backup import sftp
from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal

KEY = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3Blbg==\n-----END OPENSSH PRIVATE KEY-----"


@pytest.mark.parametrize(
    ("address", "login"),
    [
        ("sftp:backup@store:/srv/gaudi/one", ("backup", "store", "")),
        ("sftp:store:srv", ("", "store", "")),
        ("sftp://backup@store.example.com:2222//srv/gaudi", ("backup", "store.example.com", "2222")),
        ("sftp://[2001:db8::1]//srv", ("", "2001:db8::1", "")),
        ("sftp://store/relative", ("", "store", "")),
    ],
)
def test_addresses_are_read_as_restic_reads_them(address: str, login: tuple[str, str, str]) -> None:
    assert sftp.login_of(address) == login


@pytest.mark.parametrize(
    "address",
    [
        "sftp:store",
        "sftp://store",
        "sftp:-oProxyCommand=reboot:/srv",
        "sftp:-lroot@store:/srv",
        "sftp://store:70000//srv",
        "sftp:a b:/srv",
        "sftp:store;reboot:/srv",
    ],
)
def test_an_address_that_is_none_or_would_be_an_option_is_refused(address: str) -> None:
    with pytest.raises(Refusal, match=r"^repository is .*: give a store over SFTP as sftp:USER@HOST:/FOLDER, or with "):
        sftp.check(address, "", "")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("/srv/store", KEY, ""), "ssh_key is given, and the repository is not reached by sftp: leave it out"),
        (
            ("s3:https://store/b", "", "store ssh-rsa A"),
            "ssh_known_hosts is given, and the repository is not reached by sftp: leave it out",
        ),
        (
            ("sftp:store:/srv", "", "# store\nstore AAAA"),
            "ssh_known_hosts has the line 'store AAAA': give lines of a host, a type and a key, as ssh-keyscan prints "
            "them",
        ),
        (
            ("sftp:store:/srv", "ssh-ed25519 AAAA", ""),
            "ssh_key is no private key as ssh-keygen writes one: give the whole file, from BEGIN to END, or leave it "
            "out",
        ),
    ],
)
def test_keys_that_cannot_be_ones_are_refused(given: tuple[str, str, str], said: str) -> None:
    with pytest.raises(Refusal) as refused:
        sftp.check(*given)
    assert str(refused.value) == f"{said}."


def test_ssh_is_never_asked_a_question_and_its_key_is_on_no_disk() -> None:
    sftp.check("sftp:backup@store:/srv", KEY.replace("\n", "\r\n"), "store ssh-ed25519 AAAA")
    with sftp.options("sftp:backup@store:/srv", KEY.replace("\n", "\r\n"), "store ssh-ed25519 AAAA") as found:
        assert found[0] == "-o" and found[1].startswith("sftp.command=")
        words = shlex.split(found[1].partition("=")[2])
        told = dict(word.split("=", 1) for before, word in itertools.pairwise(words) if before == "-o")
        assert words[-4:] == ["-s", "--", "store", "sftp"]
        assert (told["BatchMode"], told["StrictHostKeyChecking"], told["IdentitiesOnly"]) == ("yes", "yes", "yes")
        key = Path(told["IdentityFile"])
        assert key.read_text() == f"{KEY}\n" and key.stat().st_mode & 0o777 == 0o600
        assert os.readlink(key).startswith("/memfd:")
        assert Path(told["UserKnownHostsFile"]).read_text() == "store ssh-ed25519 AAAA\n"
    assert not key.exists(), "closed with the run"
    with sftp.options("sftp:store:/srv", "", "") as own, sftp.options("/srv", "", "") as local:
        assert "IdentityFile" not in own[1] and "StrictHostKeyChecking=yes" in own[1] and local == []
