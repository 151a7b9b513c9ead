"""gaudi_backup and gaudi_restore with the real restic: machines are lost, and each item comes back as it was."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
import subprocess
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._backup import manifest, saving, tree
from ansible_collections.gaudi3.scale.plugins.module_utils._backup.repository import Repository
from ansible_collections.gaudi3.scale.plugins.modules import gaudi_backup, gaudi_restore

PASSWORD = "of-no-other-use"
Call = Callable[..., dict[str, Any]]


@pytest.fixture(scope="session", autouse=True)
def restic() -> str:
    """The real one. Its keys cost half a second each, which is what makes a password hard to guess."""
    found = shutil.which("restic")
    assert found, "restic is missing: apt-get install restic"
    return found


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A folder that stands for a machine which is monitoring host, node and Slurm's controller in one."""
    root = tmp_path / "machine"
    files = {
        "etc/prometheus/prometheus.yml": "scrape_configs: []\n",
        "etc/prometheus/server.key": "a key\n",
        "etc/default/prometheus": "ARGS=--web.listen-address=10.0.0.1:9090\n",
        "etc/grafana/admin_password": "not the real one\n",
        "etc/gaudi3-scale/written/prometheus.json": "{}\n",
        "etc/slurm/slurm.conf": "ClusterName=gaudi\n",
        "etc/munge/munge.key": "0" * 64,
        "var/lib/prometheus/alertmanager/silences": "\0\1silence",
        "var/lib/prometheus/alertmanager/nflog": "",
        "var/lib/gaudi3-scale/jobs/.control/bert/job.json": '{"name": "bert"}\n',
        "var/lib/gaudi3-scale/jobs/bert/checkpoints/last.ckpt": "large",
        "var/lib/gaudi3-scale/health/fence.json": '{"reason": "port 7"}\n',
        "var/lib/slurm/slurmctld/job_state": "jobs",
    }
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (root / "etc/prometheus/server.key").chmod(0o640)
    (root / "etc/grafana/admin_password").chmod(0o600)
    (root / "etc/slurm/current").symlink_to("slurm.conf")
    # Users name files as they like: what is no text, and what a terminal acts on.
    (root / os.fsdecode(b"etc/slurm/\xe2\x82\x1b[2J")).write_text("odd")
    (root / "var/lib/slurm/slurmctld").chmod(0o750)
    (root / "var/lib/grafana").mkdir(parents=True)
    with closing(sqlite3.connect(root / "var/lib/grafana/grafana.db")) as database:
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("CREATE TABLE dashboard (id INTEGER PRIMARY KEY, title TEXT)")
        database.execute("INSERT INTO dashboard (title) VALUES ('own board')")
        database.commit()
    return root


@pytest.fixture
def calls(run_module: Any, machine: Path, tmp_path: Path) -> tuple[Call, Call]:
    options = {
        "repository": str(tmp_path / "repository"),
        "password": PASSWORD,
        "host": "one",
        "kinds": ["monitoring", "node", "slurm"],
        "working_folder": str(tmp_path / "work"),
        "root": str(machine),
    }

    def back_up(**more: Any) -> dict[str, Any]:
        result: dict[str, Any] = run_module(gaudi_backup, **{**options, **more})
        return result

    def restore(**more: Any) -> dict[str, Any]:
        result: dict[str, Any] = run_module(gaudi_restore, **{**options, **more})
        return result

    return back_up, restore


def every_item(root: Path) -> dict[str, tuple[Any, ...]]:
    """Each file, folder and link: mode, owner, time-free, and content."""
    found = {}
    for path in sorted(root.rglob("*")):
        about = path.lstat()
        content = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else None
        found[str(path.relative_to(root))] = (stat.S_IMODE(about.st_mode), about.st_uid, about.st_gid, content)
    return found


