"""What the role asks of the Prometheus that a distribution has."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

ROLE = Path(__file__).resolve().parents[3] / "roles" / "prometheus"


def test_files_are_checked_as_the_oldest_promtool_can() -> None:
    """That of Debian 11 (2.24) knows no option of `check`: "unknown long flag '--lint-fatal', try --help"."""
    tasks = yaml.safe_load((ROLE / "tasks/configure.yml").read_text())
    (validate,) = [task["ansible.builtin.template"]["validate"] for task in tasks if "'validate'" in str(task)]
    rules = re.findall(r"promtool [^')]+", validate)
    variables = yaml.safe_load((ROLE / "vars/main.yml").read_text())
    assert rules == ["promtool check rules %s"]
    assert variables["_prometheus_validate"]["prometheus.yml.j2"] == "promtool check config %s"
