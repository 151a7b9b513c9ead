"""Sites of several releases, side by side."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from website import versions


def test_each_version_knows_all_of_them(tmp_path: Path) -> None:
    for name in ("0.9.0", "0.10.0", "0.10.0-rc1", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "index.html").touch()
    (tmp_path / "1.0.0").mkdir()
    assert versions.write(tmp_path) == ["0.10.0", "0.10.0-rc1", "0.9.0"]
    assert json.loads((tmp_path / "0.9.0/versions.json").read_text()) == ["0.10.0", "0.10.0-rc1", "0.9.0"]
    assert "url=0.10.0/index.html" in (tmp_path / "index.html").read_text()
    assert not (tmp_path / "other/versions.json").exists()


def test_a_folder_without_a_version_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["versions", str(tmp_path)])
    assert versions.main() == 2
    assert "Give the folder" in capsys.readouterr().err
