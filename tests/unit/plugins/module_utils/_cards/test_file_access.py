"""What a job's user may open, told from owner, group and mode as the kernel tells it."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._cards import file_access
from ansible_collections.gaudi3.scale.plugins.module_utils._cards.file_access import (
    DeviceFile,
    access,
    first_closed,
    owning_groups,
    permits,
    script_access,
    unreadable,
)


def file(mode: str, group: str = "render", gid: int = 992, uid: int = 0, listed: bool = False) -> DeviceFile:
    return DeviceFile("/dev/accel/accel0", "root", group, mode, uid, gid, listed)


@pytest.mark.parametrize(
    ("mode", "uid", "gids", "wanted", "granted"),
    [
        (0o660, 1000, {992}, 6, True),
        (0o660, 1000, {4}, 6, False),
        (0o640, 1000, {992}, 6, False),
        (0o606, 1000, {992}, 6, False),  # the group decides, though others may
        (0o066, 500, {992}, 6, False),  # and the owner before it
        (0o666, 1000, set(), 6, True),
        (0o000, 0, set(), 6, True),
        (0o711, 1000, set(), 1, True),
        (0o750, -1, set(), 1, False),
    ],
)
def test_the_first_of_owner_group_and_others_decides(
    mode: int, uid: int, gids: set[int], wanted: int, granted: bool
) -> None:
    assert permits(mode, (500, 992), uid, gids, wanted) is granted


@pytest.mark.parametrize(
    ("files", "groups"),
    [
        ([file("0660"), file("0666", "video", 44)], ["render"]),
        ([file("0660", "root", 0)], []),
        ([file("0600"), file("0666")], []),
        ([file("0660", "habana", 1), file("0664", "render"), file("0660", "habana", 1)], ["habana", "render"]),
    ],
)
def test_groups_that_own_closed_files_are_found_and_never_roots(files: list[DeviceFile], groups: list[str]) -> None:
    assert owning_groups(files) == groups


def test_a_user_gets_the_owning_groups_unless_others_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def known(name: str) -> os.stat_result | object:
        if name not in ("render", "video"):
            raise KeyError(name)
        return type("Group", (), {"gr_gid": {"render": 992, "video": 44}[name]})

    monkeypatch.setattr(file_access.grp, "getgrnam", known)
    cards = [file("0660"), file("0666", "root", 0), file("0660", "root", 0, listed=True)]
    assert access(cards, "who-is-not-there-yet", None) == file_access.Access(["render"], [], [])
    assert access(cards, "who-is-not-there-yet", ["video"]).closed == [cards[0]]
    assert access(cards, "who-is-not-there-yet", []).closed == [cards[0]]
    assert access(cards, "who-is-not-there-yet", ["none", "992"]) == file_access.Access(["992", "none"], ["none"], [])
    assert access(cards, "root", []).closed == []
    roots = [file("0660", "root", 0)]
    assert access(roots, "who-is-not-there-yet", None).closed == roots
    assert roots[0].as_dict() == {"path": "/dev/accel/accel0", "owner": "root", "group": "root", "mode": "0660"}


def test_the_files_of_cards_and_ports_are_looked_at(tmp_path: Path) -> None:
    for path in ("accel/accel0", "accel/accel_controlD0", "infiniband/uverbs3", "infiniband/rdma_cm", "other"):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).touch(mode=0o600)
    names = [Path(found.path).name for found in file_access.device_files(str(tmp_path))]
    assert names == ["accel0", "accel_controlD0", "uverbs3"]
    assert file_access.device_files(str(tmp_path / "bare")) == []


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that everybody may enter, unlike pytest's own."""
    folder = Path(tempfile.mkdtemp(prefix="gaudi3-reach-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.mark.parametrize("mode", [0o750, 0o700, 0o744])
def test_a_closed_home_is_named(mode: int, place: Path) -> None:
    venv = place / "home/user/venv/bin"
    venv.mkdir(parents=True)
    (venv / "python").symlink_to("/bin/sh")
    assert first_closed(str(venv / "python"), -1, ()) is None
    (place / "home/user").chmod(mode)
    assert first_closed(str(venv / "python"), -1, ()) == str(place / "home/user")
    assert first_closed(str(venv / "python"), 0, ()) is None
    # Through a link into it, too.
    (place / "link").symlink_to(venv)
    assert first_closed(str(place / "link"), -1, ()) in (str(place / "link"), str(place / "home/user"))
    assert first_closed(str(place / "nothing/there"), -1, ()) is None


@pytest.mark.parametrize("links", [1, 3])
def test_a_closed_folder_between_two_links_is_named(links: int, place: Path) -> None:
    """The kernel walks every link's own way, and neither the name nor what it ends at shows that folder."""
    home = place / "home"
    home.mkdir()
    (home / "link-0").symlink_to("/bin/sh")
    for number in range(1, links + 1):
        (place / f"link-{number}").symlink_to("home/link-0" if number == 1 else f"link-{number - 1}")
    name = str(place / f"link-{links}")
    assert first_closed(name, -1, ()) is None
    home.chmod(0o750)
    assert first_closed(name, -1, ()) == str(home)


def test_the_end_of_a_way_grants_what_is_asked_for(place: Path) -> None:
    (place / "python").touch(mode=0o644)
    assert first_closed(str(place / "python"), -1, ()) is None
    assert first_closed(str(place / "python"), -1, (), last=0o1) == str(place / "python")
    (place / "python").chmod(0o711)
    assert first_closed(str(place / "python"), -1, (), last=0o1) is None


def test_a_file_that_cannot_be_read_is_named(place: Path) -> None:
    (place / "python").touch(mode=0o711)
    (place / "packages").mkdir(mode=0o711)
    assert first_closed(str(place / "python"), -1, ()) == str(place / "python")
    assert first_closed(str(place / "packages"), -1, ()) == str(place / "packages")


def test_a_script_is_to_be_there_and_readable_and_a_program_executable(tmp_path: Path) -> None:
    mine = Path(tempfile.mkdtemp())  # as pytest's own folders are open to their owner only
    try:
        mine.chmod(0o755)
        for name in ("train.py", "train.sh"):
            (mine / name).touch(mode=0o644)
        user = "nobody-of-this-name"
        assert script_access(str(mine / "none.py"), user) == {
            "path": str(mine / "none.py"),
            "there": False,
            "closed": None,
        }
        assert script_access(str(mine), user)["there"] is False, "a folder is no script"
        assert script_access(str(mine / "train.py"), user)["closed"] is None
        assert script_access(str(mine / "train.sh"), user)["closed"] == str(mine / "train.sh")
        (mine / "train.sh").chmod(0o755)
        assert script_access(str(mine / "train.sh"), user)["closed"] is None
        (mine / "train.py").chmod(0o600)
        assert script_access(str(mine / "train.py"), user)["closed"] == str(mine / "train.py")
        paths = [str(mine / name) for name in ("train.sh", "train.py", "none")] + [str(mine)]
        assert unreadable(paths, user) == [
            {"path": str(mine / "train.py"), "closed": str(mine / "train.py")},
            {"path": str(mine / "none"), "closed": None},
        ]
        mine.chmod(0o711)
        assert unreadable([str(mine)], user) == [{"path": str(mine), "closed": str(mine)}]
        mine.chmod(0o700)
        assert script_access(str(mine / "train.sh"), user)["closed"] == str(mine)
    finally:
        shutil.rmtree(mine)
