"""A monitoring host and a node that are lost: backed up as the role installed it, set up anew, and every item back."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.unit.plugins.modules.backup_stores import SftpStore, sftp_store

from .cluster import Cluster, unprivileged
from .host import Host

PASSWORD = "of-no-other-use"
WORK = "/var/lib/gaudi3-backup"
BLOCK = "/var/lib/prometheus/metrics2/01HF8X3Z9Q4T2V6W8Y0ABCDEFG"
#: What only the lost machine has, by item.
MONITORING = {
    f"{BLOCK}/meta.json": '{"ulid": "01HF8X3Z9Q4T2V6W8Y0ABCDEFG"}\n',
    f"{BLOCK}/chunks/000001": "samples of a day",
    f"{BLOCK}/index": "index of a day",
    "/var/lib/prometheus/metrics2/wal/00000007": "samples of two hours",
    "/var/lib/prometheus/alertmanager/silences": "a silence\n",
    "/etc/prometheus/rules/own.yml": "groups: []\n",
    "/etc/prometheus/server.key": "no key\n",
    "/etc/default/prometheus": "ARGS=--web.listen-address=10.0.0.1:9090\n",
    "/etc/default/prometheus-alertmanager": "ARGS=--cluster.listen-address=\n",
    "/etc/grafana/admin_password": "not the real one\n",
    "/etc/gaudi3-scale/written/prometheus.json": "{}\n",
    "/etc/munge/munge.key": "0" * 64,
    "/etc/slurm/slurm.conf": "ClusterName=gaudi\n",
    "/var/lib/slurm/slurmctld/job_state": "jobs\n",
}
NODE = {
    "/var/lib/gaudi3-scale/jobs/.control/bert/job.json": '{"name": "bert", "nodes": ["gaudi-1"]}\n',
    "/var/lib/gaudi3-scale/jobs/.control/bert/attempts/1.json": '{"ended": "fault"}\n',
    "/var/lib/gaudi3-scale/health/fence.json": '{"reason": "port 7"}\n',
    "/etc/gaudi3-scale/written/fabric.json": "{}\n",
}
DATABASE = "/var/lib/grafana/grafana.db"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SftpStore]:
    with sftp_store(tmp_path_factory.mktemp("sshd")) as made:
        yield made


def given(store: SftpStore) -> dict[str, Any]:
    return {
        "backup_repository": f"{store.address}/{{{{ inventory_hostname }}}}",
        "backup_password": PASSWORD,
        "backup_ssh_key": store.key,
        "backup_ssh_known_hosts": store.known_hosts,
    }


#: Names the host's folder to the real restic, and takes it out of what restic says and restores.
RESTIC = """#!/bin/sh
export RESTIC_CACHE_DIR='{root}'"$RESTIC_CACHE_DIR"
for each; do
  shift
  case $each in {work}*) each='{root}'$each ;; esac
  set -- "$@" "$each"
done
case " $* " in
  *" ls "* | *" snapshots "*) '{restic}' "$@" > '{out}'; code=$?; sed 's#{root}{work}#{work}#g' '{out}'; exit $code ;;
  *" restore "*) '{restic}' "$@" && mkdir -p '{copy}/var/lib' && mv '{copy}{root}{work}' '{copy}/var/lib' ;;
  *) exec '{restic}' "$@" ;;
