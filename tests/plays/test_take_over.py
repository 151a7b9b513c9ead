"""A monitoring host that has a Prometheus of a site's own: refused, taken over, and never shared by two clusters."""

from __future__ import annotations

import json
import shutil

import yaml

from .cluster import Cluster
from .host import CHECKOUT
from .test_secrets import SUBSET

SITE = """global: {external_labels: {site: berlin}}
rule_files: [site-rules.yml]
scrape_configs:
  - {job_name: storage, static_configs: [{targets: ["10.5.0.1:9100"]}]}
"""
ARGUMENTS = 'ARGS="--storage.tsdb.retention.time=400d --web.enable-lifecycle"\n'
CONFIGURATION, DEFAULT = "/etc/prometheus/prometheus.yml", "/etc/default/prometheus"


def without_its_end(cluster: Cluster) -> str:
    """A file with the role but for its last tasks, which ask over TLS: nobody answers here."""
    copy = cluster.folder / "roles/prometheus"
    shutil.copytree(CHECKOUT / "roles/prometheus", copy)
    tasks = yaml.safe_load((copy / "tasks/main.yml").read_text())
    assert tasks.pop()["name"] == "Verify Prometheus"
    (copy / "tasks/main.yml").write_text(yaml.safe_dump(tasks))
    play = {"hosts": "monitoring", "gather_subset": SUBSET, "roles": ["prometheus"]}
    path = cluster.folder / "until.yml"
    path.write_text(json.dumps([play]))
    return str(path)


def test_a_sites_prometheus_is_refused_then_taken_over_and_stays_one_clusters(cluster: Cluster) -> None:
    host = cluster.add("mon", "monitoring", cards=0, system="debian")
    cluster.variables["gaudi-1"] = {"ansible_host": "192.0.2.1"}
    cluster.groups["gaudi"] = ["gaudi-1"]
    cluster.all["gaudi_secrets_dir"] = str(cluster.folder / "secrets")
    host.give(packages={"prometheus": "2.42.0"})
    (host.folder / "bin/promtool").write_text("#!/bin/sh\n")
    (host.folder / "bin/promtool").chmod(0o755)
    for path, text in ((CONFIGURATION, SITE), (DEFAULT, ARGUMENTS)):
        host.write(path, text)
    host.write("/lib/systemd/system/prometheus.service", "[Service]\nEnvironmentFile=/etc/default/prometheus\n")
    before = host.files()

    refused = cluster.role("prometheus", group="monitoring")
    assert refused.messages()[0].startswith(f"{CONFIGURATION}, {DEFAULT} on this host were not written by"), refused
    assert host.files() == before and host.acts() == []

    playbook = without_its_end(cluster)
    taken = cluster.play(playbook, prometheus_take_over=True)
    assert taken.returncode == 0, taken.messages()
    made = yaml.safe_load(host.path(CONFIGURATION).read_text())
    jobs = [job["job_name"] for job in made["scrape_configs"]]
    assert "storage" in jobs and "hpu" in jobs, (taken.messages(), jobs)
    assert made["rule_files"][0] == "site-rules.yml" and made["global"]["external_labels"] == {"site": "berlin"}
    arguments = host.path(DEFAULT).read_text()
    assert "--storage.tsdb.retention.time=400d" in arguments and "retention.size" not in arguments
    assert "--web.enable-lifecycle" in arguments
    kept = {path.name.split(".2")[0]: path.read_text() for path in host.path("/etc").rglob("*~")}
    assert kept == {"prometheus.yml": SITE, "prometheus": ARGUMENTS}

    second = cluster.play(playbook)
    assert second.changed() == set(), second.changed()
    assert "storage" in host.path(CONFIGURATION).read_text()

    # Another inventory that names the same host, with nodes and secrets of its own.
    files = host.files()
    cluster.variables["gaudi-1"] = {"ansible_host": "198.51.100.1"}
    cluster.all["gaudi_secrets_dir"] = str(cluster.folder / "others")
    for tags in ((), ("--tags", "prometheus_targets")):
        other = cluster.role("prometheus", *tags, group="monitoring")
        assert other.messages()[0].startswith("This host's prometheus watches gaudi-1 of another inventory"), other
    closed = cluster.play("firewall.yml", "--limit", "mon", firewall_enabled=True)
    assert closed.messages()[0].startswith("This host's prometheus watches gaudi-1 of another inventory"), closed
    assert host.files() == files
