"""The role that backs machines up, and the playbook that restores one: what they refuse, write and put back."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from .cluster import Cluster

PASSWORD = "of-no-other-use"


@pytest.fixture
def given(tmp_path: Path) -> dict[str, Any]:
    return {"backup_repository": str(tmp_path / "store"), "backup_password": PASSWORD}


def test_the_timer_is_installed_once_and_its_password_is_shown_to_nobody(
    cluster: Cluster, given: dict[str, Any]
) -> None:
    cluster.gaudi(1, cards=1)
    host = cluster["gaudi-1"]
    host.give(packages={**json.loads((host.folder / "packages.json").read_text()), "restic": "0.14.0-1+b5"})
    refused = cluster.role("backup", **{**given, "backup_password": ""})
    assert refused.messages() == [
        "backup_password is empty: give one out of your vault, and keep it where the backups are not."
    ]
    predicted = cluster.role("backup", "--check", "--diff", **given)
    assert not host.path("/etc/gaudi3-backup").exists()
    done = cluster.role("backup", "--diff", screen=True, **given)
    assert (done.returncode, done.changed()) == (0, predicted.changed()), done.messages()
    settings = host.path("/etc/gaudi3-backup/settings.json")
    assert host.mode("/etc/gaudi3-backup/settings.json") == 0o600
    told = json.loads(settings.read_text())
    assert (told["host"], told["kinds"], told["password"]) == ("gaudi-1", ["node"], PASSWORD)
    assert PASSWORD not in cluster.screen
    assert any(call.startswith("systemctl ") and call.endswith(" gaudi-backup.timer") for call in host.calls)
    again = cluster.role("backup", **given)
    assert (again.returncode, again.changed()) == (0, set())
    early = cluster.play("restore.yml", gaudi_restore_host="gaudi-1", **given)
    assert early.messages() == ["restic is not on this machine: install the package restic."]
    assert [call for call in host.calls if " stop " in call] == [], "services run on where nothing is restored"


def test_a_controller_that_was_lost_has_every_file_back(
    cluster: Cluster, given: dict[str, Any], tmp_path: Path
) -> None:
    cluster.gaudi(1, cards=1)
    cluster.add("monitor-1", "monitoring")
    given["gaudi_controller_repository"] = str(tmp_path / "controller")
    cluster.variables["gaudi-1"]["gaudi_cluster"] = "hall-1"
    home, secrets, health = cluster.folder / "home", tmp_path / "secrets", tmp_path / "health"
    pages = tmp_path / "textfile"
    pages.mkdir()
    files = {
        home / ".local/state/gaudi3-deploy/demo/deployment.json": (0o600, '{"name": "demo"}\n'),
        home / ".local/state/gaudi3-deploy/audit.jsonl": (0o600, '{"what": "upgrade"}\n'),
        secrets / "prometheus_password": (0o600, "not the real one\n"),
        secrets / "ca/key.pem": (0o400, "nor is this\n"),
        # Passports and reports of nodes, and what healing knows of them.
        health / "gaudi-1.passport.json": (0o644, '{"cards": {"0": {"serial": "AM1"}}}\n'),
        health / "gaudi-1.report.json": (0o644, '{"verdicts": []}\n'),
        health / "fleet.json": (0o644, '{"nodes": {"gaudi-2": {"state": "drained", "spare": "gaudi-3"}}}\n'),
    }
    for path, (mode, text) in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(mode)
    secrets.chmod(0o700)
    places = {"gaudi_secrets_dir": str(secrets), "health_directory": str(health)}
    more = {**given, **places, "node_exporter_textfile_directory": str(pages)}
    early = int(time.time())
    done = cluster.play("backup.yml", "--skip-tags", "backup", **more)
    assert done.returncode == 0, done.messages()
    made = done.result("localhost", "Back up what this machine knows of the cluster")
    assert (made["items"], made["missing"]) == (["deployments", "health", "secrets"], [])
    restic = ["restic", "--repo", given["gaudi_controller_repository"], "snapshots", "--json"]
    kept = subprocess.run(
        restic, env={**os.environ, "RESTIC_PASSWORD": PASSWORD}, capture_output=True, text=True, check=True
    )
    assert ["cluster-hall-1" in each["tags"] for each in json.loads(kept.stdout)] == [True]
    # It has no exporter of its own: a monitoring host says how old its backup is.
    page = (pages / "gaudi-backup-controller.prom").read_text().splitlines()
    name, _, when = page[-1].partition(" ")
    assert (name, len(page)) == ("gaudi_backup_controller_finished_timestamp_seconds", 3)
    assert early <= int(when) <= time.time()
    unchanged = cluster.play("backup.yml", "--skip-tags", "backup", **more)
    assert (unchanged.returncode, unchanged.changed()) == (0, set())

    shutil.rmtree(secrets)
    shutil.rmtree(health)
    shutil.rmtree(home / ".local/state")
    predicted = cluster.play("restore.yml", "--check", gaudi_restore_host="controller", **more)
    assert not secrets.exists()
    back = cluster.play("restore.yml", gaudi_restore_host="controller", **more)
    assert (back.returncode, back.changed()) == (0, predicted.changed()), back.messages()
    assert {path: (path.stat().st_mode & 0o777, path.read_text()) for path in files} == files
    top = (secrets, health, home / ".local/state/gaudi3-deploy")
    assert {path for each in top for path in each.rglob("*") if path.is_file()} == {*files}
    assert secrets.stat().st_mode & 0o777 == 0o700
    again = cluster.play("restore.yml", gaudi_restore_host="controller", **more)
    assert (again.returncode, again.changed()) == (0, set())
    other = cluster.play("restore.yml", gaudi_restore_host="gaudi-9", **more)
    assert other.messages() == [
        'gaudi_restore_host is "gaudi-9": name the one machine that is restored, as in -e '
        "gaudi_restore_host=monitor-1, or controller for this one."
    ]
