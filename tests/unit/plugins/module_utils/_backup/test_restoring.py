"""A restore that is killed at any instant, or whose disk is full: nothing is lost, and the next run makes up for it."""

from __future__ import annotations

import errno
import itertools
import os
import shutil
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._backup import databases, kinds, restoring, saving
from ansible_collections.gaudi3.scale.plugins.module_utils._backup.belonging import Snapshot
from ansible_collections.gaudi3.scale.plugins.module_utils._backup.manifest import PLAIN, Entry, Manifest
from ansible_collections.gaudi3.scale.plugins.module_utils._backup.repository import Repository
from ansible_collections.gaudi3.scale.plugins.module_utils._backup.tree import scan

#: What changes something on a disk.
CALLS = (
    "open", "rename", "replace", "mkdir", "symlink", "unlink", "rmdir", "chown", "chmod", "fsync", "link",
)  # fmt: skip
ITEMS = [kinds.Item("fence", "/srv/fence"), kinds.Item("database", "/srv/grafana/grafana.db", kinds.SQLITE)]


class Kept(Repository):
    """A repository of one snapshot, which lies in a folder: what restic does is not meant here."""

    folder: Path
    whole: Manifest

    def snapshots(self, host: str) -> list[Snapshot]:
        return [Snapshot("1a2b3c4d", "now", host, "/copy", "")]

    def manifest_of(self, _snapshot: Snapshot) -> Manifest:
        return self.whole

    def lacks(self, _snapshot: Snapshot, _wanted: Manifest) -> list[str]:
        return []

    def fetch(self, snapshot: Snapshot, folder: str) -> str:
        shutil.copytree(self.folder, folder + snapshot.folder, symlinks=True)
        return folder + snapshot.folder


def fill(root: Path, word: str) -> None:
    (root / "srv/fence/inner").mkdir(parents=True)
    (root / "srv/fence/fence.json").write_text(f"{word}\n")
    (root / "srv/fence/inner/deep").write_text(f"{word} deep\n")
    (root / "srv/fence/inner").chmod(0o750)
    (root / "srv/fence/last").symlink_to("inner/deep")
    (root / "srv/grafana").mkdir()
    with closing(sqlite3.connect(root / "srv/grafana/grafana.db")) as database:
        database.execute("CREATE TABLE dashboard (title TEXT)")
        database.execute("INSERT INTO dashboard VALUES (?)", (word,))
        database.commit()


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    machine = tmp_path / "lost"
    fill(machine, "saved")
    made = Kept(str(tmp_path / "store"), "of-no-other-use")
    object.__setattr__(made, "folder", tmp_path / "copy")
    (tmp_path / "copy").mkdir()
    object.__setattr__(made, "whole", saving.stage(ITEMS, str(tmp_path / "copy"), str(machine), "one", ["node"])[0])
    return made


def run(kept: Kept, root: Path, dry: bool = False) -> restoring.Restored:
    work = str(root.parent / f"{root.name}-work")
    return restoring.restore(kept, ITEMS, work, str(root), "one", "latest", overwrite=True, dry=dry)


def killed(act: Callable[[], Any], instant: int) -> bool:
    """Whether a process that does it is killed before its change of that number."""
    child = os.fork()
    if child == 0:
        left = itertools.count(instant, -1)

        def counted(real: Any) -> Any:
            def call(*arguments: Any, **options: Any) -> Any:
                if next(left) == 0:
                    os._exit(9)
                return real(*arguments, **options)

            return call

        try:
            for name in CALLS:
                setattr(os, name, counted(getattr(os, name)))
            act()
            os._exit(0)
        except BaseException as error:
            print(repr(error), file=sys.stderr)
            os._exit(1)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in (0, 9)
    return code == 9


def names(root: Path) -> list[str]:
    return sorted(path.name.partition(".before-")[0] for path in root.rglob("*"))


def test_a_restore_that_is_killed_at_any_instant_is_made_up_for(
    kept: Kept, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", lambda _handle: None)  # a kill is no power cut
    for instant in itertools.count():
        root = tmp_path / f"machine-{instant}"
        fill(root, "older")
        dead = killed(lambda root=root: run(kept, root), instant)  # type: ignore[misc]
        fence = root / "srv/fence"
        if fence.exists():
            word = (fence / "fence.json").read_text()
            assert word in ("older\n", "saved\n") and (fence / "inner/deep").read_text() == f"{word[:-1]} deep\n"
        run(kept, root)
        assert run(kept, root).items == []
        assert (fence / "fence.json").read_text() == "saved\n" and (fence / "inner").stat().st_mode & 0o777 == 0o750
        (before,) = (root / "srv").glob("fence.before-*")
        assert (before / "fence.json").read_text() == "older\n", "what was there before is lost"
        assert names(root / "srv/grafana") == ["grafana.db", "grafana.db"]
        assert names(root) == sorted(
            ["srv", "grafana", "grafana.db", "grafana.db", *2 * ["fence", "fence.json", "inner", "deep", "last"]]
        ), "something of the killed run was left"
        shutil.rmtree(root)
        if not dead:
            break
    assert instant > 30


def test_a_full_disk_leaves_everything_as_it_was(kept: Kept, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "machine"
    fill(root, "older")
    before = {path: path.is_file() and path.read_bytes() for path in root.rglob("*")}

    def full(_source: Any, _target: Any, _size: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(shutil, "copyfileobj", full)
        with pytest.raises(OSError, match="No space left"):
            run(kept, root)
    assert {path: path.is_file() and path.read_bytes() for path in root.rglob("*")} == before
    assert [path.name for path in (tmp_path / "machine-work").iterdir()] == ["lock"]
    assert sorted(run(kept, root).items) == ["database", "fence"]


def test_a_database_that_was_fetched_to_compare_it_needs_no_second_room(
    kept: Kept, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a restore was refused on a disk that has the room for one."""
    rows = {"saved": "INSERT INTO `job` VALUES (1);\n", "there": "INSERT INTO `job` VALUES (2);\n"}
    present = "saved"

    def dump(_database: str, target: str, item: str) -> list[Entry]:
        Path(target).write_text(rows[present])
        return [entry._replace(kind=PLAIN, mode=0o600) for entry in scan(target, item)]

    monkeypatch.setattr(databases, "copy_sql", dump)
    monkeypatch.setattr(databases, "sql_tables", lambda _database: ["job"])
    items = [kinds.Item("accounting", "slurm_acct_db", kinds.SQL)]
    shutil.rmtree(tmp_path / "copy")
    (tmp_path / "copy").mkdir()
    object.__setattr__(kept, "whole", saving.stage(items, str(tmp_path / "copy"), "/", "one", ["slurm"])[0])
    present, asked = "there", []
    monkeypatch.setattr(restoring, "check_room", lambda wanted: asked.extend(wanted))
    work = str(tmp_path / "work")
    found = restoring.restore(kept, items, work, "/", "one", "latest", overwrite=True, dry=True)
    assert found.items == ["accounting"]
    assert asked == [(work, len(rows["saved"]))]