def test_a_lost_machine_comes_back_with_every_item(calls: tuple[Call, Call], machine: Path, tmp_path: Path) -> None:
    back_up, restore = calls
    untouched = every_item(machine)
    predicted = back_up(check=True, diff=True)
    assert every_item(machine) == untouched, "a look leaves no file beside a database either"
    assert (predicted["changed"], predicted["snapshot"]) == (True, "")
    assert not (tmp_path / "repository").exists() and not (tmp_path / "work").exists()

    done = back_up(diff=True)
    assert done["changed"] and len(done["snapshot"]) == 8
    assert done["diff"] == predicted["diff"] and done["diff"]["before"] == ""
    assert "0640" in done["diff"]["after"] and "not the real one" not in str(done)
    assert done["missing"] == ["prometheus-data", "alertmanager-arguments", "slurm-accounting"]
    assert PASSWORD not in str({**done, "invocation": None})
    again = back_up(diff=True)
    assert (again["changed"], again["snapshot"]) == (False, done["snapshot"])
    assert again["diff"]["before"] == again["diff"]["after"]

    # Checkpoints are not in the backup, and are lost with the machine.
    shutil.rmtree(machine / "var/lib/gaudi3-scale/jobs/bert")
    before = every_item(machine)
    shutil.rmtree(machine / "var")
    shutil.rmtree(machine / "etc")
    looked = restore(check=True, diff=True)
    assert looked["changed"] and not (machine / "etc").exists()
    assert "fence is missing" in looked["diff"]["before"].splitlines()
    assert "munge-key is missing" in looked["differences"]
    restored = restore()
    assert restored["changed"] and restored["items"] == looked["items"] == done["items"]
    assert restored["kept"] == []
    after = every_item(machine)
    # Of SQLite's copy the counter of changes is another.
    differ = {name for name, about in after.items() if about != before[name]}
    assert differ == {"var/lib/grafana/grafana.db"}
    original, copied = (found["var/lib/grafana/grafana.db"][3] for found in (before, after))
    assert {place for place, byte in enumerate(original) if byte != copied[place]} == {27, 95}
    assert after.keys() == before.keys()
    assert restore()["changed"] is False
    assert not (tmp_path / "work/copy").exists()


def test_what_is_there_is_refused_by_name_and_kept_where_it_is_replaced(
    calls: tuple[Call, Call], machine: Path
) -> None:
    back_up, restore = calls
    back_up()
    fence = machine / "var/lib/gaudi3-scale/health/fence.json"
    journal = machine / "var/lib/grafana/grafana.db-journal"
    fence.write_text('{"reason": "newer"}\n')
    (fence.parent / "more").write_text("new\n")
    journal.write_text("of a killed Grafana")
    (machine / "var/lib/grafana/grafana.db").unlink()
    before = every_item(machine)
    refused = restore()
    assert refused["failed"] is True
    assert refused["msg"] == (
        f"{fence.parent} is not empty, and differs from the backup (fence/fence.json has 20 bytes, and had 21): move "
        "it away, or give overwrite, which keeps it under a dated name."
    )
    assert every_item(machine) == before

    done = restore(overwrite=True)
    assert sorted(done["items"]) == ["fence", "grafana-database"]
    assert fence.read_text() == '{"reason": "port 7"}\n' and not (fence.parent / "more").exists()
    assert not journal.exists(), "SQLite would apply it to the restored database"
    kept = sorted(done["kept"])
    assert [path.partition(".before-")[0] for path in kept] == [str(fence.parent), str(journal)]
    assert Path(kept[0], "more").read_text() == "new\n"


