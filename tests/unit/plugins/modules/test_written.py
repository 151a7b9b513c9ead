"""Files of a service: their content, group and permissions, checked before they replace what is there."""

from __future__ import annotations

import grp
import os
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.modules import gaudi_service

GROUP = grp.getgrgid(os.getegid()).gr_name


@pytest.fixture
def write(run_module: Any, tmp_path: Path) -> Any:
    def written(check: bool = False, folders: tuple[str, ...] = (), **file: Any) -> dict[str, Any]:
        given = [{"path": str(tmp_path / "a/file"), "content": "text\n", **file}] if file is not None else []
        options = {"name": "a.service", "state": "written", "folders": [*folders]}
        return dict(run_module(gaudi_service, check=check, files=given, **options))

    return written


def test_a_file_is_written_once_with_its_permissions(write: Any, tmp_path: Path) -> None:
    file = tmp_path / "a/file"
    assert write(check=True)["changed"] and not file.exists()
    first = write(mode="0640", group=GROUP)
    assert (file.read_text(), file.stat().st_mode & 0o777) == ("text\n", 0o640)
    assert first["diff"][0]["after"] == f"# mode 0640, group {GROUP}\ntext\n" and first["done"] == []
    assert not write(mode="0640", group=GROUP)["changed"]
    file.chmod(0o644)
    again = write(mode="0640", group=GROUP)["diff"][0]
    assert (again["before"], again["after"]) == tuple(f"# mode {m}, group {GROUP}\ntext\n" for m in ("0644", "0640"))


def test_a_secret_is_not_shown_and_its_change_is(write: Any, tmp_path: Path) -> None:
    write(content="hunter1", secret=True)
    changed = write(check=True, content="hunter2", secret=True)["diff"][0]
    assert changed["before"] != changed["after"] and "hunter" not in str(changed)
    opened = write(check=True, content="hunter1", mode="0600", secret=True)["diff"][0]
    assert opened["before"] != opened["after"] and "hunter" not in str(opened)


def test_a_file_that_is_refused_replaces_nothing(write: Any, tmp_path: Path) -> None:
    file = tmp_path / "a/file"
    write()
    checker = tmp_path / "checker"
    checker.write_text(
        '#!/bin/sh\ntest -f "$1" || exit 9\necho "  FAILED: line \\"hunter2\\" of $1 is odd" >&2\nexit 1\n'
    )
    checker.chmod(0o755)
    shown = write(content="other\n", validate=f"{checker} %s")
    assert shown["msg"] == f'{checker} refuses what would be {file}: line "hunter2" of {file} is odd.'
    hidden = write(content="other\n", validate=f"{checker} %s", secret=True, complaint="It refuses it")
    assert hidden["msg"] == f"It refuses it (quoted values are hidden): line ... of {file} is odd."
    assert file.read_text() == "text\n" and [*file.parent.iterdir()] == [file]
    assert write(content="other\n", validate="/bin/true %s")["changed"] and file.read_text() == "other\n"


def test_a_group_that_a_package_will_bring_is_missing_in_a_dry_run_alone(write: Any) -> None:
    assert write(check=True, group="no-such-group")["changed"]
    assert write(group="no-such-group")["msg"].startswith("There is no group no-such-group on this host, which is to ")


def test_what_something_else_writes_is_only_opened_or_closed(write: Any, tmp_path: Path) -> None:
    file = tmp_path / "a/file"
    assert write(content=None)["msg"] == f"{file} is not there, and nothing has brought it: run the whole role again."
    file.parent.mkdir()
    file.write_text("theirs")
    file.chmod(0o600)
    assert write(content=None)["changed"] and file.read_text() == "theirs" and not write(content=None)["changed"]


def test_a_folder_is_open_to_all(write: Any, tmp_path: Path) -> None:
    folder = tmp_path / "b/c"
    assert write(folders=(str(folder),))["diff"][0]["after"].startswith("# folder, mode 0755")
    folder.chmod(0o700)
    (changed,) = write(folders=(str(folder),))["diff"]
    assert changed["before"].startswith("# folder, mode 0700") and folder.stat().st_mode & 0o777 == 0o755
    assert not write(folders=(str(folder),))["changed"]


def test_a_folder_in_the_place_of_a_file_is_named_with_what_to_do(write: Any, tmp_path: Path) -> None:
    (tmp_path / "a/file").mkdir(parents=True)
    said = write(check=True)["msg"]
    assert said.startswith(f"{tmp_path}/a/file is a folder, and a file of that name is to be there: look at what made")
