"""What a simulated cloud has: rows in SQLite, which outlive the process, and faults that a test puts in.

Every call is one transaction, so that a provider that is killed leaves whole rows. Tests read and write the same file.
"""

from __future__ import annotations

import json
import sqlite3
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

Row = dict[str, Any]


class Refused(Exception):
    """What the cloud says: a sentence with its code, and the argument that it is about."""

    def __init__(self, code: str, text: str, path: list[Any] | None = None) -> None:
        super().__init__(f"{text} (code: {code})")
        self.path = path or []


class World:
    """A cloud's rows. An object is of a kind, which is its Terraform type, and has an id."""

    def __init__(self, path: Path | str) -> None:
        self.path = str(path)
        self._link: sqlite3.Connection | None = None
        with self.open():
            pass

    @contextmanager
    def open(self) -> Iterator[World]:
        """A transaction: what is done inside is done whole or not at all."""
        if self._link is not None:
            yield self
            return
        link = sqlite3.connect(self.path, timeout=60, isolation_level=None)
        link.execute("PRAGMA synchronous=OFF")
        link.execute("BEGIN IMMEDIATE")
        link.execute("CREATE TABLE IF NOT EXISTS rows (kind TEXT, id TEXT, body TEXT, PRIMARY KEY (kind, id))")
        self._link = link
        try:
            yield self
        except BaseException:
            link.execute("ROLLBACK")
            raise
        else:
            link.execute("COMMIT")
        finally:
            self._link = None
            link.close()

    def _run(self, statement: str, *values: str) -> list[tuple[str, ...]]:
        with self.open():
            assert self._link is not None
            return list(self._link.execute(statement, values))

    def rows(self, kind: str) -> list[Row]:
        """All of a kind, in the order in which they were made."""
        return [json.loads(body) for (body,) in self._run("SELECT body FROM rows WHERE kind=? ORDER BY rowid", kind)]

    def get(self, kind: str, ident: Any) -> Row | None:
        """One object."""
        found = self._run("SELECT body FROM rows WHERE kind=? AND id=?", kind, str(ident))
        return json.loads(found[0][0]) if found else None

    def put(self, kind: str, ident: str, row: Row) -> Row:
        """Make or change an object."""
        whole = {**row, "id": ident}
        self._run(
            "INSERT INTO rows VALUES (?,?,?) ON CONFLICT (kind, id) DO UPDATE SET body=excluded.body",
            kind, ident, json.dumps(whole),
        )  # fmt: skip
        return whole

    def drop(self, kind: str, ident: str) -> None:
        """Remove an object, if it is there."""
        self._run("DELETE FROM rows WHERE kind=? AND id=?", kind, ident)

    def kinds(self) -> dict[str, int]:
        """How many objects of each kind, settings and the account's own aside."""
        found = self._run("SELECT kind, count(*) FROM rows GROUP BY kind")
        return {kind: int(count) for kind, count in found if not kind.startswith("_")}

    def setting(self, name: str) -> Row:
        """A test's setting: ``quota``, ``images``, ``faults`` ..."""
        return self.get("_setting", name) or {}

    def set(self, name: str, **values: Any) -> None:
        """Set some of it."""
        self.put("_setting", name, {**self.setting(name), **values})

    def fault(self, kind: str) -> Row | None:
        """The fault that this call of a kind meets: after how many it begins, for how many it holds.

        Calls are counted outside of what a refusal undoes.
        """
        with self.open():
            fault = self.setting("faults").get(kind)
            count = int(self.setting("calls").get(kind, 0)) + 1
            self.set("calls", **{kind: count})
        if not isinstance(fault, dict):
            return None
        if count <= int(fault.get("after", 0)) or count > int(fault.get("after", 0)) + int(fault.get("times", 10**6)):
            return None
        return fault

    def wait(self, kind: str) -> None:
        """Be as slow as the test wants, outside of any transaction."""
        time.sleep(float(self.setting("slow").get(kind, 0)))


def new_id(prefix: str = "r014") -> str:
    """An id as VPC objects have them."""
    return f"{prefix}-{uuid.uuid4()}"
