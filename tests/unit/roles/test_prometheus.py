"""What the role asks of the Prometheus that a distribution has."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from ..playbooks.jinja import evaluate, load

ROLE = Path(__file__).resolve().parents[3] / "roles" / "prometheus"


def test_files_are_checked_as_the_oldest_promtool_can() -> None:
    """That of Debian 11 (2.24) knows no option of `check`: "unknown long flag '--lint-fatal', try --help"."""
    tasks = yaml.safe_load((ROLE / "tasks/configure.yml").read_text())
    (validate,) = [task["ansible.builtin.template"]["validate"] for task in tasks if "'validate'" in str(task)]
    rules = re.findall(r"promtool [^')]+", validate)
    variables = yaml.safe_load((ROLE / "vars/main.yml").read_text())
    assert rules == ["promtool check rules %s"]
    assert variables["_prometheus_validate"]["prometheus.yml.j2"] == "promtool check config %s"


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


def test_a_target_that_does_not_answer_is_named() -> None:
    """An exporter that listens at another address than the inventory has is known to Prometheus, and down."""
    states = [
        ("node", "gaudi-1", "up"),
        ("hpu", "gaudi-2", "down"),
        ("node", "mon", "unknown"),
        ("training", "a", "down"),
        # Not there yet in a first run; its own role waits for it.
        ("alertmanager", "mon", "down"),
    ]
    targets = [{"labels": {"job": job, "instance": host}, "health": health} for job, host, health in states]
    silent = load("roles/prometheus/vars/main.yml")["_prometheus_silent"]
    assert evaluate(silent, _prometheus_answer={"json": {"data": {"activeTargets": targets}}}).split() == [
        "hpu/gaudi-2"
    ]
    assert not (evaluate(silent, _prometheus_answer={"skipped": True}) or "").strip()
    task = load("roles/prometheus/tasks/verify.yml")[-1]
    said = evaluate(task["ansible.builtin.debug"]["msg"], _prometheus_silent="hpu/gaudi-2 node/mon ")
    assert said.startswith("Prometheus gets no answer from hpu/gaudi-2, node/mon: ")
