"""Simulated clusters for the system tests, and site.yml runs whose result is data."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


def run(
    *command: str,
    cwd: Path = ROOT,
    timeout: float = 1800,
    given: dict[str, str] | None = None,
    **environment: str,
) -> subprocess.CompletedProcess[str]:
    """Run ``command`` in the checkout, ``given`` being more of its environment; the caller asserts."""
    return subprocess.run(
        command,
        cwd=cwd,
        env={**os.environ, **(given or {}), **environment},
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


@dataclass
class SiteRun:
    """Result of one ansible-playbook run."""

    returncode: int
    output: str
    report: dict[str, Any]

    def results(self) -> Iterator[tuple[str, str, dict[str, Any]]]:
        """(host, task name, result) of everything that ran."""
        for play in self.report["plays"]:
            for task in play["tasks"]:
                for host, result in task["hosts"].items():
                    yield host, task["task"]["name"], result

    def changed(self) -> set[tuple[str, str]]:
        """(host, task name) of every change, made or predicted."""
        return {(host, name) for host, name, result in self.results() if result.get("changed")}

    def messages(self) -> list[str]:
        """Messages of what failed."""
        return [
            str(result.get("msg", ""))
            for _host, _name, result in self.results()
            if result.get("failed") or result.get("unreachable")
        ]

    def count(self, host: str) -> int:
        """Tasks that cost ``host`` something: all but the skipped."""
        return sum(1 for each, _name, result in self.results() if each == host and not result.get("skipped"))


class Site:
    """A simulated cluster of its own, and playbook runs on it."""

    def __init__(self, name: str) -> None:
        self.name = name

    def up(self, nodes: int) -> None:
        result = run("gaudi3-simulator", "up", "--name", self.name, "--nodes", str(nodes))
        assert result.returncode == 0, result.stderr

    def down(self) -> None:
        run("gaudi3-simulator", "down", "--name", self.name)

    def play(self, *arguments: str, playbook: str = "site.yml", timeout: float = 1800) -> SiteRun:
        """Run ``ansible-playbook PLAYBOOK ARGUMENTS`` on the cluster."""
        return self.play_in({"GAUDI3_SIMULATOR_CLUSTER": self.name}, *arguments, playbook=playbook, timeout=timeout)

    def play_in(self, environment: dict[str, str], *arguments: str, playbook: str, timeout: float) -> SiteRun:
        """Run ``ansible-playbook PLAYBOOK ARGUMENTS`` in ``environment``."""
        result = run(
            "ansible-playbook", playbook, *arguments,
            timeout=timeout, given=environment, ANSIBLE_STDOUT_CALLBACK="ansible.posix.json",
        )  # fmt: skip
        start = result.stdout.find("{\n")
        try:
            report, _end = json.JSONDecoder().raw_decode(result.stdout[start:])
        except ValueError:
            report = {"plays": [], "stats": {}}
        return SiteRun(result.returncode, result.stdout[:start] + result.stderr, report)

    def restart(self, node: str) -> None:
        """Switch ``node`` off and on, whatever state its network is in."""
        run("gaudi3-simulator", "restart", "--name", self.name, node)

    def fault(self, node: str, *arguments: str) -> None:
        """Put a fault into ``node``."""
        result = run("gaudi3-simulator", "fault", "--name", self.name, node, *arguments)
        assert result.returncode == 0, result.stderr

    def status(self, host: str, job: str) -> dict[str, Any]:
        """The trainer's own status of ``job`` on ``host``; empty before it wrote one."""
        text = self.ssh(host, f"cat /var/lib/gaudi3-scale/jobs/{job}/status.json").stdout
        start = text.find("{")
        try:
            return dict(json.JSONDecoder().raw_decode(text[start:])[0])
        except ValueError:
            return {}

    def ssh(self, host: str, command: str) -> subprocess.CompletedProcess[str]:
        """Run ``command`` in ``host``'s shell as root."""
        return run("ansible", host, "-m", "ansible.builtin.raw", "-a", command, GAUDI3_SIMULATOR_CLUSTER=self.name)


@pytest.fixture(scope="module")
def site(request: pytest.FixtureRequest) -> Iterator[Site]:
    """An empty cluster of two Gaudi nodes and a monitoring host, for one module's tests."""
    cluster = Site("test-" + request.module.__name__.rsplit("test_", 1)[-1].replace("_", "-"))
    cluster.down()
    cluster.up(2)
    yield cluster
    cluster.down()
