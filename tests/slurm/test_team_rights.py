"""What the users of a team may do to units, by a real sudo with the file of `gaudi3-deploy teams sudoers`."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._teams import declared, sudo

from .cluster import UNPACKED, unpack, write_executable
from .machines import Machine, lacks

WHY = lacks()
pytestmark = pytest.mark.skipif(bool(WHY), reason=WHY or "it can run")
USERS = {"anna": 2101, "carla": 2102}
TEAMS = {"vision": {"users": ["anna"]}, "speech": {"users": ["carla"], "nodes": ["elsewhere", "here"]}}
SYSTEMCTL = "/mnt/systemctl"


@pytest.fixture(scope="module")
def here() -> Iterator[Machine]:
    """A machine with both users, the file of their teams, and a systemctl that notes how root calls it."""
    unpack()
    top = Path(tempfile.mkdtemp(prefix="gaudi3-sudo-"))  # pytest's own is closed to other users
    top.chmod(0o755)
    machine = Machine("here", "10.77.0.1", top / "here", UNPACKED)
    etc = machine.folder / "etc"
    (etc / "pam.d").mkdir(parents=True)
    (etc / "slurm").mkdir()
    (top / "shared").mkdir()
    lines = {"passwd": "{0}:x:{1}:{1}::/:/bin/sh\n", "group": "{0}:x:{1}:\n", "shadow": "{0}:*:20000:0:99999:7:::\n"}
    for name, line in lines.items():
        more = "".join(line.format(user, number) for user, number in USERS.items())
        (etc / name).write_text(Path("/etc", name).read_text() + more)
    (etc / "shadow").chmod(0o600)
    # Debian's sudo takes the first name of the host's address for the host.
    (etc / "hosts").write_text("127.0.0.1 localhost\n127.0.1.1 here.example here\n")
    (etc / "pam.d/sudo").write_text(
        "account required pam_unix.so\nauth required pam_deny.so\nsession required pam_permit.so\n"
    )
    drop_in = sudo.drop_in(declared.teams({"teams": TEAMS}), systemctl=SYSTEMCTL, password=False)
    (etc / "sudoers").write_text(f"root ALL=(ALL:ALL) ALL\n{drop_in}")
    (etc / "sudoers").chmod(0o440)
    write_executable(machine.folder / "systemctl", '#!/bin/sh\necho "$*" >>/mnt/calls\n')
    try:
        machine.start()
        yield machine
    finally:
        machine.stop()
        shutil.rmtree(top, ignore_errors=True)


def call(machine: Machine, user: str, *command: str) -> list[str]:
    """What systemctl noted, where root alone can, when the user asks sudo for a command; nothing where sudo refuses."""
    calls = machine.folder / "calls"
    calls.unlink(missing_ok=True)
    words = ["setpriv", f"--reuid={USERS[user]}", f"--regid={USERS[user]}", "--clear-groups", "sudo", "-n"]
    done = machine.run(*words, *command, check=False)
    found = calls.read_text().splitlines() if calls.exists() else []
    assert (done.returncode == 0) == bool(found), done.stdout + done.stderr
    assert found or "password is required" in done.stderr or "not allowed" in done.stderr, done.stderr
    return found


@pytest.mark.parametrize("verb", ["start", "stop", "--no-pager status"])
def test_a_user_has_the_units_of_the_team_and_no_others(here: Machine, verb: str) -> None:
    words = [SYSTEMCTL, *verb.split()]
    for user, own, others in (("anna", "vision", "speech"), ("carla", "speech", "vision")):
        assert call(here, user, *words, f"gaudi-train-{own}-a.service") == [f"{verb} gaudi-train-{own}-a.service"]
        assert call(here, user, *words, f"gaudi-train-{others}-a.service") == []
        assert call(here, user, *words, f"gaudi-train-{own}-a.service", f"gaudi-train-{others}-a.service") == []


@pytest.mark.parametrize(
    "command",
    [
        ["sh"],
        ["-u", "carla", SYSTEMCTL, "stop", "gaudi-train-vision-a.service"],
        [SYSTEMCTL],
        [SYSTEMCTL, "edit", "gaudi-train-vision-a.service"],
        [SYSTEMCTL, "stop", "gaudi-train-vision-*.service"],
        [SYSTEMCTL, "stop", "gaudi-train-vision-a.service sshd.service"],
        [SYSTEMCTL, "--root=/tmp", "stop", "gaudi-train-vision-a.service"],
        [SYSTEMCTL, "status", "gaudi-train-vision-a.service"],
        ["-e", "/etc/systemd/system/gaudi-train-vision-a.service"],
        ["cat", "/var/lib/gaudi3-scale/jobs/.control/speech-a/job.json"],
    ],
)
def test_nothing_else_is_done_as_root(here: Machine, command: list[str]) -> None:
    assert call(here, "anna", *command) == []


def test_the_file_is_one_for_visudo(here: Machine) -> None:
    assert here.run("visudo", "-cf", "/etc/sudoers", check=False).returncode == 0
