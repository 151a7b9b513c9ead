"""The drop-in for sudo: what a team may call, and all that it may not."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal
from ansible_collections.gaudi3.scale.plugins.module_utils._teams.declared import Quota, TeamEntry
from ansible_collections.gaudi3.scale.plugins.module_utils._teams.sudo import drop_in

TEAMS = (
    TeamEntry("vision", ("anna", "ben"), Quota(), 0, "vision"),
    TeamEntry("speech", ("carla",), Quota(), 0, "speech"),
)


def _allowed(text: str, team: str, arguments: str) -> bool:
    """As sudoers(5) has it: arguments between ^ and $ are a regular expression for all of them, joined by spaces."""
    rules = re.findall(rf"^Cmnd_Alias GAUDI_{team.upper()}_\w+ = /usr/bin/systemctl (\^.*\$)$", text, re.M)
    assert len(rules) == 2
    return any(re.fullmatch(rule[1:-1], arguments) for rule in rules)


def test_a_team_has_the_units_of_its_jobs() -> None:
    text = drop_in(TEAMS)
    for verb in ("start", "stop", "--no-pager status"):
        assert _allowed(text, "vision", f"{verb} gaudi-train-vision-llama_7-b.service")
        assert not _allowed(text, "speech", f"{verb} gaudi-train-vision-llama_7-b.service")
    assert "\nUser_Alias GAUDI_VISION = anna, ben\n" in text
    assert "\nGAUDI_VISION ALL = (root) GAUDI_VISION_CHANGE\n" in text
    assert "\nGAUDI_VISION ALL = (root) NOEXEC: GAUDI_VISION_SHOW\n" in text


def test_a_team_with_nodes_has_rights_there_alone() -> None:
    text = drop_in((TEAMS[0]._replace(nodes=("gaudi-1", "gaudi-2")), TEAMS[1]))
    assert "\nGAUDI_VISION gaudi-1, gaudi-2 = (root) GAUDI_VISION_CHANGE\n" in text
    assert "\nGAUDI_VISION gaudi-1, gaudi-2 = (root) NOEXEC: GAUDI_VISION_SHOW\n" in text
    assert "\nGAUDI_SPEECH ALL = (root) GAUDI_SPEECH_CHANGE\n" in text


@pytest.mark.parametrize(
    "arguments",
    [
        "",
        "stop",
        "stop gaudi-train-vision-a",
        "stop gaudi-train-vision-.service",
        "stop gaudi-train-visionary-a.service",
        "stop gaudi-train-vision.service",
        "stop gaudi-train-vision-*.service",
        "stop gaudi-train-vision-a@b.service",
        "stop gaudi-train-vision-a.service sshd.service",
        "stop sshd.service gaudi-train-vision-a.service",
        "stop gaudi-train-vision-a.service\n",
        "stop gaudi-train-vision-a.service --force",
        "--root=/tmp stop gaudi-train-vision-a.service",
        "edit gaudi-train-vision-a.service",
        "restart gaudi-train-vision-a.service",
        "status gaudi-train-vision-a.service",
        "stop gaudi-train-vision-../a.service",
        "stop gaudi-train-speech-a.service",
        "stop gaudi-boot-vision-a.service",
    ],
)
def test_it_has_nothing_else(arguments: str) -> None:
    assert not _allowed(drop_in(TEAMS), "vision", arguments)


def test_named_jobs_are_exact() -> None:
    text = drop_in(TEAMS, ["vision-a"], password=False)
    unit = "gaudi-train-vision-a.service"
    assert text.splitlines()[1:] == [
        "",
        "User_Alias GAUDI_VISION = anna, ben",
        f"Cmnd_Alias GAUDI_VISION_CHANGE = /usr/bin/systemctl start {unit}, /usr/bin/systemctl stop {unit}",
        f"Cmnd_Alias GAUDI_VISION_SHOW = /usr/bin/systemctl --no-pager status {unit}",
        "GAUDI_VISION ALL = (root) NOPASSWD: GAUDI_VISION_CHANGE",
        "GAUDI_VISION ALL = (root) NOEXEC: NOPASSWD: GAUDI_VISION_SHOW",
    ]
    assert not re.search(r"[*?\[\]!^]", text)


@pytest.mark.parametrize("job", ["vision", "vision-*", "vision-a, ALL", "nlp-a", "vision-", "-vision-a", "vision-a\n"])
def test_a_job_of_no_team_is_refused(job: str) -> None:
    with pytest.raises(Refusal, match="is none of a team: its name begins with the team's and '-', as vision-llama"):
        drop_in(TEAMS, [job])


@pytest.mark.parametrize("path", ["systemctl", "/bin/sh -c", "/usr/bin/*", "/a, ALL"])
def test_systemctl_has_a_path(path: str) -> None:
    with pytest.raises(Refusal, match="is not one of systemctl: give one as /usr/bin/systemctl"):
        drop_in(TEAMS, systemctl=path)


@pytest.mark.skipif(not shutil.which("visudo"), reason="sudo is not installed")
@pytest.mark.parametrize("jobs", [[], ["vision-a", "speech-b"]])
def test_visudo_takes_it(tmp_path: Path, jobs: list[str]) -> None:
    file = tmp_path / "teams"
    file.write_text(drop_in(TEAMS, jobs))
    file.chmod(0o440)
    done = subprocess.run(["visudo", "-cf", str(file)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
