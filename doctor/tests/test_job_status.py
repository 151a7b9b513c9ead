"""The one reader of a job's status.json; what it refuses is tested with the trainer, which writes that file."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from gaudi3_doctor.job_status import StatusError, parse, read


def test_numbers_of_either_kind_and_unknown_keys_are_read() -> None:
    content = {"loss": 2, "started_at": 1, "step": None, "state": "spare", "of_a_later_version": [1]}
    assert parse(json.dumps(content).encode(), "it") == content


def test_only_a_regular_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "whole").write_text("{}")
    (tmp_path / "link").symlink_to("whole")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    for name in ("link", "folder", "pipe"):
        with pytest.raises(StatusError, match=f"{name} is (a link, and )?no regular file: delete it"):
            read(tmp_path / name)
