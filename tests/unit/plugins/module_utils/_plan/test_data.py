"""What role data brings to a node, and what it refuses."""

from __future__ import annotations

import base64
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._plan import data

FSTAB = "# a mount of the site\nnas:/export /mnt/site nfs ro 0 0\n"
GOOD = {"source": "/mnt/prepared/a/"}


def decided(**given: Any) -> dict[str, Any]:
    values = {
        "inventory_hostname": "gaudi-1",
        "data_dir": "/var/lib/gaudi3-scale/data",
        "data_budget": "",
        "_data_fstab": {"content": base64.b64encode(FSTAB.encode()).decode()},
        **given,
    }
    return dict(data.decide(values.get))


def test_what_goes_makes_room_first_and_what_stays_is_named() -> None:
    sets = [
        GOOD,
        {"source": "/opt/own/deep/e/"},
        {"source": "b/c", "remote": "store"},
        {"source": "/mnt/d", "state": "absent"},
    ]
    store = {"type": "s3", "access_key_id": "AKIA", "key_file": "/x", "key_use_agent": False}
    found = decided(data_sets=sets, data_remotes={"store": store}, data_budget="2T",
        data_mounts=[{"path": "/mnt/prepared", "source": "nas:/e"}],
        data_files=[{"source": "own/", "path": "/opt/own/deep/"}])  # fmt: skip
    assert [(each["source"], each["state"], each["origin"]) for each in found["sets"]] == [
        ("/mnt/d", "absent", ""),
        ("/mnt/prepared/a", "present", "mount"),
        ("/opt/own/deep/e", "present", "files"),
        ("b/c", "present", "remote"),
    ]
    assert (found["problem"], found["names"], found["budget"]) == ("", ["a", "e", "c"], 2 * 2**40)
    assert (found["reads_remotes"], found["folders"]) == (True, ["/opt/own"])


def test_two_folders_and_files_of_two_names_may_come_into_one() -> None:
    both = [{"source": "own/", "path": "/opt/own"}, {"source": "other/", "path": "/opt/own"}]
    files = [{"source": "a.py", "path": "/opt/own/"}, {"source": "b.py", "path": "/opt/own/"}]
    assert decided(data_sets=[], data_files=[*both, *files])["problem"] == ""


@pytest.mark.parametrize(
    ("path", "unit"),
    [("/mnt/prepared", "mnt-prepared.mount"), ("/srv/a-b/c.d_e", r"srv-a\x2db-c.d_e.mount")],
)
def test_units_have_the_names_of_systemd_escape(path: str, unit: str) -> None:
    assert data.unit_of(path) == unit


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd-analyze is not on this machine")
@pytest.mark.parametrize(
    "mount",
    [
        {"source": "nas:/export/prepared"},
        {"source": "[fd00::1]:/export", "options": "ro,vers=4.2,nconnect=8,proto=rdma"},
        {"source": "10.0.0.5:/a#b;c", "options": "soft,timeo=50,_netdev"},
    ],
)
def test_systemd_understands_the_unit_of_a_mount(mount: dict[str, str], tmp_path: Path) -> None:
    path = tmp_path / data.unit_of("/mnt/pre-pared")
    path.write_text(data.unit_text({"path": "/mnt/pre-pared", **mount}))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(path)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, [line for line in done.stderr.splitlines() if path.name in line]) == (0, [])


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"data_dir": "data"}, "data_dir is 'data': give an absolute path of "),
        ({"data_budget": "2 TB"}, 'data_budget is "2 TB": write a number and one of M, G and T, such as 2T, or'),
        ({"data_sets": [GOOD, {"source": "/b/a"}]}, "data_sets has a twice: a node has one set of a name, so keep one"),
        ({"data_sets": [{"source": "/mnt/.."}]}, "data_sets: '..' is no name of a set: letters, digits, - and _ are "),
        ({"data_sets": [{"source": f"/mnt/{'a' * 102}"}]}, "data_sets: The set's name has 102 characters, and "),
        ({"data_sets": [{"source": "/var/lib/gaudi3-scale/data/in/a"}]}, "data_sets has the source /var/lib/gaudi3-"
            "scale/data/in/a, and data_dir is /var/lib/gaudi3-scale/data: keep the nodes' own folder apart from "),
        ({"data_sets": [GOOD], "data_dir": "/mnt/prepared/a/"}, "data_sets has the source /mnt/prepared/a, and data_"),
        ({"data_sets": [{"source": "b/a"}]}, "data_sets has the source b/a: give an absolute path, or the name of "),
        ({"data_sets": [{"source": "b/a", "remote": "s"}]}, "data_sets has the remote s for b/a, and data_remotes "),
        (
            {"data_sets": [{"source": "b/a", "remote": "s"}], "data_remotes": {"s": {}}},
            "data_remotes has no type for s: give the kind of store as rclone names it, such as s3.",
        ),
        (
            {"data_remotes": {"s": {"type": "s3", "access_key_id": "AKIA", "secret_access_key": "hush"}}},
            "data_remotes has secret_access_key for s, which is a secret and would stand in logs: put it into "
            "data_remote_secrets.",
        ),
        ({"data_remotes": {"s": {"type": "webdav", "pass": "hush"}}}, "data_remotes has pass for s, which is a secret"),
        ({"data_remotes": {"s": {"type": "http", "url": "https://me:hush@x/"}}}, "data_remotes has url for s, which "),
        ({"data_mounts": [{"path": "mnt", "source": "n:/e"}]}, "data_mounts has the path 'mnt': give an absolute one "),
        ({"data_mounts": [{"path": "/mnt/site/", "source": "n:/e"}]}, "/mnt/site is in /etc/fstab of gaudi-1: take "),
        (
            {"data_mounts": [{"path": "/mnt/a", "source": "n:/e"}, {"path": "/mnt/a/", "source": "n:/f"}]},
            "data_mounts has the path /mnt/a twice: keep one of them.",
        ),
        (
            {"data_files": [{"source": "x/a", "path": "/opt/a"}, {"source": "y/a", "path": "/opt/a"}]},
            "data_files has the path /opt/a twice: keep one of them.",
        ),
        ({"data_mounts": [{"path": "/mnt/a", "source": "n"}]}, "data_mounts has the source 'n': write it as HOST:"),
        (
            {"data_mounts": [{"path": "/mnt/a", "source": "n:/e", "options": "ro\nExecStart=x"}]},
            "data_mounts has the options 'ro\\nExecStart=x': write them as mount(8) does, such as ",
        ),
        ({"data_mounts": [{"path": "/var/lib", "source": "n:/e"}]}, "data_mounts has /var/lib, and data_dir is "),
        ({"data_files": [{"source": "own", "path": "own"}]}, "data_files has the path 'own': give an absolute one"),
    ],
)  # fmt: skip
def test_what_cannot_work_is_said_in_one_sentence(given: dict[str, Any], said: str) -> None:
    problem = decided(**given)["problem"]
    assert problem.startswith(said) and problem.endswith(".") and "\n" not in problem and "hush" not in problem
