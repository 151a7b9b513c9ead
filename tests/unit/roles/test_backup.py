"""The program of role backup: it brings what it imports, and backs a machine up with the real restic."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from ansible_collections.gaudi3.scale.plugins.module_utils._plan import backup
from ansible_collections.gaudi3.scale.plugins.modules import gaudi_restore

from ..plugins.modules.conftest import run_module as run_module
from .programs import sources_of

ROOT = Path(__file__).resolve().parents[3]
UTILS = ROOT / "plugins/module_utils"
PROGRAM = ROOT / "roles/backup/files/gaudi_backup.py"


def test_every_import_of_the_program_is_brought_along() -> None:
    assert list(backup.PROGRAM) == sources_of(PROGRAM)


def test_the_timer_backs_up_forgets_and_checks(tmp_path: Path, run_module: Any) -> None:
    """As the role installs it, on a machine that is a folder."""
    assert shutil.which("restic"), "restic is missing: apt-get install restic"
    program, machine, metrics = tmp_path / "program", tmp_path / "machine", tmp_path / "metrics"
    for path in backup.PROGRAM:
        target = program / "engine" / path
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(UTILS / path, target)
    (program / "engine/__init__.py").touch()
    shutil.copy(PROGRAM, program)
    metrics.mkdir()
    fence = machine / "var/lib/gaudi3-scale/health/fence.json"
    fence.parent.mkdir(parents=True)
    settings = {
        "repository": str(tmp_path / "store"), "password": "of-no-other-use", "environment": {}, "ssh_key": "",
        "ssh_known_hosts": "", "host": "gaudi-1", "cluster": "",
        "kinds": ["node"], "paths": [], "keep": {"last": 1}, "check_share": "100%", "metrics": str(metrics),
    }  # fmt: skip
    (tmp_path / "settings.json").write_text(json.dumps(settings))

    def run() -> subprocess.CompletedProcess[str]:
        own = ["--settings", tmp_path / "settings.json", "--folder", tmp_path / "work", "--root", machine]
        return subprocess.run(
            [sys.executable, "-s", program / "gaudi_backup.py", *own], capture_output=True, text=True, check=False,
            env={**os.environ, "PYTHONPATH": ""},
        )  # fmt: skip

    for reason in ("one", "two"):
        fence.write_text(f'{{"reason": "{reason}"}}\n')
        done = run()
        assert done.returncode == 0, done.stderr
        assert done.stdout.endswith(" (new): 18 bytes of fence\n")
    status = json.loads((tmp_path / "work/status.json").read_text())
    page = (metrics / "gaudi-backup.prom").read_text()
    assert f"\ngaudi_backup_finished_timestamp_seconds {status['finished']}\n" in page
    assert page.endswith("\ngaudi_backup_bytes 18\n")
    listed = subprocess.run(
        ["restic", "snapshots", "--json"], capture_output=True, text=True, check=True,
        env={**os.environ, "RESTIC_REPOSITORY": settings["repository"], "RESTIC_PASSWORD": settings["password"]},
    )  # fmt: skip
    assert [each["short_id"] for each in json.loads(listed.stdout)] == [status["snapshot"]], "one is kept"

    shutil.rmtree(machine)
    options = {name: settings[name] for name in ("repository", "password", "host", "kinds")}
    restored = run_module(gaudi_restore, **options, root=str(machine), working_folder=str(tmp_path / "work"))
    assert restored["items"] == ["fence"] and fence.read_text() == '{"reason": "two"}\n'

    # A repository that lost data is no backup: the unit fails, and what is told of the last good one stays.
    for pack in (tmp_path / "store/data").rglob("*"):
        if pack.is_file():
            pack.chmod(0o600)
            pack.write_bytes(b"\0" * pack.stat().st_size)
    shutil.rmtree(tmp_path / "work/cache")
    failed = run()
    assert failed.returncode == 1 and "restic" in failed.stderr and "of-no-other-use" not in failed.stderr
    assert (metrics / "gaudi-backup.prom").read_text() == page
