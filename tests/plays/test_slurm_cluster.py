"""Role slurm where there is no Slurm yet: a controller, a node, and what is refused."""

from __future__ import annotations

import itertools
import os
import socket
from collections.abc import Iterator

import pytest

from .cluster import Cluster
from .host import Host
from .test_slurm_role import command

NODE = ("munge", "slurmd", "slurm-client")
CONTROLLER = ("munge", "slurmctld", "slurm-client", "slurmdbd", "mariadb-server")
POLICY = "printf 'slurmd:\\n  Installed: (none)\\n  Candidate: %s\\n' "
#: A client that has the database once it was made, and logs how it was called.
MARIADB = r"""echo "mariadb $*" >> {folder}/calls
input=$(cat)
case "$*" in
  *SHOW*)
    [ -e {folder}/made ] || exit 1
    case "$input" in *"password=$(cat {folder}/made)") echo 'GRANT ALL PRIVILEGES ON `slurm_acct_db`.* TO x';; esac;;
  *) echo "$input" | sed -n "s/^ALTER USER .* IDENTIFIED BY '\(.*\)';/\1/p" > {folder}/made;;
esac"""
#: Each test has a loopback address of its own.
NUMBERS = itertools.count(1)


@pytest.fixture
def address() -> Iterator[str]:
    """Where something listens on the ports of slurmctld and slurmdbd."""
    found = f"127.{100 + os.getpid() % 100}.{os.getpid() // 100 % 250}.{next(NUMBERS)}"
    with socket.create_server((found, 6817)), socket.create_server((found, 6819)):
        yield found


def install(host: Host, *packages: str, version: str = "22.05.8-4") -> None:
    """Have the packages and their units on a host."""
    host.give(packages=dict.fromkeys(packages, version))
    for name in ("munge", "slurmd", "slurmctld", "slurmdbd", "mariadb"):
        if any(package in (name, f"{name}-server") for package in packages):
            host.write(f"/lib/systemd/system/{name}.service", "[Service]\n")
    host.path("/etc/munge").mkdir(parents=True, exist_ok=True)
    command(host, "apt-cache", POLICY + version)
    command(host, "mariadb", MARIADB.format(folder=host.folder))


def site(cluster: Cluster, address: str) -> tuple[Host, Host]:
    """A controller and a node."""
    cluster.add("head", "slurm_controller", cards=0, variables={"gaudi_cluster_address": address})
    cluster.gaudi(1, cards=8)
    head, node = cluster["head"], cluster["gaudi-1"]
    install(head, *CONTROLLER)
    install(node, *NODE)
    cluster.all["slurm_existing"] = False
    cluster.variables["gaudi-1"].update(slurm_processors=160, slurm_memory=1000000)
    return head, node


def test_a_cluster_is_set_up_once_and_changed_as_little_as_possible(cluster: Cluster, address: str) -> None:
    head, node = site(cluster, address)
    checked = cluster.play("slurm.yml", "--check")
    assert checked.returncode == 0, checked.messages()
    assert not node.path("/etc/slurm").exists() and not (cluster.folder / "home/.config").exists()
    first = cluster.play("slurm.yml")
    assert first.returncode == 0, first.messages()
    assert checked.changed() == first.changed()

    # Services run after their files, and the controller after the nodes.
    starts = [call for call in cluster.calls if "start " in call]
    assert [call.split()[-1] for call in starts] == [
        "munge.service", "munge.service", "slurmd.service", "mariadb.service", "slurmdbd.service", "slurmctld.service",
    ]  # fmt: skip
    names = ("slurm.conf", "gaudi-read-again.conf", "cgroup.conf")
    files = {name: node.path(f"/etc/slurm/{name}").read_text() for name in names}
    assert files == {name: head.path(f"/etc/slurm/{name}").read_text() for name in names}
    lines = files["slurm.conf"].splitlines()
    assert f"AccountingStorageHost={address}" in lines
    assert any(line.startswith("NodeName=gaudi-1 ") and "CPUs=160 RealMemory=1000000" in line for line in lines)

    # The key is the same, and no secret is in a list of processes.
    key = node.path("/etc/munge/munge.key")
    assert key.read_text() == head.path("/etc/munge/munge.key").read_text() and len(key.read_text()) == 128
    assert node.mode("/etc/munge/munge.key") == 0o400
    assert head.mode("/etc/slurm/slurmdbd.conf") == 0o600
    password = (head.folder / "made").read_text().strip()
    assert f"StoragePass={password}\n" in head.path("/etc/slurm/slurmdbd.conf").read_text()
    assert len(password) == 32 and password not in "".join(head.calls) + first.everything
    assert key.read_text() not in first.everything

    again = cluster.play("slurm.yml")
    assert (again.returncode, again.changed()) == (0, set()), again.messages()

    # A time is read again, without a restart; another node's size is not.
    later = cluster.play("slurm.yml", slurm_stop_timeout=300)
    assert later.returncode == 0, later.messages()
    assert "KillWait=300\n" in node.path("/etc/slurm/gaudi-read-again.conf").read_text()
    assert changes(node) == [] and changes(head) == ["systemctl reload slurmctld.service"]
    cluster.variables["gaudi-1"]["slurm_memory"] = 900000
    bigger = cluster.play("slurm.yml", slurm_stop_timeout=300)
    assert bigger.returncode == 0, bigger.messages()
    assert changes(node) == ["systemctl restart slurmd.service"]
    assert changes(head) == ["systemctl restart slurmctld.service"]


def changes(host: Host) -> list[str]:
    """What systemctl was told to change."""
    return [act for act in host.acts() if act.startswith("systemctl ")]


def test_a_host_that_cannot_serve_stops_all_before_a_change(cluster: Cluster, address: str) -> None:
    head, node = site(cluster, address)
    command(node, "date", 'asked=${1#+}; echo "${asked%%:*}:$((${asked%%:*} + 400))"')
    refused = cluster.play("slurm.yml")
    assert refused.returncode != 0 and changes(head) == changes(node) == []
    assert all(
        message.startswith("The clock of gaudi-1 is ") and "ahead of that of head, and munge takes nothing" in message
        for message in refused.messages()
    )
    (node.folder / "bin/date").unlink()
    node.write("/etc/slurm/slurm.conf", "ClusterName=ours\n")
    refused = cluster.play("slurm.yml")
    assert refused.returncode != 0 and changes(head) == changes(node) == []
    assert refused.messages()[0].startswith("/etc/slurm/slurm.conf on this host was not written by this collection")
    assert node.path("/etc/slurm/slurm.conf").read_text() == "ClusterName=ours\n"
