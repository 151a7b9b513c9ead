"""A restore as root into a folder that a service owns: what the service puts in the way is never followed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils import _files
from ansible_collections.gaudi3.scale.plugins.module_utils._backup import place, restoring, tree
from ansible_collections.gaudi3.scale.plugins.module_utils._backup.kinds import TREE, Item
from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal

STAMP = "20261129T000000Z"


@pytest.fixture(name="fetched")
def a_backup(tmp_path: Path) -> Path:
    folder = tmp_path / "fetched"
    (folder / "inner").mkdir(parents=True)
    (folder / "inner/file").write_text("mine")
    return folder


@pytest.fixture(name="victim")
def another_folder(tmp_path: Path) -> Iterator[Path]:
    """A folder that nobody may write to through a link."""
    folder = tmp_path / "victim"
    (folder / "inner").mkdir(parents=True)
    folder.chmod(0o711)
    yield folder
    assert [each.name for each in folder.iterdir()] == ["inner"] and not any((folder / "inner").iterdir())
    assert folder.stat().st_mode & 0o777 == 0o711


def put(fetched: Path, root: Path) -> None:
    item = Item("data", "/srv/service/data", TREE)
    restoring._put(item, tree.scan(str(fetched), "data"), str(fetched), str(root), "/nowhere", STAMP)


def test_a_draft_that_is_exchanged_for_a_link_is_not_followed(
    fetched: Path, victim: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = tmp_path / "root/srv/service"
    service.mkdir(parents=True)

    def exchanged(source: str, target: str, entries: list[restoring.Entry]) -> None:
        draft = service / f".data{restoring.DRAFT}"
        draft.rename(service / "stolen")
        draft.symlink_to(victim)
        tree.put(source, target, entries)

    monkeypatch.setattr(restoring, "put", exchanged)
    put(fetched, tmp_path / "root")
    assert (service / "data/inner/file").read_text() == "mine"
    assert sorted(each.name for each in service.iterdir()) == ["data", "stolen"]


def test_a_folder_that_is_exchanged_for_a_link_is_not_followed(
    fetched: Path, victim: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = tmp_path / "root/srv/service"
    service.mkdir(parents=True)

    def exchanged(source: str, target: str, entries: list[restoring.Entry]) -> None:
        service.rename(service.with_name("away"))
        service.symlink_to(victim)
        tree.put(source, target, entries)

    monkeypatch.setattr(restoring, "put", exchanged)
    put(fetched, tmp_path / "root")
    assert (service.with_name("away") / "data/inner/file").read_text() == "mine"


def test_a_link_in_the_place_of_the_draft_is_not_followed(fetched: Path, victim: Path, tmp_path: Path) -> None:
    service = tmp_path / "root/srv/service"
    service.mkdir(parents=True)
    (service / f".data{restoring.DRAFT}").symlink_to(victim)
    put(fetched, tmp_path / "root")
    assert (service / "data/inner/file").read_text() == "mine" and [each.name for each in service.iterdir()] == ["data"]


def test_a_link_of_the_service_is_refused_and_one_of_root_is_followed(victim: Path, tmp_path: Path) -> None:
    link = tmp_path / "srv/link"
    link.parent.mkdir()
    link.symlink_to(victim)
    with place.opened(str(link)) as folder:
        assert os.path.samefile(folder, victim)
    link.parent.chmod(0o777)
    said = r"link on the way to .*/srv/link is a link that another user than root may have put there: replace it by"
    with pytest.raises(Refusal, match=said), place.opened(str(link)):
        pass
    with pytest.raises(Refusal, match=said):
        place.check(str(link))
    place.check(str(tmp_path / "not/there"))
    assert not (tmp_path / "not").exists()


def test_folders_on_the_way_are_made_and_errors_have_their_paths(tmp_path: Path) -> None:
    where = tmp_path / "a/b"
    with pytest.raises(FileNotFoundError) as caught, place.opened(str(where)) as folder:
        os.unlink(f"{folder}/none")
    assert caught.value.filename == f"{where}/none" and where.is_dir()


def test_a_single_file_is_on_the_disk_as_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "database").write_text("a")
    synced: list[str] = []
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append(os.readlink(f"/proc/self/fd/{handle}")))
    _files.sync_tree(str(tmp_path / "database"))
    assert synced == [str(tmp_path / "database"), str(tmp_path)]
