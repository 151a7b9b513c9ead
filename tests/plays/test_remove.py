"""remove_node.yml and remove.yml: what is gone afterwards, what stays, and what is asked before."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any

import pytest
import yaml

from ..ansible_run import PlaybookRun
from .cluster import Cluster
from .host import PACKAGES, RELEASE

Files = dict[str, tuple[int, bytes]]
FIREWALL = "gaudi3-scale-firewall.service"
INSTALL = ["fabric", "hpu_exporter_install", "node_exporter_install", "firewall"]
#: The driver's packages and what the node exporter's removal leaves.
LEFT = {"nftables": "1", "prometheus": "2", **dict.fromkeys(PACKAGES, RELEASE)}
SOURCE = "/etc/apt/sources.list.d/habana-artifactory.list"
JOB = "/var/lib/gaudi3-scale/jobs/demo/checkpoints/step-00000200/manifest.json"
TARGETS = "/etc/prometheus/targets-node.yml"
PLACED = {
    "/lib/systemd/system/prometheus-node-exporter.service": "[Service]\n",
}
#: What is put down by hand, as the roles that would need a network and real packages leave it.
BY_HAND = {
    "/etc/systemd/system/gaudi-train-demo.service": "[Service]\n",
    "/opt/gaudi3-scale/venv/bin/gaudi3-train": "#!/bin/sh\n",
    "/opt/gaudi3-scale/trainer/0123/gaudi3_scale.py": "",
    "/opt/gaudi3-scale/torch-1.23.0-695/bin/python": "",
    "/opt/gaudi3-scale/torch/bin/python": "",
    "/opt/gaudi3-scale/pytorch-tarballs.json": "{}",
    "/etc/gaudi3-scale/runtime.env": "GC_KERNEL_PATH=/x\n",
    "/etc/systemd/system/gaudi-node-health.timer": "[Timer]\n",
    "/etc/systemd/system/gaudi-node-health.service": "[Service]\n",
    "/etc/systemd/system/gaudi-train-.service.d/gaudi-node-health.conf": "[Service]\n",
    "/usr/local/lib/gaudi-node-health/gaudi_node_health.py": "",
}
KEPT = {JOB: "{}", "/etc/gaudi3-scale/mine.env": "A=1\n", "/var/log/mine": "", "/opt/gaudi3-scale/mine": ""}
MONITORING = [
    *(f"/etc/prometheus/{name}" for name in ("ca.crt", "server.crt", "server.key", "web.yml", "prometheus.yml")),
    *(f"/etc/prometheus/targets-{job}.yml" for job in ("node", "hpu", "training", "prometheus", "alertmanager")),
    "/etc/prometheus/rules-gaudi3.rules.yml", "/etc/prometheus/prometheus_password", "/etc/default/prometheus",
    "/etc/prometheus/alertmanager_password", "/etc/default/prometheus-alertmanager",
    *(f"/etc/prometheus/alertmanager{end}" for end in ("-ca.crt", ".crt", ".key", "-web.yml", ".yml")),
    "/etc/grafana/grafana.ini", "/etc/grafana/admin_password", "/etc/grafana/dashboards/gaudi3-training.json",
    "/etc/apt/sources.list.d/grafana.sources", "/etc/apt/keyrings/grafana.asc",
    "/etc/gaudi3-scale/watch/password", "/usr/local/lib/gaudi3-watch/gaudi3_watch/pages.py",
    "/etc/systemd/system/gaudi3-watch.service",
]  # fmt: skip
#: Of a host that serves, or that Slurm's controller runs on, and is nothing else.
APART = ["/opt/gaudi3-serving/bin/python", "/usr/local/lib/gaudi-backup/gaudi_backup.py"]
DATA = ["/var/lib/prometheus/metrics2/wal", "/var/lib/prometheus/alertmanager/silences", "/var/lib/grafana/grafana.db"]


@pytest.fixture(scope="module")
def site(new_cluster: Callable[[], Cluster]) -> Cluster:
    """Two nodes, of which the first is only named, and a host whose Prometheus watches both."""
    cluster = new_cluster()
    cluster.variables["gaudi-1"] = {"ansible_host": "192.0.2.1"}
    cluster.groups |= {"gaudi": ["gaudi-1"], "gaudi_head": ["gaudi-1"]}
    cluster.add("gaudi-2", "gaudi", cards=0)
    cluster.add("mon", "monitoring", cards=0, system="debian")
    cluster.add("apart", "serving", "slurm_controller", cards=0, system="debian")
    for host in cluster.hosts.values():
        host.give(packages={**LEFT, "prometheus-node-exporter": "1.3.1-1ubuntu0.22.04.3"})
        host.path("/usr/sbin").mkdir(parents=True)
        host.path("/usr/sbin/nft").symlink_to(host.folder / "bin/nft")
    cluster.all |= {"firewall_enabled": True, "fabric_ports": "reported"}
    return cluster


@pytest.fixture(scope="module")
def bare(site: Cluster) -> Files:
    """The node's files before anything was installed, and what is nobody's but the user's."""
    for path, text in KEPT.items():
        site["gaudi-2"].write(path, text)
    return site["gaudi-2"].files()