def test_the_newest_is_the_newest_in_whatever_zone_it_was_made(
    calls: tuple[Call, Call], machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """restic writes local times, and a night in autumn has one hour twice."""
    back_up, restore = calls
    monkeypatch.setenv("TZ", "Pacific/Kiritimati")  # 14 hours before London
    older = back_up()
    fence = machine / "var/lib/gaudi3-scale/health/fence.json"
    fence.write_text('{"reason": "newer"}\n')
    monkeypatch.setenv("TZ", "UTC")
    newer = back_up()
    assert (older["changed"], newer["changed"]) == (True, True)
    fence.unlink()
    assert restore(overwrite=True)["snapshot"] == newer["snapshot"] and "newer" in fence.read_text()

    earlier = time.time() - 7200
    monkeypatch.setattr(time, "time", lambda: earlier)
    said = [call()["msg"] for call in calls]
    for each, end in zip(
        said, ("forgets " + newer["snapshot"], "give the snapshot that is meant by its name"), strict=True
    ):
        assert each.startswith(f"snapshot {newer['snapshot']} is of 20")
        assert ", which is later than the clock of this machine (20" in each and each.endswith(f"{end}.")


def test_only_what_changed_makes_a_new_snapshot_and_an_old_one_can_be_named(
    calls: tuple[Call, Call], machine: Path, tmp_path: Path
) -> None:
    back_up, restore = calls
    first = back_up()["snapshot"]
    fence = machine / "var/lib/gaudi3-scale/health/fence.json"
    fence.chmod(0o600)
    second = back_up(diff=True)
    assert second["changed"] and second["snapshot"] != first
    lines = {*second["diff"]["before"].splitlines()} ^ {*second["diff"]["after"].splitlines()}
    assert sorted(line[:4] + line[-16:] for line in lines) == ["0600fence/fence.json", "0644fence/fence.json"]
    assert restore()["changed"] is False
    elsewhere = str(tmp_path / "not/there/yet")
    old = restore(snapshot=first, check=True, overwrite=True, working_folder=elsewhere)
    assert old["differences"] == ["fence/fence.json has mode 0600, and had 0644"]
    assert back_up(check=True, working_folder=elsewhere)["changed"] is False
    assert not (tmp_path / "not").exists(), "a dry run leaves nothing behind"
    unknown = restore(snapshot="ffffffff")
    assert unknown["msg"].startswith("snapshot is 'ffffffff': give latest or one of ")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"password": ""}, "the password of the repository is empty: give one, and keep it where the backup is not."),
        ({"kinds": []}, "nothing is named to be backed up: give kinds, folders or paths."),
        (
            {"repository": "backups"},
            "repository is 'backups': give an absolute path or an address of restic, such as "
            "sftp:backup@store:/srv/gaudi or s3:https://store/bucket.",
        ),
        (
            {"repository": "/mnt/not-mounted/gaudi"},
            "/mnt/not-mounted, the folder of the repository, is not there: mount or make it.",
        ),
        ({"restic_executable": "restic-9"}, "restic-9 is not on this machine: install the package restic."),
        ({"root": "here"}, "root is 'here': give an absolute path."),
    ],
)
def test_what_cannot_work_is_refused_before_anything_is_made(
    calls: tuple[Call, Call], tmp_path: Path, options: dict[str, Any], said: str
) -> None:
    for call in calls:
        assert call(**options)["msg"] == said
    assert not (tmp_path / "repository").exists() and not (tmp_path / "work").exists()


def test_a_working_folder_with_anothers_files_is_refused(calls: tuple[Call, Call], tmp_path: Path) -> None:
    thesis = tmp_path / "work/copy/thesis"
    thesis.parent.mkdir(parents=True)
    thesis.write_text("mine")
    for call in calls:
        for check in (True, False):
            said = call(check=check)["msg"]
            assert said == (
                f"{tmp_path}/work/copy is there, and no backup made it: give a working_folder for backups alone."
            )
    assert thesis.read_text() == "mine" and [each.name for each in (tmp_path / "work").iterdir()] == ["copy"]


def test_what_would_be_copied_into_itself_is_refused(calls: tuple[Call, Call], machine: Path) -> None:
    home = machine / "home/me"
    (home / ".cache").mkdir(parents=True)
    for call in calls:
        for option, place in (("working_folder", home / ".cache/backup"), ("repository", home / "store")):
            assert call(paths=["/home/me"], **{option: str(place)})["msg"] == (
                f"{option} {place} lies in {home}, which is backed up: give a place outside of it, or name what is "
                "backed up more narrowly."
            )
    assert [each.name for each in home.rglob("*")] == [".cache"]


