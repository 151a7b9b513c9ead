"""Repositories that are no folder: over SFTP with OpenSSH's server, and in S3. Lost, restored, and who is let in."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.modules import gaudi_backup, gaudi_restore

from . import backup_stores
from .test_gaudi_backup import PASSWORD, every_item

Both = tuple[Callable[..., dict[str, Any]], Callable[..., dict[str, Any]]]
#: Notes the arguments of restic and of the ssh that it starts, as everybody on a machine sees them.
_WATCHED = """#!/bin/sh
echo "$0 $*" >> '{log}'
exec '{program}' "$@"
"""


@pytest.fixture(scope="module")
def sftp(tmp_path_factory: pytest.TempPathFactory) -> Iterator[backup_stores.SftpStore]:
    with backup_stores.sftp_store(tmp_path_factory.mktemp("sshd")) as store:
        yield store


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    root = tmp_path / "machine"
    files = {
        "var/lib/gaudi3-scale/jobs/.control/bert/job.json": '{"name": "bert"}\n',
        "var/lib/gaudi3-scale/health/fence.json": '{"reason": "port 7"}\n',
        "etc/gaudi3-scale/written/fabric.json": "{}\n",
    }
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (root / "var/lib/gaudi3-scale/health/fence.json").chmod(0o640)
    return root


@pytest.fixture
def arguments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    log, folder = tmp_path / "arguments", tmp_path / "bin"
    folder.mkdir()
    for name in ("restic", "ssh"):
        program = folder / name
        program.write_text(_WATCHED.format(log=log, program=shutil.which(name)))
        program.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=":")
    return log


@pytest.fixture
def both(run_module: Any, machine: Path, tmp_path: Path, arguments: Path) -> Both:
    options = {
        "password": PASSWORD, "host": "gaudi-1", "kinds": ["node"], "root": str(machine),
        "working_folder": str(tmp_path / "work"),
    }  # fmt: skip

    def call(module: Any) -> Callable[..., dict[str, Any]]:
        return lambda **more: dict(run_module(module, **{**options, **more}))

    return call(gaudi_backup), call(gaudi_restore)


def lost_and_restored(both: Both, machine: Path, **store: Any) -> str:
    """Back up twice, lose the machine, restore it twice; what the modules said."""
    back_up, restore = both
    done, again, before = back_up(**store), back_up(**store), every_item(machine)
    assert (done.get("changed"), again.get("changed")) == (True, False), (done, again)
    shutil.rmtree(machine)
    back, once_more = restore(**store), restore(**store)
    assert (back.get("changed"), once_more.get("changed")) == (True, False), (back, once_more)
    assert every_item(machine) == before
    return str([{**each, "invocation": None} for each in (done, again, back, once_more)])


def nowhere(text: str, *places: Path) -> None:
    """No file below the places has the text."""
    files = (path for place in places for path in place.rglob("*") if path.is_file())
    found = [path for path in files if text.encode() in path.read_bytes()]
    assert found == []


def test_a_machine_comes_back_over_sftp(
    both: Both, machine: Path, sftp: backup_stores.SftpStore, arguments: Path, tmp_path: Path
) -> None:
    given = {"repository": f"{sftp.address}/one", "ssh_key": sftp.key, "ssh_known_hosts": sftp.known_hosts}
    said = lost_and_restored(both, machine, **given)
    assert (sftp.folder / "one/config").is_file()
    wrong = both[1](**given, password="another")["msg"]
    assert wrong == "the repository cannot be read: wrong password or no key found."
    secret = sftp.key.splitlines()[1]
    ran = arguments.read_text()
    assert "/bin/ssh -o BatchMode=yes -o StrictHostKeyChecking=yes " in ran
    for each in (secret, PASSWORD):
        assert each not in ran and each not in said
    nowhere(secret, tmp_path)


def test_who_the_store_does_not_let_in_and_a_store_that_is_another_are_refused(
    both: Both, sftp: backup_stores.SftpStore, tmp_path: Path
) -> None:
    stranger, public = backup_stores.keypair(tmp_path / "stranger")
    given = {"repository": f"{sftp.address}/two", "ssh_key": sftp.key, "ssh_known_hosts": sftp.known_hosts}
    other_host = f"[127.0.0.1]:{sftp.port} {public}"
    away = backup_stores.free_port()
    cases = {
        "127.0.0.1 lets nobody in with the key that is given: see that it knows the public half of ssh_key.": {
            "ssh_key": stranger
        },
        "127.0.0.1 shows another host key than the one that is known: find out why, and give the right line in "
        "ssh_known_hosts.": {"ssh_known_hosts": other_host},
        "the host key of 127.0.0.1 is not known: compare what ssh-keyscan prints with the key of the store, and give "
        "it in ssh_known_hosts.": {"ssh_known_hosts": f"other {public}"},
        f"127.0.0.1 cannot be reached by ssh (ssh: connect to host 127.0.0.1 port {away}: Connection refused): see "
        "that it runs.": {"repository": f"sftp://backup@127.0.0.1:{away}//srv/two"},
        "ssh_key is no private key as ssh-keygen writes one: give the whole file, from BEGIN to END, or leave it "
        "out.": {"ssh_key": "/root/.ssh/id_ed25519"},
    }
    for call in both:
        for said, wrong in cases.items():
            assert call(**{**given, **wrong})["msg"] == said
    assert not (sftp.folder / "two").exists()
    assert both[1](**given)["msg"] == "there is no repository: give the one that the backups were made in."


def test_a_machine_comes_back_from_s3_and_strangers_are_refused(
    both: Both, machine: Path, arguments: Path, tmp_path: Path
) -> None:
    with backup_stores.s3_store(tmp_path) as store:
        given: dict[str, Any] = {"repository": f"{store.address}/backups/one", "environment": store.keys}
        assert both[1](**given)["msg"] == "there is no repository: give the one that the backups were made in."
        said = lost_and_restored(both, machine, **given)
        secret = store.keys["AWS_SECRET_ACCESS_KEY"]
        assert secret not in said + arguments.read_text()
        nowhere(secret, tmp_path / "work", machine)
        for wrong, reason in (
            ({"AWS_ACCESS_KEY_ID": "AKIAUNKNOWN"}, "The AWS Access Key Id you provided does not exist in our records."),
            ({"AWS_SECRET_ACCESS_KEY": "another"}, "The request signature we calculated does not match the signature"),
        ):
            for call in both:
                refused = call(**{**given, "environment": {**store.keys, **wrong}})["msg"]
                assert refused.startswith("the repository cannot be read: ") and reason in refused, refused
    for call in both:
        refused = call(**given)["msg"]
        assert refused.startswith("the repository cannot be read: ") and "connection refused" in refused
