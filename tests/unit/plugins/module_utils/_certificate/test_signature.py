"""Signatures by the real ssh-keygen: every byte counts, and so do the key and the namespace."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._certificate.signature import problem, sign, signer
from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal

TEXT = '{"certificate": {}}\n'


@pytest.fixture(scope="module", name="keys")
def two_keys(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("keys")
    for name in ("mine", "other"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(folder / name)], check=True)
    return [folder / "mine", folder / "other"]


def public(key: Path) -> str:
    return Path(f"{key}.pub").read_text()


def test_a_signature_is_of_one_key_over_one_text(keys: list[Path]) -> None:
    mine, other = keys
    made = sign(TEXT, str(mine))
    assert problem(TEXT, made, public(mine)) == ""
    assert problem(TEXT, made, public(other)).startswith("it is signed by the key SHA256:")
    shown = subprocess.run(["ssh-keygen", "-l", "-f", f"{mine}.pub"], capture_output=True, text=True, check=True)
    assert signer(TEXT, made) == (shown.stdout.split()[1], "")
    assert sign(TEXT, str(mine)) == made


def test_a_changed_byte_is_refused(keys: list[Path]) -> None:
    made = sign(TEXT, str(keys[0]))
    for place in (0, 5, len(TEXT) - 1):
        changed = TEXT[:place] + chr(ord(TEXT[place]) ^ 1) + TEXT[place + 1 :]
        assert problem(changed, made, public(keys[0])) != ""
        assert signer(changed, made)[0] == ""
    assert problem(TEXT, made.replace("A", "B", 1), public(keys[0])) != ""


def test_a_signature_for_another_purpose_is_refused(keys: list[Path], tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_text(TEXT)
    subprocess.run(["ssh-keygen", "-q", "-Y", "sign", "-f", str(keys[0]), "-n", "git", str(path)], check=True)
    made = Path(f"{path}.sig").read_text()
    assert problem(TEXT, made, public(keys[0])) != "" and signer(TEXT, made)[0] == ""


def test_what_is_missing_is_said(keys: list[Path], tmp_path: Path) -> None:
    assert problem(TEXT, None, public(keys[0])) == "there is no signature"
    assert problem(TEXT, sign(TEXT, str(keys[0])), "* ") == "the key that was given is no public key of SSH"
    assert problem(TEXT, sign(TEXT, str(keys[0])), "ssh-ed25519 AAAAAAAAAAAAAAAAA") != ""
    with pytest.raises(Refusal, match="is no file: give an SSH key"):
        sign(TEXT, str(tmp_path / "none"))
