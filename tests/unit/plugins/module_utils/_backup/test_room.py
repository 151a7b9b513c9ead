"""A restore that would fill a disk is refused before anything is fetched."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._backup import room
from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal

MIB = 1 << 20


def test_all_that_comes_onto_one_disk_counts_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    free = SimpleNamespace(f_frsize=4096, f_bavail=10 * MIB // 4096, f_bfree=10 * MIB // 4096)
    monkeypatch.setattr(os, "statvfs", lambda _path: free)
    work, item, other = (str(tmp_path / name) for name in ("work/not/there", "item", "other"))
    room.check_room([(work, 4 * MIB), (item, 3 * MIB), (other, 3 * MIB)])
    with pytest.raises(Refusal) as refused:
        room.check_room([(work, 4 * MIB), (item, 3 * MIB), (other, 3 * MIB + 1)])
    assert str(refused.value) == (
        f"the disk of {work} has 10 MiB free, and a restore needs 11 there for what is fetched and what is put in its "
        "place: make room, or give a working_folder on another disk."
    )
    assert not (tmp_path / "work").exists()
    # What lies on another disk does not count.
    room.check_room([(work, 10 * MIB), ("/proc/none", 10 * MIB)])
