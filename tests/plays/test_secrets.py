"""Secrets that a vault hands over: nothing is kept on the controller, and nothing changes at the next run."""

from __future__ import annotations

import datetime
import json
import shutil
from pathlib import Path

import bcrypt
import yaml

from ansible_collections.gaudi3.scale.plugins.module_utils._credentials import issue

from .cluster import Cluster
from .host import CHECKOUT

ROLES = ("prometheus", "alertmanager", "grafana", "watch")
SUBSET = ["!all", "!min", "platform", "distribution", "pkg_mgr", "service_mgr"]
NOW = datetime.datetime.now(datetime.UTC)
CA, CA_KEY = issue(None, [], 3650, NOW)
PASSWORDS = {f"{name}_password": f"of the vault: {name}" for name in ROLES}
#: A password without its hash, and an authority that signs.
LITTLE = {**PASSWORDS, "ca_certificate": CA.decode().strip(), "ca_key": CA_KEY.decode().strip()}


def monitor(cluster: Cluster) -> None:
    """A host on which the packages of all three are."""
    host = cluster.add("mon", "monitoring", cards=0, system="debian")
    host.give(packages={"prometheus": "2.42.0", "prometheus-alertmanager": "0.25.0"})
    for name in ("promtool", "amtool"):
        (host.folder / "bin" / name).write_text("#!/bin/sh\n")
        (host.folder / "bin" / name).chmod(0o755)
    # For inventories that are a list of hosts.
    (cluster.folder / "host_vars").mkdir()
    (cluster.folder / "host_vars/mon.yml").write_text(json.dumps(cluster.variables["mon"]))


def until_it_runs(cluster: Cluster) -> str:
    """The role alertmanager but for its last task, which asks over TLS: nobody answers here."""
    copy = cluster.folder / "roles/alertmanager"
    shutil.copytree(CHECKOUT / "roles/alertmanager", copy)
    tasks = yaml.safe_load((copy / "tasks/main.yml").read_text())
    assert tasks.pop()["name"] == "Wait until it answers"
    (copy / "tasks/main.yml").write_text(yaml.safe_dump(tasks))
    unit = "[Service]\nEnvironmentFile=/etc/default/prometheus-alertmanager\n"
    cluster["mon"].write("/lib/systemd/system/prometheus-alertmanager.service", unit)
    return "alertmanager"


def kept(home: Path) -> list[str]:
    """What is in a home besides Ansible's own."""
    return [path.name for path in home.iterdir() if path.name != ".ansible"]


def test_two_controllers_with_empty_homes_and_one_vault(cluster: Cluster) -> None:
    """The second has only a list of hosts besides, after which no folder could be named."""
    monitor(cluster)
    play = {"hosts": "all", "gather_subset": SUBSET, "roles": [until_it_runs(cluster)]}
    (cluster.folder / "monitoring.yml").write_text(json.dumps([play]))
    runs = []
    for home, inventory in (("first", None), ("second", "mon,")):
        (cluster.folder / home).mkdir()
        runs.append(
            cluster.play(
                f"{cluster.folder}/monitoring.yml",
                inventory=inventory,
                environment={"HOME": str(cluster.folder / home)},
                gaudi_secrets=LITTLE,
            )
        )
    assert [run.returncode for run in runs] == [0, 0], [run.messages() for run in runs]
    assert {name.split(" : ")[1] for _host, name in runs[0].changed()} == {
        "Write the files and run Alertmanager with them"
    }
    assert runs[1].changed() == set()
    assert [kept(cluster.folder / home) for home in ("first", "second")] == [[], []]

    host = cluster["mon"]
    assert host.path("/etc/prometheus/alertmanager-ca.crt").read_bytes() == CA
    web = host.path("/etc/prometheus/alertmanager-web.yml").read_text()
    assert bcrypt.checkpw(b"of the vault: alertmanager", web.split()[-1].encode())
    for run in runs:
        said = run.everything
        assert "of the vault" not in said and "PRIVATE KEY" not in said and "$2b$" not in said


def test_a_list_of_hosts_has_no_folder_and_is_told_so(cluster: Cluster) -> None:
    monitor(cluster)
    before = cluster["mon"].files()
    play = {"hosts": "all", "gather_subset": SUBSET, "roles": ["gaudi3.scale.prometheus"]}
    (cluster.folder / "list.yml").write_text(json.dumps([play]))
    told = cluster.play(f"{cluster.folder}/list.yml", inventory="mon,")
    assert told.messages() == [
        "The inventory (mon,) has no folder after which one for its passwords and certificates could be named: set "
        "gaudi_secrets_dir to a folder on the controller, or hand prometheus_password, alertmanager_password, "
        "ca_certificate over in gaudi_secrets."
    ]
    assert cluster["mon"].files() == before and not list(cluster.folder.glob("None*"))


def test_what_cannot_be_used_is_told_before_anything_changes(cluster: Cluster) -> None:
    """The reason is shown although the task hides what it says."""
    monitor(cluster)
    before = cluster["mon"].files()
    wrong = {**LITTLE, "prometheus_password_hash": "$2b$10$" + "x" * 53}
    told = cluster.role("prometheus", group="monitoring", gaudi_secrets=wrong)
    assert told.messages() == [
        "prometheus_password_hash is no bcrypt hash of prometheus_password; correct it, or leave it out."
    ]
    assert cluster["mon"].files() == before and "of the vault" not in told.everything
