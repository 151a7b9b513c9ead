"""A lock that is signed: right by its signer's name, and refused once anything about it is another."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import Deploy
from gaudi3_deploy.collection._mirror import LOCK
from gaudi3_deploy.mirror.download import Folder
from gaudi3_deploy.mirror.sealed import SIGNATURE, Kept, Lock

pytestmark = pytest.mark.skipif(not shutil.which("ssh-keygen"), reason="ssh-keygen is missing, which signs")
RELEASE = "1.23.0-695"


def key(path: Path) -> str:
    """Make a key; its public half."""
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", path], check=True)
    return path.with_suffix(".pub").read_text().strip()


@pytest.fixture
def mirror(deploy: Deploy) -> Path:
    folder: Path = deploy.folder / "mirror"
    folder.mkdir()
    (folder / "a").write_bytes(b"a")
    kept = Kept("a", hashlib.sha256(b"a").hexdigest(), 1, "http://x/a")
    (folder / LOCK).write_text(Lock(RELEASE, {"a": kept}).text())
    owner = key(deploy.folder / "owner")
    (deploy.folder / "signers").write_text(f'ops@example.org namespaces="gaudi3-mirror" {owner}\n')
    return folder


def test_a_signed_lock_is_right_by_name_and_refused_once_it_is_changed(deploy: Deploy, mirror: Path) -> None:
    verify = ("mirror", "verify", "mirror", "--signers", "signers")
    assert (
        "lock.json has no signature mirror/lock.json.sig: let its owner sign it with `gaudi3-deploy mirror sign`."
        in deploy.run(*verify, code=1)
    )
    assert deploy.run("mirror", "sign", "mirror", "--key", "owner") == "signed: mirror/lock.json.sig\n"
    assert deploy.run(*verify).endswith(", all as lock.json says, signed by ops@example.org\n")
    assert json.loads(deploy.run(*verify, "--json"))["signer"] == "ops@example.org"
    assert deploy.run("mirror", "verify", "mirror").endswith(", all as lock.json says\n"), (
        "the signature is no file of it"
    )

    whole = (mirror / LOCK).read_text()
    (mirror / LOCK).write_text(whole.replace("http://x/a", "http://y/a"))
    assert "mirror/lock.json is not what lock.json.sig signs (Signature verification" in deploy.run(*verify, code=1)
    (mirror / LOCK).write_text(whole)
    key(deploy.folder / "other")
    deploy.run("mirror", "sign", "mirror", "--key", "other")
    said = deploy.run(*verify, code=1)
    assert "mirror/lock.json is signed by the key SHA256:" in said
    assert "which is not of anyone in signers (No principal matched)" in said
    # What the same key has signed for something else does not count.
    command = ["ssh-keygen", "-Y", "sign", "-n", "file", "-f", str(deploy.folder / "owner")]
    done = subprocess.run(command, input=whole.encode(), capture_output=True, check=True)
    (mirror / SIGNATURE).write_bytes(done.stdout)
    said = deploy.run(*verify, code=1)
    assert "is not what lock.json.sig signs (Couldn't verify signature: namespace does not match)" in said


def test_requests_that_cannot_be(deploy: Deploy, mirror: Path) -> None:
    assert "none is no file: give an SSH key" in deploy.run("mirror", "sign", "mirror", "--key", "none", code=2)
    assert "ssh-keygen does not sign with signers (" in deploy.run(
        "mirror", "sign", "mirror", "--key", "signers", code=1
    )
    assert not (mirror / SIGNATURE).exists()
    assert "none is no file: give one of allowed signers" in deploy.run(
        "mirror", "verify", "mirror", "--signers", "none", code=2
    )
    (mirror / LOCK).unlink()
    assert "has no lock.json" in deploy.run("mirror", "sign", "mirror", "--key", "owner", code=2)


@pytest.mark.parametrize("odd", ['"a"', "[]", "null", "Infinity", "{}"])
def test_an_odd_size_in_a_lock_is_refused(deploy: Deploy, mirror: Path, odd: str) -> None:
    (mirror / LOCK).write_text((mirror / LOCK).read_text().replace('"size": 1', f'"size": {odd}'))
    said = deploy.run("mirror", "sign", "mirror", "--key", "owner", code=2)
    assert "mirror/lock.json is no lock of a mirror (" in said and "make the mirror again." in said


def test_a_mirror_that_gets_more_loses_its_signature(mirror: Path) -> None:
    (mirror / SIGNATURE).write_text("of this lock")
    said: list[str] = []
    Folder.open(mirror, RELEASE, said.append).seal()
    assert (mirror / SIGNATURE).exists() and said == []
    folder = Folder.open(mirror, RELEASE, said.append)
    folder.put("b", "more", "here")
    folder.seal()
    assert not (mirror / SIGNATURE).exists()
    assert said == ["lock.json.sig goes, as the mirror has more now: sign it again"]
