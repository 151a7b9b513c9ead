"""MariaDB's database is in a backup, or is refused: never left out, and never replaced without its dump."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._backup import databases, restoring
from ansible_collections.gaudi3.scale.plugins.module_utils._backup.kinds import MACHINES
from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal

(ACCOUNTING,) = (item for item in MACHINES["slurm"] if item.name == "slurm-accounting")


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A client without mariadb-dump, as the core package of a distribution has it; what it was asked."""
    said = tmp_path / "asked"
    client = tmp_path / "bin/mariadb"
    client.parent.mkdir()
    client.write_text(f'#!/bin/sh\necho "$@" >> {said}\necho slurm_acct_db\n')
    client.chmod(0o755)
    monkeypatch.setattr(databases, "_path", lambda: str(client.parent))
    return said


def test_a_database_without_the_program_that_dumps_it_is_refused(asked: Path, tmp_path: Path) -> None:
    said = "slurm_acct_db is there, and mariadb-dump is not on this machine: install mariadb-client"
    with pytest.raises(Refusal, match=said):
        databases.copy_sql(ACCOUNTING.path, str(tmp_path / "dump"), ACCOUNTING.name)
    # A restore keeps what is there before it makes the database anew.
    with pytest.raises(Refusal, match=said):
        restoring._put(ACCOUNTING, [], str(tmp_path / "fetched"), "/", str(tmp_path), "20261129T000000Z")
    assert "DROP" not in asked.read_text()


def test_what_is_kept_is_on_the_disk_before_the_database_goes(
    asked: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dump = tmp_path / "bin/mariadb-dump"
    dump.write_text("#!/bin/sh\necho 'CREATE TABLE a (b int);'\n")
    dump.chmod(0o755)
    (tmp_path / "fetched").write_text("CREATE TABLE c (d int);\n")

    def noted(handle: int) -> None:
        with asked.open("a") as stream:
            stream.write(f"on the disk: {os.readlink(f'/proc/self/fd/{handle}')}\n")

    monkeypatch.setattr(os, "fsync", noted)
    fetched, stamp = str(tmp_path / "fetched"), "20261129T000000Z"
    (kept,) = restoring._put(ACCOUNTING, [], fetched, "/", str(tmp_path), stamp)
    lines = asked.read_text().splitlines()
    (dropped,) = (number for number, line in enumerate(lines) if "DROP DATABASE" in line)
    assert [f"on the disk: {each}" for each in (kept, tmp_path)] == [
        line for line in lines[:dropped] if line.startswith("on the disk")
    ]
    assert Path(kept).read_text() == "CREATE TABLE a (b int);\n"