esac
"""


def programs(host: Host, **versions: str) -> None:
    """The real ssh and restic, and programs that only say their version."""
    restic, ssh = shutil.which("restic"), shutil.which("ssh")
    assert restic and ssh, "restic or ssh is missing: apt-get install restic openssh-client"
    out, copy = host.folder / "restic.out", host.path(f"{WORK}/copy")
    texts = {
        "restic": RESTIC.format(root=host.root, work=WORK, restic=restic, out=out, copy=copy),
        "ssh": f'#!/bin/sh\nexec {ssh} "$@"\n',
    }
    for name, version in versions.items():
        texts[name.replace("_", "-")] = f"#!/bin/sh\necho {name}, version {version}\n"
    for name, text in texts.items():
        place = host.folder / "bin" / name
        place.write_text(text)
        place.chmod(0o755)


def lose(host: Host) -> None:
    for place in ("/var/lib", "/etc/prometheus", "/etc/grafana", "/etc/gaudi3-scale", "/etc/slurm", "/etc/munge"):
        shutil.rmtree(host.path(place), ignore_errors=True)
    for path in host.path("/etc/default").glob("prometheus*"):
        path.unlink()


def back_up(host: Host) -> str:
    """One run of the timer's program, on its host."""
    program, settings = "/usr/local/lib/gaudi-backup/gaudi_backup.py", "/etc/gaudi3-backup/settings.json"
    done = subprocess.run(
        [*unprivileged(), str(host.interpreter), "-s", str(host.path(program)), "--settings", settings],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def install(cluster: Cluster, host: Host, group: str, **variables: Any) -> None:
    host.give(packages={"restic": "0.14.0-1+b5"})
    done = cluster.role("backup", group=group, **variables)
    assert done.returncode == 0, done.messages()


def content(host: Host, names: dict[str, str]) -> dict[str, tuple[int, str]]:
    return {name: (host.mode(name), host.path(name).read_text()) for name in names if host.path(name).is_file()}


def rows(host: Host) -> list[str]:
    with closing(sqlite3.connect(host.path(DATABASE))) as database:
        return [*database.iterdump()]


def test_a_monitoring_host_that_was_lost_has_every_item_back(cluster: Cluster, tmp_path: Path) -> None:
    cluster.gaudi(1, cards=1)
    host = cluster.add("monitor-1", "monitoring", "slurm_controller", cards=0, driver=False)
    programs(host, prometheus="2.42.0", prometheus_alertmanager="0.25.0", grafana_server="12.1.0", slurmctld="24.11.5")
    for name, text in MONITORING.items():
        host.write(name, text, 0o640 if name.endswith((".key", "password")) else 0o644)
    host.path(DATABASE).parent.mkdir(parents=True)
    with closing(sqlite3.connect(host.path(DATABASE))) as database:
        database.executescript(
            "PRAGMA journal_mode=WAL; CREATE TABLE dashboard (title TEXT); INSERT INTO dashboard VALUES ('own board');"
            "CREATE TABLE annotation (text TEXT); INSERT INTO annotation VALUES ('new firmware');"
        )
    units = ("prometheus", "prometheus-alertmanager", "grafana-server", "slurmctld", "munge")
    for unit in units:
        host.unit(unit)
        host.write(f"/lib/systemd/system/{unit}.service", "[Service]\n")
    variables: dict[str, Any] = {"backup_repository": str(tmp_path / "store"), "backup_password": PASSWORD}
    install(cluster, host, "monitoring", **variables)
    before, board = content(host, MONITORING), rows(host)
    assert before.keys() == MONITORING.keys()
    assert " (new): " in back_up(host)

    lose(host)
    # The new machine, as the services begin on it: Prometheus has samples already, and Grafana its first database.
    young = {"/var/lib/prometheus/metrics2/wal/00000000": "of today", "/etc/prometheus/prometheus.yml": "new: 1\n"}
    for name, text in young.items():
        host.write(name, text)
    meant = {**variables, "gaudi_restore_host": "monitor-1"}
    refused = cluster.play("restore.yml", **meant)
    assert refused.returncode != 0 and host.acts() == [], "services run on where nothing is restored"
    assert "is not empty, and differs from the backup" in refused.messages()[0]
    looked = cluster.play("restore.yml", "--check", "--diff", backup_overwrite=True, **meant)
    assert looked.returncode == 0, looked.messages()
    assert content(host, young) == {name: (0o644, text) for name, text in young.items()} and host.acts() == []

    # Onto older programs it is refused while the services run; onto later ones it is restored.
    programs(host, prometheus="2.37.0", prometheus_alertmanager="0.25.0", grafana_server="12.1.0", slurmctld="24.11.5")
    older = cluster.play("restore.yml", backup_overwrite=True, **meant)
    assert (older.messages(), host.acts()) == (
        [
            "the backup of prometheus-data is of prometheus 2.42.0, and this machine has 2.37.0, which may not read "
            "it: install that version or a later one first."
        ],
        [],
    )
    programs(host, prometheus="3.5.0", prometheus_alertmanager="0.28.1", grafana_server="12.2.0", slurmctld="25.11.0")
    done = cluster.play("restore.yml", "--diff", screen=True, backup_overwrite=True, **meant)
    assert (done.returncode, done.changed()) == (0, looked.changed()), done.messages()
    told = done.result("monitor-1", "Restore and compare")
    assert {*told["items"]} == {
        "prometheus-data", "alertmanager-data", "grafana-database", "prometheus-configuration", "prometheus-arguments",
        "alertmanager-arguments", "grafana-configuration", "gaudi3-configuration", "slurm-state",
        "slurm-configuration", "munge-key",
    }  # fmt: skip
    assert content(host, MONITORING) == before and rows(host) == board
    assert sorted(path.partition(".before-")[0] for path in told["kept"]) == [
        "/etc/prometheus", "/var/lib/prometheus/metrics2",
    ]  # fmt: skip
    stopped = [call.split()[-1] for call in host.calls if call.startswith("systemctl stop ")]
    started = [call.split()[-1] for call in host.calls if call.startswith("systemctl start ")]
    assert sorted(stopped) == sorted(started) == sorted(f"{unit}.service" for unit in units)
    assert PASSWORD not in cluster.screen
    again = cluster.play("restore.yml", backup_overwrite=True, **meant)
    assert (again.returncode, again.changed(), host.acts()) == (0, set(), [])


def test_a_node_that_was_lost_has_every_item_back_and_never_from_another(cluster: Cluster, store: SftpStore) -> None:
    cluster.gaudi(2, cards=1)
    first, second = cluster["gaudi-1"], cluster["gaudi-2"]
    variables = given(store)
    for host in (first, second):
        programs(host)
        for name, text in NODE.items():
            host.write(name, text.replace("gaudi-1", host.name))
        install(cluster, host, host.name, **variables)
        assert " (new): " in back_up(host)
    before = content(first, NODE)
    assert " (as before): " in back_up(first)
    lose(first)
    done = cluster.play("restore.yml", "--diff", screen=True, gaudi_restore_host="gaudi-1", **variables)
    assert done.returncode == 0, done.messages()
    told = done.result("gaudi-1", "Restore and compare")
    assert sorted(told["items"]) == ["fence", "gaudi3-configuration", "job-records"]
    assert content(first, NODE) == before and before.keys() == NODE.keys()
    assert first.mode("/etc/gaudi3-backup/settings.json") == 0o600
    assert store.key.splitlines()[1] not in cluster.screen + str(first.calls)
    assert [path for path in first.path("/var/lib").iterdir() if path.name != "gaudi3-backup"] == [
        first.path("/var/lib/gaudi3-scale")
    ]
    again = cluster.play("restore.yml", gaudi_restore_host="gaudi-1", **variables)
    assert (again.returncode, again.changed()) == (0, set())
    # The store of another machine, by a mistake in the variables.
    wrong = {**variables, "backup_repository": f"{store.address}/gaudi-2"}
    lose(first)
    other = cluster.play("restore.yml", gaudi_restore_host="gaudi-1", **wrong)
    assert other.messages() == [
        "the repository has no backup of gaudi-1: give host, as it was called when it was backed up."
    ]
    assert not first.path("/var/lib/gaudi3-scale").exists()
