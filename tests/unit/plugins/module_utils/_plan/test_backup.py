"""What the timer of a host backs up, and what keeps it from it, in one sentence."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._plan import backup

USUAL: dict[str, Any] = {
    "inventory_hostname": "mon",
    "groups": {"gaudi": ["gaudi-1", "mon"], "monitoring": ["mon"], "slurm_controller": ["gaudi-1"]},
    "backup_repository": "sftp:backup@store:/srv/gaudi/mon",
    "backup_password": "of-no-other-use",
    "backup_environment": {"AWS_ACCESS_KEY_ID": "id"},
    "backup_cluster": "hall-1",
    "backup_paths": ["/srv/own"],
    "backup_schedule": "*-*-* 03:00",
    "backup_keep": {"daily": 7, "weekly": 0},
    "backup_check_share": "1%",
    "backup_textfile_directory": "/var/lib/prometheus/node-exporter",
}


def test_a_host_of_two_groups_has_what_belongs_to_both() -> None:
    found = backup.decide(USUAL.get)
    assert (found["problem"], found["kinds"]) == ("", ["monitoring", "node"])
    assert found["units"] == ["prometheus.service", "prometheus-alertmanager.service", "grafana-server.service"]
    settings, service, timer, *program = found["files"]
    assert (settings["path"], settings["mode"], settings["secret"]) == (
        "/etc/gaudi3-backup/settings.json",
        "0600",
        True,
    )
    told = json.loads(settings["content"])
    assert (told["password"], told["cluster"]) == ("of-no-other-use", "hall-1")
    assert "of-no-other-use" not in service["content"] + timer["content"] + str(program)
    assert "\nOnCalendar=*-*-* 03:00\n" in timer["content"] and "\nPersistent=true\n" in timer["content"]
    assert {each["path"] for each in program} >= {"/usr/local/lib/gaudi-backup/engine/_backup/saving.py"}
    assert [each["path"] for each in found["files"] if each.get("restart", True)] == [timer["path"]]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            {"backup_repository": ""},
            "backup_repository is empty: give an absolute path or an address of restic for each",
        ),
        (
            {"backup_repository": "store"},
            "backup_repository is 'store': give an absolute path or an address of restic, ",
        ),
        (
            {"backup_password": ""},
            "backup_password is empty: give one out of your vault, and keep it where the backups ",
        ),
        (
            {"backup_cluster": "hall 1"},
            "backup_cluster is 'hall 1': give letters, digits, dots, hyphens and underscores.",
        ),
        ({"backup_password": "a\nb"}, "backup_password has more than one line: give one line."),
        (
            {"backup_repository": "sftp:store"},
            "backup_repository is 'sftp:store': give a store over SFTP as sftp:USER@HOST:/FOLDER, or with a port as ",
        ),
        (
            {"backup_ssh_key": "/root/.ssh/id_ed25519"},
            "backup_ssh_key is no private key as ssh-keygen writes one: give the whole file, from BEGIN to END, or ",
        ),
        (
            {"backup_repository": "/mnt/backup/mon", "backup_ssh_known_hosts": "store ssh-ed25519 AAAA"},
            "backup_ssh_known_hosts is given, and the repository is not reached by sftp: leave it out",
        ),
        (
            {"inventory_hostname": "other", "backup_paths": []},
            "other is in none of the groups monitoring, gaudi, slurm_controller, which say what is backed up: put it ",
        ),
        (
            {"backup_keep": {"daily": 0}},
            "backup_keep is {'daily': 0}: give whole numbers of last, daily, weekly, monthly",
        ),
        ({"backup_keep": {"yearly": 1}}, "backup_keep is {'yearly': 1}: give whole numbers of last, daily, weekly, "),
        (
            {"backup_keep": {"daily": True}},
            "backup_keep is {'daily': True}: give whole numbers of last, daily, weekly, ",
        ),
        (
            {"backup_schedule": "daily\nX=1"},
            "backup_schedule is 'daily\\nX=1': give a time as systemd has it, such as ",
        ),
        ({"backup_check_share": "0%"}, "backup_check_share is '0%': give a share such as 1%, or leave it empty."),
        (
            {"backup_paths": ["own"]},
            "backup_paths: 'own' is to be backed up: give the absolute path of a file or folder.",
        ),
        (
            {"backup_paths": ["/etc/grafana/x"]},
            "backup_paths: /etc/grafana/x lies in /etc/grafana, which is backed up ",
        ),
    ],
)
def test_what_cannot_work_is_one_sentence(given: dict[str, Any], said: str) -> None:
    found = backup.decide({**USUAL, **given}.get)
    assert found["problem"].startswith(said) and found["files"] == []
