"""Which installed packages have lost files, and that installations are marked until they are on the disk."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils import _installed
from ansible_collections.gaudi3.scale.plugins.module_utils._files import write_file
from ansible_collections.gaudi3.scale.plugins.module_utils._installed import alone, forget, installing, torn, unfinished
from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal
from tests.stand_in_pytorch import wheel


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    """A folder with My_Package 1.0 and rich 15.0.0."""
    for name, version in (("My_Package", "1.0"), ("rich", "15.0.0")):
        with zipfile.ZipFile(wheel(tmp_path / "wheels", name, version)) as archive:
            archive.extractall(tmp_path / "packages")
    return tmp_path / "packages"


def swap(path: Path) -> None:
    path.write_text(path.read_text().swapcase())


@pytest.mark.parametrize(
    ("name", "harm"),
    [
        ("rich/__init__.py", lambda path: path.write_text("")),
        ("rich/__init__.py", Path.unlink),
        ("rich-15.0.0.dist-info/METADATA", lambda path: path.write_text("")),
        ("rich-15.0.0.dist-info/RECORD", lambda path: path.write_text("")),
        ("rich-15.0.0.dist-info/RECORD", lambda path: path.write_bytes(b"\xff\0")),
        ("rich-15.0.0.dist-info/RECORD", Path.unlink),
    ],
)
def test_a_package_that_lost_a_file_is_torn(packages: Path, name: str, harm: Callable[[Path], None]) -> None:
    assert torn([str(packages), str(packages / "missing")]) == {}
    harm(packages / name)
    assert torn([str(packages)]) == {"rich": {name}}
    forget([str(packages)], {"rich"})
    assert sorted(path.name for path in packages.glob("*.dist-info")) == ["My_Package-1.0.dist-info"]


def test_other_content_of_the_same_size_counts_where_the_digest_is_asked_for(packages: Path) -> None:
    swap(packages / "My_Package/__init__.py")
    assert torn([str(packages)]) == torn([str(packages)], {"rich"}) == {}
    assert torn([str(packages)], {"my-package"}) == {"my-package": {"My_Package/__init__.py"}}


def test_an_installation_is_marked_until_all_of_it_is_on_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = str(tmp_path)
    synced: list[set[str]] = []
    monkeypatch.setattr(_installed, "sync_tree", lambda top: synced.append(unfinished(top)))
    with pytest.raises(KeyError), installing(folder, ["rich"]):
        assert unfinished(folder) == {"rich"}
        raise KeyError
    # The next one takes it over.
    with installing(folder, ["attrs"]):
        write_file(str(tmp_path / "new"), "")
    assert synced == [{"attrs", "rich"}] and unfinished(folder) == set()


def test_one_installation_at_a_time(tmp_path: Path) -> None:
    root = tmp_path / "root"
    with (
        alone(str(root)),
        pytest.raises(Refusal, match=r"^Another run is installing below .*/root on this node: wait"),
        alone(str(root)),
    ):
        pass
    with alone(str(root)):
        pass
