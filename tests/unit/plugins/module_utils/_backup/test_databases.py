"""Databases: MariaDB's is dumped or refused, and SQLite's is copied while it is written, as one transaction sees it."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._backup import databases, restoring, saving
from ansible_collections.gaudi3.scale.plugins.module_utils._backup.kinds import MACHINES, SERVERS
from ansible_collections.gaudi3.scale.plugins.module_utils._backup.manifest import Manifest
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


@pytest.mark.parametrize("version", ["10.11.6-MariaDB-0+deb12u1", "8.0.36", ""])
def test_a_dump_of_a_later_server_is_refused_before_anything_changes(asked: Path, tmp_path: Path, version: str) -> None:
    (tmp_path / "bin/mariadb").write_text(f'#!/bin/sh\necho "$@" >> {asked}\necho "{version}"\n')
    found = dict.fromkeys(SERVERS.values(), "MariaDB 10.11.6")
    if version != "10.11.6-MariaDB-0+deb12u1":
        found = dict.fromkeys(SERVERS.values(), f"MySQL {version}") if version else {}
    assert saving.versions([ACCOUNTING.name], "/") == found
    later = Manifest("one", (), {}, dict.fromkeys(SERVERS.values(), "MariaDB 10.11.14"), ())
    if not version:  # the server's silence is said elsewhere
        restoring._admit(later, [ACCOUNTING], "/", dry=True)
        return
    with pytest.raises(
        Refusal, match=r"^the backup of slurm-accounting is a dump of MariaDB 10\.11\.14, and this mach"
    ):
        restoring._admit(later, [ACCOUNTING], "/", dry=True)
    assert {*asked.read_text().splitlines()} == {"--batch --skip-column-names --execute=SELECT VERSION()"}


#: The same table, as mariadb-dump of 10.11.18 and of 11.8.9 write it, and as one that puts its rows into one line.
DUMPS = (
    "/*M!999999\\- enable the sandbox mode */ \n/*!40111 SET @OLD_SQL_NOTES=@@SQL_NOTES, SQL_NOTES=0 */;\n"
    "CREATE TABLE `t` (\n  `a` int(11) DEFAULT NULL\n) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;\n\n"
    "LOCK TABLES `t` WRITE;\nINSERT INTO `t` VALUES\n(1,'x'),\n(2,'a\\nVALUES (b');\nUNLOCK TABLES;\n",
    "/*M!100616 SET @OLD_NOTE_VERBOSITY=@@NOTE_VERBOSITY, NOTE_VERBOSITY=0 */;\n\n"
    "CREATE TABLE `t` (\n  `a` int(11) DEFAULT NULL\n) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;\n"
    "SET @OLD_AUTOCOMMIT=@@AUTOCOMMIT, @@AUTOCOMMIT=0;\nLOCK TABLES `t` WRITE;\n"
    "INSERT INTO `t` VALUES\n(1,'x'),\n(2,'a\\nVALUES (b');\nUNLOCK TABLES;\nCOMMIT;\n"
    "SET AUTOCOMMIT=@OLD_AUTOCOMMIT;\n",
    "CREATE TABLE `t` (\n  `a` int(11) DEFAULT NULL\n) ENGINE=InnoDB;\nLOCK TABLES `t` WRITE;\n"
    "INSERT INTO `t` VALUES (1,'x'),(2,'a\\nVALUES (b');\nUNLOCK TABLES;\n",
)


def test_a_dump_of_another_version_is_known_by_its_rows(asked: Path, tmp_path: Path) -> None:
    """What was restored into a later MariaDB is as in the backup, and restored once."""
    fetched, dumped = tmp_path / "fetched", tmp_path / "dumped"
    (fetched / "items").mkdir(parents=True)
    dump = tmp_path / "bin/mariadb-dump"
    dump.write_text(f"#!/bin/sh\ncat {dumped}\n")
    dump.chmod(0o755)
    (fetched / "items" / ACCOUNTING.name).write_text(DUMPS[0])
    dumped.write_text(DUMPS[0])
    entries = tuple(databases.copy_sql(ACCOUNTING.path, str(tmp_path / "copy"), ACCOUNTING.name))
    found = Manifest("one", (), {ACCOUNTING.name: {"path": ACCOUNTING.path, "way": ACCOUNTING.way}}, {}, entries)
    looks: list[int] = []

    def fetch() -> str:
        looks.append(1)
        return str(fetched)

    def differences() -> list[str]:
        return restoring._differences(ACCOUNTING, found, str(tmp_path), "/", fetch)

    assert (differences(), looks) == ([], []), "nothing is fetched where the bytes are the same"
    for text in DUMPS[1:]:
        dumped.write_text(text)
        assert differences() == []
    dumped.write_text(DUMPS[1].replace("(1,'x')", "(1,'y')"))
    assert differences()[0].startswith("slurm-accounting has ")
    dumped.write_text(DUMPS[1].replace("`a` int(11)", "`a` int(10)"))
    assert differences() != []
    assert not (tmp_path / "compared").exists()


def grafana(path: Path) -> sqlite3.Connection:
    """A database as Grafana keeps it with `wal = true`: dashboards, what users prefer, and annotations."""
    database = sqlite3.connect(path)
    database.executescript(
        "PRAGMA journal_mode=WAL;"
        "CREATE TABLE dashboard (id INTEGER PRIMARY KEY, uid TEXT, data TEXT);"
        "CREATE TABLE preferences (id INTEGER PRIMARY KEY, user_id INTEGER, theme TEXT);"
        "CREATE TABLE annotation (id INTEGER PRIMARY KEY, pair INTEGER, text TEXT);"
        "INSERT INTO dashboard (uid, data) VALUES ('own', '{\"title\": \"own board\"}');"
        "INSERT INTO preferences (user_id, theme) VALUES (2, 'light');"
    )
    return database


def tables(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as database:
        return [*database.iterdump()]


WRITER = """
import sqlite3, sys
database = sqlite3.connect(sys.argv[1], isolation_level=None)
for pair in range(10**9):
    database.execute("BEGIN IMMEDIATE")
    for half in ("begins", "ends"):
        database.execute("INSERT INTO annotation (pair, text) VALUES (?, ?)", (pair, half * 100))
    database.execute("COMMIT")
    print(pair, flush=True)
