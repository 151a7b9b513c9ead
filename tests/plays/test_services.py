"""Services of a node, written and started for real below the test's folder."""

from __future__ import annotations

from typing import Any

from .cluster import Cluster

UNIT = "prometheus-node-exporter.service"


def node(cluster: Cluster) -> Cluster:
    """A node on which the package is installed and its service runs."""
    cluster.gaudi(1, cards=0)
    host = cluster["gaudi-1"]
    host.give(packages={"prometheus-node-exporter": "1.3.1-1ubuntu0.22.04.3"})
    host.write(f"/lib/systemd/system/{UNIT}", "[Service]\n")
    host.unit("prometheus-node-exporter", "running")
    return cluster


def test_new_arguments_restart_a_service_once(cluster: Cluster) -> None:
    node(cluster)
    host = cluster["gaudi-1"]
    first = cluster.role("node_exporter", "--tags", "node_exporter_install")
    assert first.returncode == 0 and host.acts() == [f"systemctl restart {UNIT}"], (first.messages(), host.calls)
    arguments = host.path("/etc/default/prometheus-node-exporter").read_text()
    assert "--web.listen-address=10.0.0.1:9100" in arguments
    assert "--collector.diskstats.ignored-devices" in arguments  # its name in 1.3
    second = cluster.role("node_exporter", "--tags", "node_exporter_install")
    assert second.changed() == set() and host.acts() == [], second.changed()
    # Somebody else's exporter is in the unit's place: that its port answers is no success.
    host.unit("prometheus-node-exporter", "failed")
    host.path("/proc/4001/cgroup").write_text("0::/system.slice/node_exporter.service\n")
    host.path("/proc/4001/comm").write_text("node_exporter\n")
    third = cluster.role("node_exporter", "--tags", "node_exporter_install")
    assert third.messages() == [
        "Port 9100 of 10.0.0.1 is held by node_exporter (process 4001, node_exporter.service), so "
        f"{UNIT} cannot listen there: stop and disable what holds it, or give another port as node_exporter_port."
    ]
    assert third.returncode != 0 and host.acts() == []


def test_a_version_of_ones_own_has_its_own_arguments(cluster: Cluster) -> None:
    """Debian 11's own is 1.1, and the one of its backports was never seen."""
    cluster.add("gaudi-1", "gaudi", cards=0, system="debian-11")
    host = cluster["gaudi-1"]
    host.give(packages={"prometheus-node-exporter": "1.5.0-1~bpo11+1"})
    host.write(f"/lib/systemd/system/{UNIT}", "[Service]\n")
    given: dict[str, Any] = {"node_exporter_package": "prometheus-node-exporter=1.5.0-1~bpo11+1"}
    predicted, first, second = (
        cluster.role("node_exporter", *more, "--tags", "node_exporter_install", **given)
        for more in (("--check",), (), ())
    )
    assert first.returncode == 0, first.messages()
    assert predicted.changed() == first.changed() and len(first.changed()) == 1
    assert "--collector.diskstats.device-exclude" in host.path("/etc/default/prometheus-node-exporter").read_text()
    assert second.changed() == set(), second.changed()


def test_a_restart_that_failed_is_made_up_for(cluster: Cluster) -> None:
    node(cluster)
    host = cluster["gaudi-1"]
    host.give(faults=[f"restart {UNIT}"])
    assert cluster.role("node_exporter", "--tags", "node_exporter_install").returncode != 0
    second = cluster.role("node_exporter", "--tags", "node_exporter_install")
    assert second.returncode == 0 and host.acts() == [f"systemctl restart {UNIT}"], second.messages()
