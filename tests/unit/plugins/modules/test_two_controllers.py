"""Two controllers start jobs of one name on a node at once: one of them does, and the other is told."""

from __future__ import annotations

import json
import os
import pwd
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

COLLECTIONS = str(Path(__file__).resolve().parents[4] / "collections")
MODULE = """
import json, sys
from ansible.module_utils.testing import patch_module_args
from ansible_collections.gaudi3.scale.plugins.modules import gaudi_train
with patch_module_args(json.loads(sys.argv[1])):
    gaudi_train.main()
"""
# A stand-in for systemctl, which takes its time to answer, and keeps the unit's text as it was at the start.
SYSTEMCTL = """#!/bin/sh
case "$1" in
show)
    sleep 0.3
    if [ -e {folder}/up ]; then echo ActiveState=active; else echo ActiveState=inactive; fi
    echo Result=success
    echo ExecMainStatus=0 ;;
start)
    cp {folder}/units/gaudi-train-demo.service {folder}/up ;;
esac
"""


def begin(folder: Path, steps: int) -> subprocess.Popen[str]:
    options: dict[str, Any] = {
        "name": "demo",
        "state": "started",
        "config": {"train": {"max_steps": steps}},
        "nodes": ["gaudi-1"],
        "head_address": "10.0.0.1",
        "user": pwd.getpwuid(os.getuid()).pw_name,
        "venv": str(folder / "venv"),
        "jobs_dir": str(folder / "jobs"),
        "unit_dir": str(folder / "units"),
        "systemctl_executable": str(folder / "systemctl"),
        "journalctl_executable": "/bin/true",
    }
    return subprocess.Popen(
        [sys.executable, "-c", MODULE, json.dumps(options)],
        stdout=-1,
        stderr=-1,
        text=True,
        env={**os.environ, "PYTHONPATH": COLLECTIONS},
    )


@pytest.mark.parametrize("apart", [0.0, 0.15])
def test_one_starts_its_job_and_the_other_is_refused(apart: float, tmp_path: Path) -> None:
    (tmp_path / "units").mkdir()
    (tmp_path / "venv/bin").mkdir(parents=True)
    for name in ("python", "gaudi3-train"):
        (tmp_path / "venv/bin" / name).touch(mode=0o755)
    (tmp_path / "systemctl").write_text(SYSTEMCTL.format(folder=tmp_path))
    (tmp_path / "systemctl").chmod(0o755)
    running = [begin(tmp_path, 20)]
    time.sleep(apart)
    running.append(begin(tmp_path, 30))
    printed = [process.communicate(timeout=60) for process in running]
    assert [errors for _, errors in printed if "Traceback" in errors] == []
    results = [json.loads(text) for text, _ in printed]
    (won,) = [each for each in results if not each.get("failed")]
    (refused,) = [each for each in results if each.get("failed")]
    assert won["changed"] and won["job"]["state"] == "running"
    assert refused["msg"].startswith("Job demo is already running on this node under another specification")
    record = json.loads((tmp_path / "jobs/.control/demo/job.json").read_text())
    assert record["spec_sha256"] == won["job"]["spec_sha256"]
    assert (tmp_path / "up").read_text() == (tmp_path / "units/gaudi-train-demo.service").read_text()
    assert sorted(each.name for each in (tmp_path / "jobs").iterdir()) == [".control", "demo"]