"""


def test_a_database_is_copied_between_two_transactions_while_it_is_written(tmp_path: Path) -> None:
    live, copy = tmp_path / "grafana.db", tmp_path / "copy"
    grafana(live).close()
    writer = subprocess.Popen([sys.executable, "-c", WRITER, str(live)], stdout=subprocess.PIPE)
    assert writer.stdout is not None
    try:
        for number in range(5):
            writer.stdout.readline()
            databases.copy_sqlite(str(live), f"{copy}{number}", "grafana-database")
    finally:
        writer.kill()
        writer.wait()
    for number in range(5):
        with closing(sqlite3.connect(f"{copy}{number}")) as found:
            written = found.execute("SELECT pair, count(*) FROM annotation GROUP BY pair ORDER BY pair").fetchall()
        # All that was committed up to one moment, and no half of what came next.
        assert len(written) > number and written == [(pair, 2) for pair in range(len(written))]
    # The last copy of what is left is the same, whoever has it open.
    held = sqlite3.connect(live)
    entries = databases.copy_sqlite(str(live), f"{copy}-held", "grafana-database")
    held.close()
    assert databases.copy_sqlite(str(live), f"{copy}-closed", "grafana-database") == entries
    assert tables(Path(f"{copy}-held")) == tables(live)


def test_a_database_that_nobody_has_open_has_no_new_files_beside_it(tmp_path: Path) -> None:
    live = tmp_path / "grafana/grafana.db"
    live.parent.mkdir()
    grafana(live).close()
    before = live.read_bytes()
    databases.copy_sqlite(str(live), str(tmp_path / "copy"), "grafana-database")
    assert [path.name for path in live.parent.iterdir()] == ["grafana.db"] and live.read_bytes() == before
    # What a killed Grafana has left beside it is Grafana's, and in the copy.
    opened = sqlite3.connect(live)
    opened.execute("INSERT INTO preferences (user_id, theme) VALUES (3, 'dark')")
    opened.commit()
    killed = shutil.copytree(live.parent, tmp_path / "killed")
    opened.close()
    names = sorted(path.name for path in killed.iterdir())
    databases.copy_sqlite(str(killed / "grafana.db"), str(tmp_path / "second"), "grafana-database")
    assert sorted(path.name for path in killed.iterdir()) == names and "grafana.db-wal" in names
    assert "INSERT INTO \"preferences\" VALUES(2,3,'dark');" in tables(tmp_path / "second")


def test_what_is_no_database_that_can_be_read_is_said(tmp_path: Path) -> None:
    live, copy = tmp_path / "grafana.db", str(tmp_path / "copy")
    opened = sqlite3.connect(live)
    opened.execute("CREATE TABLE annotation (text TEXT)")
    opened.executemany("INSERT INTO annotation VALUES (?)", [("a" * 500,)] * 200)
    opened.commit()
    # Killed in the middle of a change: its journal has what has to be taken back.
    opened.execute("PRAGMA cache_size=5")
    opened.execute("UPDATE annotation SET text = 'b' || text")
    killed = tmp_path / "killed.db"
    for end in ("", "-journal"):
        shutil.copy(f"{live}{end}", f"{killed}{end}")
    opened.close()
    link, pipe, other = tmp_path / "link.db", tmp_path / "pipe.db", tmp_path / "other.db"
    link.symlink_to(live)
    os.mkfifo(pipe)
    other.write_bytes(b"no database, " * 100)
    for path, said in (
        (killed, "was not closed by the program that writes it: start that, which mends it, and run again."),
        (link, "is a link, and would be restored as one: put the database in its place."),
        (pipe, "is no file: put the database in its place."),
        (other, "is no database of SQLite that can be read (file is not a database): mend or move it first."),
    ):
        with pytest.raises(Refusal) as refused:
            databases.copy_sqlite(str(path), copy, "grafana-database")
        assert str(refused.value) == f"{path} {said}"