def test_another_password_or_machine_is_refused(calls: tuple[Call, Call]) -> None:
    back_up, restore = calls
    assert restore()["msg"] == "there is no repository: give the one that the backups were made in."
    back_up()
    for call in calls:
        said = call(password="another")["msg"]
        assert said == "the repository cannot be read: wrong password or no key found."
    assert restore(host="two")["msg"].startswith("the repository has no backup of two: give host, as it was called")
    less = restore(kinds=["monitoring", "node"])["msg"]
    assert less.startswith("the backup has ") and "/etc/munge/munge.key" in less


def test_a_store_that_is_away_is_not_taken_for_one_without_a_repository(
    calls: tuple[Call, Call], tmp_path: Path
) -> None:
    away = tmp_path / "restic-without-network"
    reason = "unable to open config file: Stat: dial tcp 192.0.2.1:443: connect: connection refused"
    question = "Is there a repository at the following location?"
    away.write_text(f"#!/bin/sh\nprintf '%s\\n' 'Fatal: {reason}' '{question}' s3:https://store/one >&2; exit 1\n")
    away.chmod(0o755)
    for call in calls:
        said = call(repository="s3:https://store/one", restic_executable=str(away), check=True)["msg"]
        assert said.startswith(f"the repository cannot be read: {reason}")


