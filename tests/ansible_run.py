"""One ``ansible-playbook`` run whose result is data, for every layer of tests that plays something."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

#: The callback that prints a run as JSON, for ANSIBLE_STDOUT_CALLBACK.
CALLBACK = "ansible.posix.json"

#: ansible-playbook, started so that it costs less.
ANSIBLE_PLAYBOOK = (sys.executable, str(Path(__file__).with_name("fast_playbook.py")))


def callback_that_shows(file: Path) -> dict[str, str]:
    """The environment in which a run whose result is data also writes what its user would see."""
    return {
        "ANSIBLE_CALLBACK_PLUGINS": str(Path(__file__).with_name("plays") / "callbacks"),
        "ANSIBLE_CALLBACKS_ENABLED": "screen",
        "SCREEN_FILE": str(file),
    }


@dataclass
class PlaybookRun:
    """Result of one ansible-playbook run."""

    returncode: int
    #: All that was printed besides the report: warnings, errors, traces.
    output: str
    report: dict[str, Any]
    #: All that was printed, the report included.
    everything: str = ""

    @classmethod
    def read(cls, returncode: int, stdout: str, stderr: str) -> PlaybookRun:
        """Take a run's output apart; a run that ended before its report has an empty one."""
        # What a verbose run says before its report has braces too.
        start = max(stdout.rfind('\n{\n    "custom_stats"') + 1, 0)
        try:
            report, end = json.JSONDecoder().raw_decode(stdout[start:])
        except ValueError:
            return cls(returncode, stdout + stderr, {"plays": [], "stats": {}}, stdout + stderr)
        return cls(returncode, stdout[:start] + stdout[start + end :] + stderr, report, stdout + stderr)

    def results(self) -> Iterator[tuple[str, str, dict[str, Any]]]:
        """(host, task name, result) of everything that ran."""
        for play in self.report["plays"]:
            for task in play["tasks"]:
                for host, result in task["hosts"].items():
                    yield host, task["task"]["name"], result

    def result(self, host: str, name: str) -> dict[str, Any]:
        """The one result of a task, by the end of its name, on a host."""
        found = [result for each, task, result in self.results() if each == host and task.endswith(name)]
        assert len(found) == 1, (name, host, [task for _host, task, _result in self.results()], self.output[-2000:])
        return found[0]

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
