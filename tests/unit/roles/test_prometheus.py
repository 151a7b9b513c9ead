"""What the role asks of the Prometheus that a distribution has."""

from __future__ import annotations

from pathlib import Path

import yaml

ROLE = Path(__file__).resolve().parents[3] / "roles" / "prometheus"


def test_the_monitoring_hosts_own_disks_are_watched() -> None:
    """Those have the data of Prometheus, and an alert on full file systems looks at what node_exporter says."""
    jobs = {job["name"]: job for job in yaml.safe_load((ROLE / "defaults/main.yml").read_text())["prometheus_jobs"]}
    assert jobs["node"]["groups"] == ["gaudi", "monitoring"]
    plays = yaml.safe_load((ROLE.parents[1] / "playbooks/monitoring.yml").read_text())
    roles = [
        (play.get("hosts"), task.get("ansible.builtin.import_role")) for play in plays for task in play.get("tasks", [])
    ]
    (hosts,) = [hosts for hosts, role in roles if role and role["name"] == "gaudi3.scale.node_exporter"]
    assert hosts == "gaudi:monitoring"
