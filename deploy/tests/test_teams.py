"""What `gaudi3-deploy teams` prints, and where."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
TEAMS = """
teams:
  vision: {users: [anna, ben], quota: {cards: 16, jobs: 4}}
  speech: {users: [carla], quota: {cards: 8}, namespace: ml-speech}
"""
SCHEMAS = json.loads(Path(__file__).with_name("kueue_schemas.json").read_text())["schemas"]
ASSOC = "hall-2|root||normal|\nhall-2|speech||team-speech|team-speech\nhall-2|speech|ben|team-speech|team-speech\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "teams.yml").write_text(TEAMS)
    (tmp_path / "qos.txt").write_text("normal|0||||\nteam-speech|0|gres/gpu=8|||DenyOnLimit\n")
    return tmp_path


def run(folder: Path, *words: str, code: int = 0, given: str = "") -> tuple[list[str], str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "deploy/src"), "NO_COLOR": "1", "COLUMNS": "200"}
    command = [sys.executable, "-m", "gaudi3_deploy", "--terraform-dir", str(ROOT / "terraform"), "teams", *words]
    done = subprocess.run(
        command, env=environment, cwd=folder, input=given, capture_output=True, text=True, check=False
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout.splitlines(), done.stderr


def test_check_shows_each_team(folder: Path) -> None:
    assert run(folder, "check", "teams.yml")[0] == [
        "vision: 16 cards, 4 jobs, any number of card-hours, priority 0; anna, ben",
        "speech: 8 cards, any number of jobs, any number of card-hours, priority 0; carla",
    ]
    (folder / "wrong.yml").write_text("teams:\n  a: {users: [anna]}\n  a: {users: [ben]}\n")
    assert (
        "wrong.yml is no YAML that can be read: 'a' stands twice, in lines 2 and 3"
        in run(folder, "check", "wrong.yml", code=2)[1]
    )
    (folder / "wrong.yml").write_text("teams: {a: {user: [anna]}}")
    said = "gaudi3-deploy: wrong.yml: Team a has the unknown key 'user': did you mean users?\n"
    assert run(folder, "check", "wrong.yml", code=2) == ([], said)
    assert (
        "none.yml cannot be read (no such file or directory): give a file."
        in run(folder, "check", "none.yml", code=2)[1]
    )


def test_slurm_prints_commands_and_tells_what_it_leaves(folder: Path) -> None:
    words = ("slurm", "teams.yml", "--assoc", "-", "--qos", "qos.txt", "--cluster", "hall-2")
    commands, said = run(folder, *words, given=ASSOC)
    assert commands[0] == "sacctmgr -i add qos team-vision" and len(commands) == 8
    assert commands[-1] == "sacctmgr -i add user name=carla account=speech cluster=hall-2"
    assert said == "User ben is in the account speech and not in that team: --remove takes it out.\n"
    removed, said = run(folder, *words, "--remove", given=ASSOC)
    assert removed == [*commands, "sacctmgr -i delete user where name=ben account=speech cluster=hall-2"] and not said
    both = ("slurm", "teams.yml", "--assoc", "-", "--qos", "-", "--cluster", "hall-2")
    assert "--assoc and --qos are both '-': give a file for one of them." in run(folder, *both, code=2)[1]
    assert "Line 1 of assoc is 'x', with 1 fields instead of 5" in run(folder, *words, code=2, given="x\n")[1]


def problems(document: dict[str, Any]) -> list[str]:
    """Where Kueue's definition of the kind, v1beta2, refuses a document."""
    found = jsonschema.Draft7Validator(SCHEMAS[document["kind"]]).iter_errors(document)
    return sorted(error.json_path for error in found)


def test_kueue_prints_manifests_and_tells_what_it_leaves_out(folder: Path) -> None:
    lines, said = run(folder, "kueue", "teams.yml", "--other", "memory=800Gi", "--label", "gaudi=gaudi3")
    found = list(yaml.safe_load_all("\n".join(lines)))
    assert [each["kind"] for each in found] == [
        "ResourceFlavor", "ClusterQueue", "LocalQueue", "ClusterQueue", "LocalQueue"
    ]  # fmt: skip
    assert [problems(each) for each in found] == [[], [], [], [], []]
    assert found[0]["spec"] == {"nodeLabels": {"gaudi": "gaudi3"}}
    assert found[1]["spec"]["resourceGroups"][0]["coveredResources"] == ["habana.ai/gaudi", "memory"]
    assert said == "Team vision: a queue of Kueue has no jobs; the file's is left out.\n"
    twice = ("kueue", "teams.yml", "--other", "memory=8Gi", "--other", "memory=800Gi")
    assert "--other has memory twice: give it once." in run(folder, *twice, code=2)[1]
    assert "--other is 'memory': give NAME=VALUE." in run(folder, "kueue", "teams.yml", "--other", "memory", code=2)[1]
    queue = found[1]
    queue["spec"]["queueName"] = "x"
    queue["spec"]["resourceGroups"][0]["flavors"][0]["resources"][0]["nominalQuota"] = "many"
    assert problems(queue) == ["$.spec", "$.spec.resourceGroups[0].flavors[0].resources[0].nominalQuota"]


def test_names_that_readers_take_for_something_else_are_in_quotes(folder: Path) -> None:
    """kubectl's reader takes y for true and 1e5 for a number, which Python's does not."""
    (folder / "odd.yml").write_text('teams: {y: {users: [anna], quota: {cards: 8}, namespace: "1e5"}}')
    lines, _said = run(folder, "kueue", "odd.yml", "--label", "rack=0o17", "--label", "gaudi=gaudi3")
    assert "    rack: '0o17'" in lines and "    gaudi: gaudi3" in lines
    assert "      kubernetes.io/metadata.name: '1e5'" in lines and "  namespace: '1e5'" in lines
    (folder / "odd.yml").write_text('teams: {"y": {users: [anna], quota: {cards: 8}}}')
    assert "  namespace: 'y'" in run(folder, "kueue", "odd.yml")[0]


def test_sudoers_prints_a_drop_in(folder: Path) -> None:
    lines, _said = run(folder, "sudoers", "teams.yml", "--job", "vision-a", "--no-password")
    assert lines[-1] == "GAUDI_VISION ALL = (root) NOEXEC: NOPASSWD: GAUDI_VISION_SHOW"
    assert "The job 'b' is none of a team" in run(folder, "sudoers", "teams.yml", "--job", "b", code=2)[1]
