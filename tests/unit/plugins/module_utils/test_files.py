"""The one writer of files: whole or not at all, never open to more than was asked for, and on the disk."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._files import write_file
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
