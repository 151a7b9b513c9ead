"""What commands leave in the record, and what `gaudi3-deploy audit` says of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from gaudi3_deploy import audit
from gaudi3_deploy.cli import main
from gaudi3_deploy.collection._audit import chain
from gaudi3_deploy.commands import reach
from gaudi3_deploy.errors import DeployError
from gaudi3_deploy.record import Deployment

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("GAUDI3_AUDIT", raising=False)
    variables = {"cluster_size": 8, "admin_password": "s3cret"}
    Deployment("demo", tmp_path / "demo", "aws", "up", variables=variables).save()
    return tmp_path


def run(folder: Path, *words: str, code: int = 0) -> str:
    given = {
        **os.environ,
        "GAUDI3_DEPLOYMENTS": str(folder),
        "PYTHONPATH": str(ROOT / "deploy/src"),
        "NO_COLOR": "1",
        "COLUMNS": "200",
    }
    command = [sys.executable, "-m", "gaudi3_deploy", "--terraform-dir", str(ROOT / "terraform"), "audit", *words]
    done = subprocess.run(command, env=given, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_a_command_has_a_beginning_and_an_end(folder: Path) -> None:
    with pytest.raises(DeployError), audit.recorded(folder, "demo", "up"):
        Deployment("demo", folder / "demo", "aws", "applying").save()
        raise DeployError("The cloud has no token=s3cret.")
    with audit.recorded(folder, "demo", "wait"):
        pass
    begun, ended = (json.loads(line) for line in chain.lines(str(folder / "audit.jsonl")))
    assert begun["what"] == {"by": "gaudi3-deploy", "command": "up", "deployment": "demo"}
    assert (begun["result"], ended["result"]) == ("begun", "failed")
    assert json.loads(ended["before"])["phase"] == "up" and json.loads(ended["after"])["phase"] == "applying"
    assert "s3cret" not in (folder / "audit.jsonl").read_text()


@pytest.mark.parametrize(("arguments", "lines"), [(["--check"], 0), (["--list-tags"], 0), ([], 2)])
def test_a_site_that_changes_nothing_is_not_recorded(
    folder: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], lines: int
) -> None:
    monkeypatch.setattr(reach, "made", lambda deployment: {})
    monkeypatch.setattr(reach, "prepared_site", lambda *args: 0)
    command = ["gaudi3-deploy", "--terraform-dir", str(ROOT / "terraform"), "site", "demo", *arguments]
    monkeypatch.setattr(sys, "argv", command)
    monkeypatch.setenv("GAUDI3_DEPLOYMENTS", str(folder))
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0
    record = folder / "audit.jsonl"
    assert len(record.read_text().splitlines() if record.exists() else []) == lines


def test_nothing_begins_without_a_record(folder: Path) -> None:
    (folder / "audit.jsonl").mkdir()
    with pytest.raises(DeployError, match="Nothing was done: the audit record"), audit.recorded(folder, "demo", "up"):
        raise AssertionError("it began")


def test_ansible_writes_into_the_same_record(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANSIBLE_CALLBACKS_ENABLED", "mine.own.one")
    given = audit.environment(folder, None, {})
    assert given["ANSIBLE_CALLBACKS_ENABLED"] == "mine.own.one,gaudi3.scale.audit"
    assert given["GAUDI3_AUDIT"] == str(folder / "audit.jsonl")
    assert audit.environment(folder, None, given) == given


def test_the_command_shows_judges_and_anchors(folder: Path) -> None:
    assert "cannot be read (no such file or directory)" in run(folder, code=2)
    for command in ("up", "down"):
        with audit.recorded(folder, "demo", command):
            pass
    lines = run(folder).splitlines()
    shown = [line for line in lines if not line.startswith(" ")]
    assert [line.split("  ")[3:] for line in shown[:2]] == [
        ["demo", "begun", "gaudi3-deploy up"],
        ["demo", "done", "gaudi3-deploy up"],
    ]
    assert run(folder, "--host", "n1") == "" and len(json.loads(run(folder, "--json"))["records"]) == 4
    assert run(folder, "--verify").endswith("audit.jsonl: 4 lines, each names the one before it\n")
    head = run(folder, "--head").strip()
    assert "0 lines were added" in run(folder, "--verify", "--anchor", head)

    path = folder / "audit.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:3]))
    run(folder, "--verify")
    assert f"None of the 3 lines has the hash {head[:12]}" in run(folder, "--verify", "--anchor", head, code=1)
    path.write_bytes(path.read_bytes().replace(b'"begun"', b'"done"', 1))
    assert "is broken. Line 2: expected number 2 behind " in run(folder, "--verify", code=1)
    assert json.loads(run(folder, "--verify", "--json", code=1))["problem"].startswith("Line 2: ")
    assert "--anchor goes with --verify" in run(folder, "--anchor", head, code=2)
    assert "--since is 'x'" in run(folder, "--since", "x", code=2)
