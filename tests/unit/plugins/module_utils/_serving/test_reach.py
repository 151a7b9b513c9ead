"""A model's folder hands on what its owner may read, and nothing else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal
from ansible_collections.gaudi3.scale.plugins.module_utils._serving import reach

OWNER = 54321
"""Of the folders; the files of root are somebody else's."""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder of a user's, and a secret of root's beside it."""
    (tmp_path / "secret").write_text("s3cret")
    (tmp_path / "secret").chmod(0o600)
    (tmp_path / "blob").write_text("{}")
    (tmp_path / "blob").chmod(0o600)
    os.chown(tmp_path / "blob", OWNER, -1)
    (tmp_path / "model").mkdir()
    os.chown(tmp_path / "model", OWNER, -1)
    return tmp_path / "model"


@pytest.mark.skipif(os.geteuid() != 0, reason="gives files to another user")
def test_a_link_to_a_file_of_somebody_else_is_refused(place: Path) -> None:
    (place / "own").symlink_to("../blob")
    (place / "template").symlink_to("../secret")
    with reach.opened(str(place), "own") as handle:
        assert os.read(handle, 9) == b"{}"
    said = "model/template leads to a file of another user that is not open to all"
    with pytest.raises(Refusal, match=said), reach.opened(str(place), "template"):
        pass
    (place.parent / "secret").chmod(0o644)
    with reach.opened(str(place), "template") as handle:
        assert os.read(handle, 9) == b"s3cret"
    # root's own folders may lead anywhere.
    (place.parent / "secret").chmod(0o600)
    os.chown(place, 0, -1)
    with reach.opened(str(place), "template"):
        pass


def test_a_pipe_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    said = "pipe is no file: export the model again"
    with pytest.raises(Refusal, match=said), reach.opened(str(tmp_path), "pipe"):
        pass