def test_another_layout_and_a_half_made_snapshot_are_never_restored(
    calls: tuple[Call, Call], machine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    back_up, restore = calls
    whole = back_up()["snapshot"]

    # A snapshot of a run whose copy lost a file, as restic makes one where a file cannot be read.
    def staged(*arguments: Any) -> Any:
        found = original(*arguments)
        os.unlink(os.path.join(arguments[1], "items/fence/fence.json"))
        return found

    original = saving.stage
    (machine / "etc/slurm/slurm.conf").write_text("ClusterName=other\n")
    with monkeypatch.context() as patched:
        patched.setattr(saving, "stage", staged)
        lacking = back_up()["msg"]
    assert "lacks fence/fence.json" in lacking
    shutil.rmtree(machine / "etc/slurm")
    passed_over = restore(check=True)
    assert passed_over["snapshot"] == whole
    (half,) = passed_over["not_whole"]
    assert f"Newer snapshots are not whole, and were skipped: {half}." in str(passed_over["warnings"])
    assert restore(snapshot=half)["msg"].startswith("no snapshot of one is whole")
    # The next run does not take it for the content that it has.
    assert back_up()["changed"] is True

    with monkeypatch.context() as patched:
        patched.setattr(manifest, "LAYOUT", 2)
        (machine / "etc/munge/munge.key").chmod(0o400)
        assert back_up()["changed"] is True
    assert restore()["msg"].endswith(
        "has layout 2, and this version of gaudi3.scale reads layout 1: install version 0.1.0, or a later one."
    )


def test_a_file_that_grows_is_copied_as_it_was(tmp_path: Path) -> None:
    log = tmp_path / "audit.jsonl"
    log.write_bytes(b"one\n" * 1000)
    original = os.fstat

    def grows(handle: int) -> os.stat_result:
        found = original(handle)
        with log.open("ab") as more:
            more.write(b"two\n")
        return found

    os.fstat = grows  # type: ignore[assignment]
    try:
        (entry,) = tree.take(str(log), str(tmp_path / "copy"), "audit")
    finally:
        os.fstat = original
    assert entry.size == 4000 and (tmp_path / "copy").read_bytes() == b"one\n" * 1000


def test_a_run_that_is_killed_at_any_instant_leaves_no_snapshot_or_a_whole_one(
    calls: tuple[Call, Call], machine: Path, tmp_path: Path
) -> None:
    """restic is killed while it stores, as a power cut does."""
    back_up, restore = calls
    stored = tmp_path / "restic-that-dies"
    stored.write_text('#!/bin/sh\ncase "$*" in *" backup "*) restic "$@" & sleep 0.05; kill -9 $!; kill -9 $$;; esac\n'
                      'exec restic "$@"\n')  # fmt: skip
    stored.chmod(0o755)
    died = back_up(restic_executable=str(stored))
    assert died["failed"] is True and died["msg"].startswith("restic backup failed, and nothing was added: ")
    assert restore()["msg"].startswith("the repository has no backup of one")
    assert back_up()["changed"] is True
    shutil.rmtree(machine / "etc")
    assert restore()["changed"] is True
    assert restore()["changed"] is False


def test_a_check_that_was_killed_does_not_keep_later_backups_out(
    calls: tuple[Call, Call], machine: Path, tmp_path: Path
) -> None:
    """The machine loses its power while the repository is locked for a check, and nobody is there to unlock it."""
    back_up, restore = calls
    back_up()
    # The index is waited for without an end, behind the lock.
    (index,) = (tmp_path / "repository/index").iterdir()
    index.rename(tmp_path / "index")
    os.mkfifo(index)
    own = {**os.environ, "RESTIC_REPOSITORY": str(tmp_path / "repository"), "RESTIC_PASSWORD": PASSWORD}
    check = subprocess.Popen(["restic", "--quiet", "--no-cache", "check"], env=own)
    # Under its last name, which is that of its content.
    while not [each for each in (tmp_path / "repository/locks").iterdir() if len(each.name) == 64]:
        assert check.poll() is None
        time.sleep(0.02)
    check.kill()
    check.wait()
    index.unlink()
    (tmp_path / "index").rename(index)
    (machine / "etc/slurm/slurm.conf").write_text("ClusterName=other\n")
    done = back_up()
    assert done.get("changed"), done["msg"]
    assert restore()["changed"] is False and not [*(tmp_path / "repository/locks").iterdir()]


def test_another_run_at_the_same_time_is_refused(calls: tuple[Call, Call], tmp_path: Path) -> None:
    with saving.alone(str(tmp_path / "work"), False):
        said = calls[0]()["msg"]
    assert said == (
        f"another backup or restore is at work in {tmp_path}/work: wait until it has ended, then run again."
    )


def test_two_clusters_with_a_host_of_one_name_in_one_repository(
    calls: tuple[Call, Call], machine: Path, tmp_path: Path
) -> None:
    """Neither a restore nor retention takes what is the other's."""
    back_up, restore = calls
    fence = machine / "var/lib/gaudi3-scale/health/fence.json"
    mine = back_up(kinds=["node"], cluster="hall-1")
    fence.write_text('{"reason": "of the other cluster"}\n')
    other = back_up(kinds=["node"], cluster="hall-2")
    assert mine["changed"] and other["changed"]
    fence.unlink()
    unsaid = restore(kinds=["node"], overwrite=True)
    assert unsaid["msg"].startswith(
        "the repository has backups of one of the clusters hall-1, hall-2: say which is mea"
    )
    named = restore(kinds=["node"], overwrite=True, cluster="hall-1", snapshot=other["snapshot"])
    assert (
        named["msg"]
        == f"snapshot {other['snapshot']} is of the cluster hall-2, and cluster is hall-1: correct one of them."
    )
    assert not fence.exists()
    restored = restore(kinds=["node"], overwrite=True, cluster="hall-1")
    assert (restored["snapshot"], fence.read_text()) == (mine["snapshot"], '{"reason": "port 7"}\n')

    stores = {
        name: Repository(str(tmp_path / "repository"), PASSWORD, cluster=name) for name in ("hall-1", "hall-2", "")
    }
    fence.write_text('{"reason": "a later one"}\n')
    later = back_up(kinds=["node"], cluster="hall-1")
    stores["hall-1"].forget("one", {"last": 1})
    left = [(each.name, each.cluster) for each in stores[""].snapshots("one") or ()]
    assert left == [(later["snapshot"], "hall-1"), (other["snapshot"], "hall-2")]
    assert back_up(cluster="hall 1")["msg"].startswith("cluster is 'hall 1': give letters, digits, dots, hyphens and ")