@pytest.fixture(scope="module")
def installed(site: Cluster, bare: Files) -> PlaybookRun:
    """The node with exporters, fabric and firewall by their roles, and with a job."""
    for path, text in PLACED.items():
        site["gaudi-2"].write(path, text)
    roles = ["fabric", "hpu_exporter", "node_exporter", "firewall"]
    facts = ["!all", "!min", "platform", "distribution", "pkg_mgr", "service_mgr"]
    play = {"hosts": "gaudi", "gather_subset": facts, "roles": [f"gaudi3.scale.{role}" for role in roles]}
    playbook = site.folder / "install.yml"
    playbook.write_text(json.dumps([play]))
    run = site.play(str(playbook), "--limit", "gaudi-2", "--tags", ",".join(INSTALL), umask=0o077)
    assert run.returncode == 0, run.messages()
    for path, text in BY_HAND.items():
        site["gaudi-2"].write(path, text)
    site["gaudi-2"].unit("gaudi-train-demo", "running")
    return run


def remove(site: Cluster, *arguments: str) -> PlaybookRun:
    return site.play("remove_node.yml", "--limit", "localhost,gaudi-2,mon", *arguments, gaudi_remove="gaudi-2")


@pytest.fixture(scope="module")
def predicted(site: Cluster, installed: PlaybookRun) -> tuple[PlaybookRun, Files, Files]:
    """The removal in check mode, with the node's files before and after it."""
    before = site["gaudi-2"].files()
    return remove(site, "--check", "--diff"), before, site["gaudi-2"].files()


@pytest.fixture(scope="module")
def removed(site: Cluster, predicted: Any) -> PlaybookRun:
    return remove(site)


def test_a_root_of_umask_077_leaves_services_the_way_to_their_files(site: Cluster, installed: PlaybookRun) -> None:
    root = site["gaudi-2"].root
    folders = [path for top in ("etc", "usr", "lib", "var") for path in (root / top).rglob("*") if path.is_dir()]
    assert root / "usr/local/lib/gaudi-hpu-exporter" in folders and root / "etc/gaudi3-scale" in folders
    assert [path for path in folders if path.stat().st_mode & 0o005 != 0o005] == []
    files = [*(root / "usr/local/lib/gaudi-hpu-exporter").iterdir(), *(root / "etc/systemd/system").glob("gaudi*")]
    assert [path for path in files if path.stat().st_mode & 0o004 == 0] == []


def test_a_prediction_removes_nothing(predicted: tuple[PlaybookRun, Files, Files]) -> None:
    run, before, after = predicted
    assert run.returncode == 0 and before == after, run.messages()


def test_the_node_is_as_it_was_before(site: Cluster, bare: Files, predicted: Any, removed: PlaybookRun) -> None:
    assert removed.returncode == 0 and removed.changed() == predicted[0].changed(), removed.messages()
    assert site["gaudi-2"].files() == bare
    assert not (site["gaudi-2"].folder / "nft").exists()
    assert json.loads((site["gaudi-2"].folder / "packages.json").read_text()) == LEFT


def test_services_and_jobs_are_stopped(site: Cluster, removed: PlaybookRun) -> None:
    stopped = [call for call in site["gaudi-2"].calls if call.startswith("systemctl stop")]
    units = ("gaudi-train-demo.service", "gaudi-hpu-exporter.service", FIREWALL)
    assert stopped == [f"systemctl stop {unit}" for unit in units]


