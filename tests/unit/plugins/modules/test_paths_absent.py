"""paths_absent: what goes, what a link leads to, and what is never removed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.modules import paths_absent


def test_files_links_and_folders_go(run_module: Any, tmp_path: Path) -> None:
    (tmp_path / "folder/inner").mkdir(parents=True)
    (tmp_path / "target").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "target")
    (tmp_path / "file").touch()
    paths = [str(tmp_path / name) for name in ("folder", "link", "file", "missing")]
    assert run_module(paths_absent, check=True, paths=paths)["removed"] == paths[:3] and (tmp_path / "file").exists()
    assert run_module(paths_absent, paths=paths)["removed"] == paths[:3]
    assert [path.name for path in tmp_path.iterdir()] == ["target"]
    assert run_module(paths_absent, paths=paths)["changed"] is False


@pytest.mark.parametrize("path", ["/opt", "/", "opt/venv", "/opt/..", "//venv"])
def test_no_folder_of_the_system_is_removed(run_module: Any, path: str) -> None:
    assert run_module(paths_absent, check=True, paths=[path])["msg"] == (
        f'"{path}" is not removed: give an absolute path of two names or more, such as /opt/gaudi3-scale.'
    )
