# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Databases while they are written: SQLite by its own backup, MariaDB by a dump of one transaction."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import stat
from typing import Optional
from urllib.parse import quote

from .._refusal import Refusal
from .manifest import PLAIN, Entry
from .process import command
from .tree import scan

#: What SQLite leaves beside a database when it is killed, and would apply to another one in its place.
BESIDE = ("-journal", "-wal", "-shm")
#: Beginnings of a dump's lines that are of the version which wrote it, the defaults of a table's engine among them.
_SETTINGS = (b"/*", b"--", b"SET ", b"COMMIT;", b") ENGINE=")
_PLAIN = ("--batch", "--skip-column-names")


def copy_sqlite(source: str, target: str, item: str) -> list[Entry]:
    """Copy a database of SQLite as one transaction sees it; ``Refusal`` of one that cannot be read.

    A copy differs from its source in the counter of changes alone, and is the same for the same content. Beside the
    source nothing is left that was not there.
    """
    import sqlite3
    from contextlib import closing

    kind = os.lstat(source).st_mode
    if stat.S_ISLNK(kind):
        raise Refusal(f"{source} is a link, and would be restored as one: put the database in its place")
    if not stat.S_ISREG(kind):
        raise Refusal(f"{source} is no file: put the database in its place")
    had_log = os.path.lexists(source + "-wal")
    try:
        place = f"file:{quote(source)}?mode=ro"
        with closing(sqlite3.connect(place, uri=True, timeout=60)) as found, closing(sqlite3.connect(target)) as copied:
            found.backup(copied)
            (sound,) = copied.execute("PRAGMA quick_check(1)").fetchone()
        if not had_log and os.path.lexists(source + "-wal"):
            # Who only reads makes a log and cannot remove it. SQLite itself does, unless somebody else uses it by now.
            with closing(sqlite3.connect(source, timeout=60)) as found:
                found.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.Error as error:
        sound = str(error)
    if sound == "attempt to write a readonly database" and os.path.lexists(source + "-journal"):
        raise Refusal(
            f"{source} was not closed by the program that writes it: start that, which mends it, and run again"
        )
    if sound != "ok":
        raise Refusal(f"{source} is no database of SQLite that can be read ({sound}): mend or move it first")
    (about,), (read,) = scan(source, item), scan(target, item)
    return [about._replace(size=read.size, content=read.content)]


def copy_sql(database: str, target: str, item: str) -> list[Entry]:
    """Dump a database of MariaDB; empty where there is no client or no such database, ``Refusal`` where it fails."""
    client, dump = _program("mariadb", "mysql"), _program("mariadb-dump", "mysqldump")
    if client is None or database not in _ask(client, "SHOW DATABASES").split():
        return []
    if dump is None:
        raise Refusal(f"{database} is there, and mariadb-dump is not on this machine: install mariadb-client")
    options = ("--single-transaction", "--skip-dump-date", "--skip-comments", "--hex-blob", "--routines")
    code, _output, errors = command([dump, *options, database], stdout=target)
    if code != 0:
        raise Refusal(f"{database} cannot be dumped ({errors}): see that MariaDB runs and root may log in")
    return [entry._replace(kind=PLAIN, mode=0o600) for entry in scan(target, item)]


def sql_version() -> str:
    """The server with its version, such as ``MariaDB 10.11.14``; empty where none answers."""
    client = _program("mariadb", "mysql")
    code, output, _errors = command([client, *_PLAIN, "--execute=SELECT VERSION()"]) if client else (1, "", "")
    number = re.match(r"\d+\.\d+\.\d+", output)
    return f"{'MariaDB' if 'MariaDB' in output else 'MySQL'} {number.group()}" if code == 0 and number else ""


def sql_tables(database: str) -> Optional[list[str]]:
    """The tables of a database; None where there is no client or no such database."""
    client = _program("mariadb", "mysql")
    if client is None or database not in _ask(client, "SHOW DATABASES").split():
        return None
    return _ask(client, f"SHOW TABLES IN `{database}`").split()


def rows_of(dumped: str) -> str:
    """By which two dumps are known to have the same tables, routines and rows, whichever versions wrote them.

    Versions of mariadb-dump differ in the settings that a dump begins and ends with, in its commits, and in where a
    line of rows ends. A line break within a value is always written as an escape.
    """
    digest = hashlib.sha256()
    with open(dumped, "rb") as stream:
        for line in stream:
            if line.strip() and not line.startswith(_SETTINGS):
                one = line.strip()
                digest.update(one.replace(b" VALUES (", b" VALUES(", 1) if one.startswith(b"INSERT INTO ") else one)
    return digest.hexdigest()


def put_sql(database: str, dumped: str) -> None:
    """Make a database of its dump, in the place of the one that is there; ``Refusal`` where that fails."""
    client = _program("mariadb", "mysql")
    if client is None:
        raise Refusal("MariaDB's client is not on this machine: run gaudi3.scale.slurm first, then restore")
    _ask(client, f"DROP DATABASE IF EXISTS `{database}`; CREATE DATABASE `{database}`")
    code, _output, errors = command([client, "--batch", database], stdin=dumped)
    if code != 0:
        raise Refusal(f"{database} could not be restored ({errors}): mend that, and run again with overwrite")


def _ask(client: str, statement: str) -> str:
    code, output, errors = command([client, *_PLAIN, f"--execute={statement}"])
    if code != 0:
        raise Refusal(f"MariaDB does not answer ({errors}): start mariadb.service, and see that root may log in")
    return output


def _program(*names: str) -> Optional[str]:
    return next((found for name in names if (found := shutil.which(name, path=_path()))), None)


def _path() -> str:
    return os.environ.get("PATH", "") + ":/usr/sbin:/usr/bin"