def test_the_others_forget_it(site: Cluster, removed: PlaybookRun) -> None:
    targets = site["mon"].path(TARGETS).read_text()
    watched = [each["labels"]["instance"] for each in yaml.safe_load(targets)]
    assert watched == ["gaudi-1", "mon"]
    assert site["mon"].path("/etc/gaudi3-scale/firewall.nft").exists(), "the others' rules were not written anew"


@pytest.mark.parametrize(
    ("playbook", "given", "message"),
    [
        (
            "remove_node.yml",
            {"gaudi_remove": "gaudi-2,mon"},
            'gaudi_remove is "gaudi-2,mon": name the nodes of group gaudi to be taken out, which are no monitoring '
            "hosts, as in -e gaudi_remove=gaudi-2; remove.yml removes everything.",
        ),
        (
            "remove.yml",
            {},
            'gaudi_remove is "": to remove everything from 4 hosts give -e gaudi_remove=all; remove_node.yml takes '
            "out single nodes.",
        ),
    ],
)
def test_nothing_is_removed_that_is_not_named(
    site: Cluster, playbook: str, given: dict[str, Any], message: str
) -> None:
    run = site.play(playbook, **given)
    assert run.messages() == [message] and {host for host, *_rest in run.results()} == {"localhost"}


def test_everything_is_removed_but_the_data(site: Cluster, removed: PlaybookRun) -> None:
    """On the node all is gone already, so that only the driver is left to be removed there."""
    mon = site["mon"]
    for path in [*MONITORING, *DATA, "/etc/prometheus/mine.yml"]:
        mon.write(path, "1")
    # What the roles recorded; a file that somebody changed since, and one that was taken over.
    mon.write("/etc/prometheus/web.yml", "somebody's own")
    backup = "/etc/default/prometheus-alertmanager.2026-01-01@00:00:00~"
    mon.write(backup, "the site's")
    written = {path: hashlib.sha256(b"1").hexdigest() for path in MONITORING if "apt" not in path}
    for service in ("prometheus", "alertmanager", "grafana", "watch", "node_exporter"):
        backups = {"/etc/default/prometheus-alertmanager": backup} if service == "alertmanager" else {}
        files = {path: known for path, known in written.items() if service in path}
        record = {"files": files, "backups": backups}
        mon.write(f"/etc/gaudi3-scale/written/{service}.json", json.dumps(record))
    for path in APART:
        site["apart"].write(path, "1")
    run = site.play(
        "remove.yml", "--limit", "localhost,gaudi-2,mon,apart", gaudi_remove="all", gaudi_remove_data=["prometheus"],
        gaudi_remove_driver=True,
        alertmanager_package="prometheus-alertmanager", grafana_enabled=True,
    )  # fmt: skip
    assert run.returncode == 0, run.messages()
    assert {name for host, name in run.changed() if host == "gaudi-2"} == {
        "gaudi3.scale.synapseai : Remove the packages (apt)",
        "gaudi3.scale.synapseai : Remove the vendor's repository, its key and its pin",
    }
    assert json.loads((site["gaudi-2"].folder / "packages.json").read_text()) == {"nftables": "1", "prometheus": "2"}
    assert not site["gaudi-2"].path(SOURCE).exists()
    left = [path for path in [*MONITORING, *DATA, "/etc/prometheus/mine.yml"] if mon.path(path).exists()]
    stays = ["/etc/prometheus/web.yml", "/etc/default/prometheus-alertmanager", *DATA[1:], "/etc/prometheus/mine.yml"]
    assert left == stays
    assert mon.path("/etc/default/prometheus-alertmanager").read_text() == "the site's"
    assert not mon.path(backup).exists() and not list(mon.path("/etc/gaudi3-scale/written").iterdir())
    assert set(json.loads((mon.folder / "packages.json").read_text())) == {"nftables", *PACKAGES}
    assert not mon.path("/etc/gaudi3-scale/firewall.nft").exists() and not (mon.folder / "nft").exists()
    assert [path for path in APART if site["apart"].path(path).exists()] == []
