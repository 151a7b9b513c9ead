"""What the jobs of a node say of a hang: which of it is root's, and which is a user's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ansible_collections.gaudi3.scale.plugins.module_utils._jobs import hangs

SAID = {
    "sentence": "Rank 3 waits.",
    "kind": "late",
    "certain": True,
    "ranks": [3],
    "nodes": ["b"],
    "at": 1e9 - 100.0,
}


def job(folder: Path, name: str, status: Any, nodes: tuple[str, ...] = ("a", "b")) -> None:
    control = folder / ".control" / name
    control.mkdir(parents=True)
    (folder / name).mkdir()
    (control / "job.json").write_text(json.dumps({"specification": {"nodes": nodes}}))
    (folder / name / "status.json").write_text(json.dumps(status))


def test_hangs_of_all_jobs_are_found_with_the_nodes_of_roots_record(tmp_path: Path) -> None:
    job(tmp_path, "demo", {"state": "failed", "hang": {**SAID, "members": ["c"]}, "updated_at": 1e9})
    job(tmp_path, "old", {"state": "failed", "hang": {**SAID, "at": 1e9 - hangs.LASTS - 1}, "updated_at": 1e9})
    job(tmp_path, "later", {"state": "running", "hang": {**SAID, "at": 2e9}, "updated_at": 1e9}, ("a", "c"))
    job(tmp_path, "plain", {"state": "failed", "hang": None})
    job(tmp_path, "odd", {"state": "failed", "hang": {**SAID, "nodes": "b"}})
    first, second = hangs.found_in(str(tmp_path), 1e9)
    assert (first.job, first.at, first.members) == ("later", 1e9, ("a", "c")), "no hang is of the future"
    assert second.as_dict() == {
        "job": "demo", "state": "failed", "sentence": "Rank 3 waits.", "kind": "late", "certain": True,
        "nodes": ["b"], "at": 1e9 - 100.0, "members": ["a", "b"],
    }  # fmt: skip
    assert hangs.found_in(str(tmp_path / "nowhere"), 1e9) == []


def test_a_link_in_place_of_a_status_is_not_followed(tmp_path: Path) -> None:
    job(tmp_path, "demo", {"state": "failed", "hang": SAID})
    (tmp_path / ".elsewhere").mkdir()
    (tmp_path / "demo/status.json").rename(tmp_path / ".elsewhere/status.json")
    (tmp_path / "demo/status.json").symlink_to(tmp_path / ".elsewhere/status.json")
    assert hangs.found_in(str(tmp_path), 1e9) == []
