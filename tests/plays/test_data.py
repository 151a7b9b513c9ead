"""What role data brings to nodes, on a folder that plays the mount."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.unit.plugins.modules.test_gaudi_dataset import make, tree

from .cluster import Cluster

KEY = "755fdfaaf01f"
UNIT = "/etc/systemd/system/srv-pre\\x2dpared.mount"
MOUNTS = [{"path": "/srv/pre-pared", "source": "nas:/export/prepared"}]


def test_sets_and_files_are_brought_once_and_go_again(cluster: Cluster, tmp_path: Path) -> None:
    cluster.gaudi(2, cards=1)
    for host in cluster.hosts.values():
        make(host.path("/var/mnt/old"), seed=3)
        make(host.path("/var/mnt") / KEY)
    (tmp_path / "own").mkdir()
    (tmp_path / "own/train.py").write_text("print('trains')\n")
    make(tmp_path / "own/data/c0ffee", seed=5)
    given: dict[str, Any] = {
        "data_sets": [{"source": "/var/mnt/old"}, {"source": "/opt/own/data/c0ffee"}],
        "data_files": [{"source": f"{tmp_path}/own/", "path": "/opt/own"}],
        "data_mounts": MOUNTS,
        "data_mount_package": "",
    }
    checked = cluster.role("data", "--check", **given)
    assert checked.returncode == 0, checked.messages()
    host = cluster["gaudi-2"]
    assert not host.path("/var/lib/gaudi3-scale/data").exists() and not host.path(UNIT).exists()
    first = cluster.role("data", **given)
    assert (first.returncode, first.changed()) == (0, checked.changed()), first.messages()
    place = host.path("/var/lib/gaudi3-scale/data")
    assert tree(place / "old") == tree(host.path("/var/mnt/old"))
    assert tree(place / "c0ffee") == tree(tmp_path / "own/data/c0ffee")
    assert host.path("/opt/own/train.py").read_text() == "print('trains')\n"
    assert host.path(UNIT).read_text().splitlines()[1:] == [
        "[Unit]",
        "Description=Training data at /srv/pre-pared",
        "Wants=network-online.target",
        "After=network-online.target",
        "",
        "[Mount]",
        "What=nas:/export/prepared",
        "Where=/srv/pre-pared",
        "Type=nfs",
        "Options=ro,nosuid,nodev,noexec",
        "TimeoutSec=90",
        "",
        "[Install]",
        "WantedBy=remote-fs.target",
    ]
    unit = Path(UNIT).name
    assert [act for act in host.acts() if unit in act] == [f"systemctl enable {unit}", f"systemctl start {unit}"]
    again = cluster.role("data", **given)
    assert (again.returncode, again.changed()) == (0, set()), again.messages()

    # Another set takes the room of the one that is no longer in the list, and one of the list never goes.
    both = [{"source": "/var/mnt/old"}, {"source": f"/var/mnt/{KEY}"}]
    make(host.path("/var/mnt/big"), size=3 * 2**19)
    refused = cluster.role(
        "data", "--limit", "gaudi-2", data_sets=[*both, {"source": "/var/mnt/big"}], data_budget="3M"
    )
    assert refused.returncode != 0
    assert "The set has 3145762 bytes, and the budget of 3145728 bytes for " in refused.everything
    gone = [{"source": f"/x/{each}", "state": "absent"} for each in ("old", "c0ffee")]
    done = cluster.role("data", data_sets=[{"source": f"/var/mnt/{KEY}"}, *gone])
    assert done.returncode == 0, done.messages()
    assert sorted(each.name for each in place.iterdir() if not each.name.startswith(".")) == [KEY]

    play = cluster.folder / "remove.yml"
    play.write_text(
        "- hosts: gaudi\n  gather_facts: false\n  tasks:\n"
        "    - ansible.builtin.include_role: {name: gaudi3.scale.data, tasks_from: remove}\n"
    )
    removed = cluster.play(str(play), data_mounts=MOUNTS)
    assert removed.returncode == 0, removed.messages()
    assert not host.path(UNIT).exists() and (place / KEY).exists()


def test_a_dry_run_says_what_comes_from_a_mount_that_it_would_make(cluster: Cluster) -> None:
    cluster.gaudi(1, cards=1)
    given: dict[str, Any] = {"data_mounts": MOUNTS, "data_mount_package": ""}
    given["data_sets"] = [{"source": "/srv/pre-pared/755fdfaaf01f"}]
    checked = cluster.role("data", "--check", **given)
    assert checked.returncode == 0, checked.messages()
    assert ("gaudi-1", "gaudi3.scale.data : Remove and bring the sets") in checked.changed()
    refused = cluster.role("data", **given)
    assert refused.returncode != 0
    assert (
        "/srv/pre-pared/755fdfaaf01f/index.json is not there: is /srv/pre-pared/755fdfaaf01f mounted"
        in refused.everything
    )


def test_what_cannot_work_is_refused_before_a_change(cluster: Cluster) -> None:
    cluster.gaudi(1, cards=1)
    host = cluster["gaudi-1"]
    host.write("/etc/fstab", "# a mount of the site\nnas:/export /mnt/site nfs ro 0 0\n")
    refused = cluster.role("data", data_mounts=[{"path": "/mnt/site", "source": "nas:/export"}])
    said = "/mnt/site is in /etc/fstab of gaudi-1: take it out there, or out of data_mounts."
    assert (refused.returncode, refused.messages(), refused.changed()) == (2, [said], set())


def test_no_output_has_the_secrets_of_a_store(cluster: Cluster) -> None:
    """Where rclone is missing, or the store does not answer, with all that a run can print."""
    cluster.gaudi(1, cards=1)
    secret = "a-secret-of-the-store"
    run = cluster.role(
        "data",
        "-vvv",
        data_sets=[{"source": "corpora/a", "remote": "corpora"}],
        data_remotes={"corpora": {"type": "s3", "endpoint": "http://127.0.0.1:1"}},
        data_remote_secrets={"corpora": {"secret_access_key": secret}},
        data_remote_package="",
    )
    assert run.returncode != 0
    assert secret not in run.everything
