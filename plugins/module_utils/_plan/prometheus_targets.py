# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""The targets of Prometheus: a file for each job, which of them it has to know, and which do not answer."""

from __future__ import annotations

from .._monitoring.prometheus_plan import DIRECTORY, Wanted
from .._printable import printable

#: Jobs whose targets need not answer: a job's page is there only while the job runs, and Alertmanager is installed
#: behind Prometheus, by a role that itself waits until it answers. Models are served once somebody says which.
QUIET = ("training", "alertmanager", "serving")


def target_file(job: str) -> str:
    """Where the targets of a job are."""
    return f"{DIRECTORY}/targets-{job}.yml"


def text(head: str, targets: str) -> str:
    """What is in it: the head of a managed file, and the targets as YAML."""
    return f"{head}# Prometheus notices a change of this file by itself.\n{targets}\n"


def expected(wanted: Wanted) -> list[str]:
    """The targets as job/host."""
    return [f"{job['name']}/{host}" for job in wanted.jobs for host in wanted.hosts(job["groups"])]


def silent_sentence(silent: object) -> str:
    """Which targets do not answer; empty where all do."""
    if not isinstance(silent, list) or not silent:
        return ""
    return (
        f"Prometheus gets no answer from {printable(', '.join(map(str, silent)))}: see whether the exporter runs "
        "there, and listens at the host's address on the cluster network."
    )
