"""The one writer of files: whole or not at all, never open to more than was asked for, and on the disk."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._apt.node import Node as AptNode
from ansible_collections.gaudi3.scale.plugins.module_utils._credentials import Folder as SecretFolder
from ansible_collections.gaudi3.scale.plugins.module_utils._files import ensure_file, make_folder, write_file
from ansible_collections.gaudi3.scale.plugins.module_utils._health import history
from ansible_collections.gaudi3.scale.plugins.module_utils._jobs.files import Control, Output
from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """What is done to files, in order, each with the mode of what lies under a name of its own at that moment."""
    seen: list[tuple[str, int]] = []

    def watched(name: str, real: Any) -> Any:
        def call(first: Any, *arguments: Any, **options: Any) -> Any:
            about = os.stat(first) if isinstance(first, int) else None
            kind = "folder" if about and stat.S_ISDIR(about.st_mode) else "file"
            seen.append((f"{name} {kind}", stat.S_IMODE(about.st_mode) if about else 0))
            return real(first, *arguments, **options)

        return call

    for name in ("fchmod", "fsync", "replace"):
        monkeypatch.setattr(os, name, watched(name, getattr(os, name)))
    return seen


def test_file_and_folder_are_on_the_disk_and_nobody_reads_it_before(
    tmp_path: Path, calls: list[tuple[str, int]]
) -> None:
    old = os.umask(0)
    try:
        write_file(str(tmp_path / "a"), "text", 0o640)
    finally:
        os.umask(old)
    assert [name for name, _mode in calls] == ["fchmod file", "fsync file", "replace file", "fsync folder"]
    assert calls[0][1] == 0o600 and calls[1][1] == 0o640
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o640


@pytest.mark.parametrize("instant", ["fsync", "replace"])
def test_a_kill_before_the_rename_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, instant: str
) -> None:
    write_file(str(tmp_path / "a"), "old")

    def killed(*_arguments: Any, **_options: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, instant, killed)
    with pytest.raises(KeyboardInterrupt):
        write_file(str(tmp_path / "a"), "new")
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"a": "old"}


def test_a_link_in_the_files_place_is_replaced_and_its_target_stays(tmp_path: Path) -> None:
    (tmp_path / "target").write_text("root's")
    (tmp_path / "a").symlink_to("target")
    write_file(str(tmp_path / "a"), "new")
    assert not (tmp_path / "a").is_symlink() and (tmp_path / "target").read_text() == "root's"


@pytest.mark.parametrize("said", ["It is so", "It is so.", "It is so. "])
def test_a_refusal_has_one_full_stop(said: str) -> None:
    assert str(Refusal(said)) == "It is so."


@pytest.fixture
def closed() -> Iterator[None]:
    """A root hardened as CIS wants it: umask 077."""
    old = os.umask(0o077)
    yield
    os.umask(old)


class Module:
    """As much of an AnsibleModule as a writer needs."""

    check_mode = False


MODULE = cast(Any, Module())


def _history(place: str) -> None:
    history.append([{"what": "verdict"}], place)
    os.rename(f"{place}/{history.HISTORY}", f"{place}/file")


def _password(place: str) -> None:
    store = SecretFolder(place)
    with store.opened():
        store.write("file", b"text")


def _alone(make: Callable[[str], None]) -> Callable[[str], None]:
    """What makes a folder, and then a file in it."""

    def write(place: str) -> None:
        make(place)
        write_file(f"{place}/file", "text")

    return write


#: What writes a file into folders that are missing; the modes of the folders and of the file.
WRITERS: dict[str, tuple[Callable[[str], object], int, int]] = {
    "ensure_file": (lambda place: ensure_file(MODULE, f"{place}/file", "text"), 0o755, 0o644),
    "ensure_file of a secret": (lambda place: ensure_file(MODULE, f"{place}/file", "text", 0o600), 0o755, 0o600),
    "make_folder": (_alone(lambda place: make_folder(f"{place}/")), 0o755, 0o644),
    "make_folder of one's own": (_alone(lambda place: make_folder(place, 0o700)), 0o700, 0o644),
    "the history of a node's health": (_history, 0o755, 0o644),
    "a file of apt": (lambda place: AptNode.write(cast(Any, None), f"{place}/file", b"text"), 0o755, 0o644),
    "passwords": (_password, 0o700, 0o600),
    "a job's folder": (_alone(lambda place: Output(f"{place}/job").make((-1, -1))), 0o755, 0o644),
    "a job's record": (_alone(lambda place: Control(f"{place}/job").write({"a": ""}, -1)), 0o755, 0o644),
}


@pytest.mark.parametrize("writer", WRITERS)
def test_a_mode_is_what_is_written_whatever_the_umask(tmp_path: Path, writer: str, closed: None) -> None:
    tmp_path.chmod(0o711)
    write, folders, files = WRITERS[writer]
    write(f"{tmp_path}/a/b/c")
    made = [tmp_path / "a", tmp_path / "a/b", tmp_path / "a/b/c"]
    assert [oct(stat.S_IMODE(each.stat().st_mode)) for each in made] == [oct(folders)] * 3
    assert oct(stat.S_IMODE((tmp_path / "a/b/c/file").stat().st_mode)) == oct(files)
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o711, "a folder that was there is left alone"


def test_a_folder_is_left_as_it_is_and_anything_else_in_its_place_refused(tmp_path: Path, closed: None) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o2750)
    make_folder(f"{tmp_path}/shared/a")
    assert [oct(stat.S_IMODE((tmp_path / each).stat().st_mode)) for each in ("shared", "shared/a")] == [
        "0o2750", "0o2755",
    ]  # fmt: skip
    (tmp_path / "link").symlink_to("shared")
    make_folder(f"{tmp_path}/link")
    (tmp_path / "file").touch()
    for path in ("file", "file/a"):
        with pytest.raises((FileExistsError, NotADirectoryError)):
            make_folder(f"{tmp_path}/{path}")


def test_a_file_of_another_user_is_written_again_and_its_owner_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever owns a unit's file or a firewall's can change it at any time."""
    path, us = f"{tmp_path}/file", os.geteuid()
    ensure_file(MODULE, path, "text")
    assert ensure_file(MODULE, path, "text") is None
    monkeypatch.setattr(os, "geteuid", lambda: us + 1)
    diff = ensure_file(MODULE, path, "text")
    assert diff is not None
    assert (diff["before"], diff["after"]) == (f"# mode 0644, owner {us}\ntext", "# mode 0644\ntext")
    assert ensure_file(MODULE, path, "text", own=False) is None


def test_a_folder_in_the_place_of_a_file_is_named_with_what_to_do(tmp_path: Path) -> None:
    class Told(Exception):
        pass

    class Module:
        check_mode = True

        def fail_json(self, msg: str) -> None:
            raise Told(msg)

    with pytest.raises(Told, match=f"{re.escape(str(tmp_path))} is a folder, and a file of that name is to be"):
        ensure_file(cast(Any, Module()), str(tmp_path), "text")
