"""Signatures by the real ssh-keygen, and what is said of each thing that keeps it from signing or verifying."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils import _ssh_keygen
from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal
from ansible_collections.gaudi3.scale.plugins.module_utils._ssh_keygen import key_of, sign, signer_of

TEXT, PURPOSE = '{"a": 1}\n', "test-purpose"


@pytest.fixture(scope="module", name="keys")
def three_keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Keys: mine, other, and locked with a passphrase; signers, which has the first alone."""
    folder = tmp_path_factory.mktemp("keys")
    for name, words in (("mine", ""), ("other", ""), ("locked", "secret")):
        subprocess.run(
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", words, "-C", "", "-f", str(folder / name)], check=True
        )
    (folder / "signers").write_text(f"ops@site {(folder / 'mine.pub').read_text()}")
    return folder


def said(keys: Path, key: str = "mine", text: str = TEXT, purpose: str = PURPOSE, name: str = "ops@site") -> str:
    """Who has signed TEXT, or what is said where nobody has."""
    made = sign(TEXT, str(keys / key), PURPOSE)
    try:
        return signer_of("plan.json", text, made, purpose, str(keys / "signers"), name)
    except Refusal as refusal:
        return str(refusal).replace(str(keys), "").replace(key_of(TEXT, made, PURPOSE)[0], "KEY")


def test_the_signer_is_named(keys: Path) -> None:
    assert said(keys) == said(keys, name="") == "ops@site"
    shown = subprocess.run(
        ["ssh-keygen", "-l", "-f", str(keys / "mine.pub")], capture_output=True, text=True, check=True
    )
    assert key_of(TEXT, sign(TEXT, str(keys / "mine"), PURPOSE), PURPOSE) == (shown.stdout.split()[1], "")


def test_another_text_or_purpose_is_no_signature(keys: Path) -> None:
    start = "plan.json is not what plan.json.sig signs ("
    end = "): it was changed since, or the signature is for something else."
    assert said(keys, text=TEXT + " ") == f"{start}Signature verification failed: incorrect signature{end}"
    assert said(keys, purpose="git") == f"{start}Couldn't verify signature: namespace does not match{end}"
    assert key_of(TEXT, "none at all", PURPOSE) == ("", "Couldn't parse signature: missing header")


@pytest.mark.parametrize(
    ("key", "name", "whose"),
    [
        ("other", "", "anyone in /signers (No principal matched)"),
        ("other", "ops@site", "ops@site in /signers (Could not verify signature)"),
        ("mine", "boss@site", "boss@site in /signers (Could not verify signature)"),
    ],
)
def test_one_who_may_not_sign_is_refused(keys: Path, key: str, name: str, whose: str) -> None:
    assert said(keys, key, name=name) == (
        f"plan.json is signed by the key KEY, which is not of {whose}: have it signed by one who may, or add the key "
        "there if you trust it."
    )


def refused(key: Path) -> str:
    with pytest.raises(Refusal) as caught:
        sign("secret\nthe passphrase is no part of the text\n", str(key), PURPOSE)
    return str(caught.value).replace(str(key.parent), "")


def test_keys_that_do_not_sign(keys: Path, tmp_path: Path) -> None:
    (tmp_path / "open").write_text((keys / "mine").read_text())
    (tmp_path / "open").chmod(0o644)
    assert refused(keys / "none") == "/none is no file: give an SSH key, or its public half where an agent has it."
    assert refused(keys / "locked") == (
        "The key /locked has a passphrase, which nobody is asked for: add it to an agent (ssh-add)."
    )
    assert refused(tmp_path / "open") == (
        "The key /open can be read by others, so ssh-keygen ignores it: set its mode to 0600."
    )
    assert refused(keys / "signers").startswith("ssh-keygen does not sign with /signers (Couldn't load public key")


def test_a_key_of_somebody_else_is_refused(keys: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def closed(*_arguments: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("builtins.open", closed)
    assert refused(keys / "mine") == "The key /mine cannot be read (Permission denied): give one of your own."


def test_signers_that_are_no_file(keys: Path) -> None:
    made = sign(TEXT, str(keys / "mine"), PURPOSE)
    with pytest.raises(Refusal, match=r"none is no file: give one of allowed signers, as ssh-keygen\(1\) has it\."):
        signer_of("plan.json", TEXT, made, PURPOSE, str(keys / "none"))


def test_a_machine_without_ssh_keygen(keys: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert refused(keys / "mine") == "ssh-keygen is not on this machine: install OpenSSH's client, 8.2 or newer."


def test_one_that_never_answers_is_ended(keys: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ssh-keygen").write_text("#!/bin/sh\nexec sleep 600\n")
    (tmp_path / "ssh-keygen").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(_ssh_keygen, "PATIENCE", 1)
    assert refused(keys / "mine") == "ssh-keygen gave no answer in 1 seconds: give a key that needs nobody."
