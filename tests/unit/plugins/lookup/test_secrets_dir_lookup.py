"""Where passwords and certificates lie: never where Ansible looks for hosts."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[4]
BIN = Path(sys.executable).parent
ROLES = ("prometheus", "alertmanager", "grafana", "watch")
HOSTS = ["gaudi-01", "gaudi-02", "monitor-01"]


class Site:
    """A copy of the example inventory, a home of its own, and Ansible's commands."""

    def __init__(self, folder: Path) -> None:
        self.inventory = folder / "inventories/mine"
        self.home = folder / "home"
        self.home.mkdir()
        shutil.copytree(ROOT / "inventories/onprem", self.inventory)
        self.play = folder / "play.yml"
        tasks: list[dict[str, Any]] = [
            {
                "name": f"Credentials of {role}",
                "gaudi3.scale.gaudi_credentials": {
                    "directory": f"{{{{ {role}_secrets_dir }}}}",
                    "passwords": [role],
                },
                "delegate_to": "localhost",
                "vars": {"ansible_python_interpreter": sys.executable, "ansible_become": False},
            }
            for role in ROLES
        ]
        files = [str(ROOT / f"roles/{role}/defaults/main.yml") for role in ROLES]
        plays = [{"hosts": "monitoring", "gather_facts": False, "vars_files": files, "tasks": tasks}]
        self.play.write_text(yaml.safe_dump(plays))

    def run(self, command: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "HOME": str(self.home), "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg")}
        environment.pop("XDG_CONFIG_HOME", None)
        return subprocess.run(
            [str(BIN / command), *arguments],
            env={
                **environment,
                "ANSIBLE_NOCOLOR": "1",
                "ANSIBLE_STDOUT_CALLBACK": "ansible.builtin.default",
                "ANSIBLE_CALLBACK_RESULT_FORMAT": "json",
            },
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def credentials(self, *sources: str, **variables: str) -> subprocess.CompletedProcess[str]:
        given = [word for source in sources for word in ("-i", source)]
        extra = [word for name, value in variables.items() for word in ("-e", f"{name}={value}")]
        return self.run("ansible-playbook", *given, *extra, str(self.play))


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def secret_folders(folder: Path) -> list[Path]:
    return sorted({path.parent for path in folder.rglob("*_password")})


def test_the_next_run_finds_the_hosts_of_the_inventory_and_no_passwords(site: Site) -> None:
    done = site.credentials(str(site.inventory))
    assert done.returncode == 0, done.stdout + done.stderr
    (secrets,) = secret_folders(site.inventory.parents[1])
    assert sorted(path.name for path in secrets.glob("*_password")) == sorted(f"{role}_password" for role in ROLES)

    listed = site.run("ansible", "-i", str(site.inventory), "all", "--list-hosts")
    assert (listed.returncode, listed.stderr) == (0, "")
    assert sorted(listed.stdout.split()[2:]) == HOSTS
    # The same place for the inventory's file, and for a second run.
    again = site.credentials(str(site.inventory / "hosts.yml"))
    assert again.returncode == 0 and "changed=0" in again.stdout, again.stdout
    assert secret_folders(site.inventory.parents[1]) == [secrets]


def test_a_list_of_hosts_is_refused_in_one_sentence_and_leaves_no_folder(site: Site) -> None:
    site.play.write_text(site.play.read_text().replace("hosts: monitoring", "hosts: all"))
    before = {path.name for path in ROOT.iterdir()}
    done = site.credentials("monitor-01,")
    assert done.returncode == 2
    assert "The inventory (monitor-01,) has no folder" in done.stdout, done.stdout
    assert "set gaudi_secrets_dir to a folder on the controller, or hand prometheus_password over" in done.stdout
    assert {path.name for path in ROOT.iterdir()} == before
    assert secret_folders(site.home) == []


def test_owners_of_a_folder_in_the_inventory_are_told_how_to_move_it(site: Site) -> None:
    old = site.inventory / "secrets"
    old.mkdir(mode=0o700)
    (old / "prometheus_password").write_text("kept\n")
    done = site.credentials(str(site.inventory), gaudi_secrets_dir=str(old))
    assert done.returncode == 2
    assert f"&& mv {old} {site.home}/.config/gaudi3-scale/mine-" in done.stdout, done.stdout
    # The command that it names.
    sentence = done.stdout[done.stdout.index("mkdir -p") :]
    command = sentence[: sentence.index("`")]
    subprocess.run(["sh", "-ec", command], check=True)
    assert site.credentials(str(site.inventory)).returncode == 0
    (moved,) = secret_folders(site.inventory.parents[1])
    assert (moved / "prometheus_password").read_text() == "kept\n"
    assert moved.parent == site.home / ".config/gaudi3-scale"
    assert moved.parent.stat().st_mode & 0o777 == 0o700


def test_secrets_are_handed_over_by_tasks_alone_that_hide_them(site: Site) -> None:
    plays = yaml.safe_load(site.play.read_text())
    (task,) = plays[0]["tasks"] = plays[0]["tasks"][:1]
    task["gaudi3.scale.gaudi_credentials"]["given"] = {"prometheus_password": "of the vault"}
    site.play.write_text(yaml.safe_dump(plays))
    shown = site.credentials(str(site.inventory))
    assert shown.returncode == 2 and "of the vault" not in shown.stdout + shown.stderr
    assert "Secrets are handed over in given: set no_log=true on the task, or they are shown." in shown.stdout
    task["no_log"] = True
    site.play.write_text(yaml.safe_dump(plays))
    assert site.credentials(str(site.inventory)).returncode == 0
    assert secret_folders(site.home) == []
