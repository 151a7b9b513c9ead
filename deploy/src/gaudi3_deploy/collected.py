"""Logs of all nodes, as the monitoring host has them that role `logs` sends them to."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gaudi3_deploy import duration, nodes, ssh
from gaudi3_deploy.collection._printable import printable
from gaudi3_deploy.errors import DeployError, UsageError
from gaudi3_deploy.record import Deployment

READER = "/usr/local/bin/gaudi-logs"
#: Exit codes: the host has no reader; it refuses the question.
NO_READER, REFUSED = 127, 2
LONGEST = 300.0
"""Seconds for an answer."""
WIDEST = 5000
"""Characters of a line that are shown."""


@dataclass(frozen=True)
class Question:
    """What is wanted of the logs."""

    job: str | None = None
    rank: int | None = None
    since: str | None = None
    kernel: bool = False
    node: str | None = None
    lines: int = 1000

    def arguments(self) -> list[str]:
        """The arguments of the reader on the host. Raises UsageError for a time that is none."""
        given = {
            "--job": self.job,
            "--rank": self.rank,
            "--since": None if self.since is None else f"{round(duration.seconds(self.since))}s",
            "--node": self.node,
            "--lines": self.lines,
        }
        named = [f"{name}={value}" for name, value in given.items() if value is not None]
        return [*named, *(["--kernel"] if self.kernel else [])]


def show(
    deployment: Deployment,
    outputs: Mapping[str, Any],
    question: Question,
    write: Callable[[str], None],
    complain: Callable[[str], None],
) -> int:
    """Write the lines that have been collected; 1 where those of some node could not be read."""
    machines = nodes.machines(outputs)
    collectors = [each.name for each in machines if each.is_monitor]
    if not collectors:
        raise UsageError(
            f"Deployment {deployment.name!r} has no monitoring machine that could collect logs: ask one node, as in "
            f"`gaudi3-deploy logs {deployment.name} JOB --node {machines[0].name}`."
        )
    arguments = shlex.join([READER, *question.arguments()])
    script = f'[ -x {READER} ] || exit {NO_READER}; sudo=""; [ "$(id -u)" -eq 0 ] || sudo="sudo -n"; $sudo {arguments}'
    answer = ssh.run(deployment, collectors[0], script, timeout=LONGEST)
    said = _lines(answer.stderr)
    if answer.returncode == NO_READER:
        raise DeployError(
            f"{collectors[0]} collects no logs: run `ansible-playbook -i $(gaudi3-deploy inventory {deployment.name}) "
            "gaudi3.scale.logs` first."
        )
    if answer.returncode == REFUSED:
        raise UsageError((said or ["It was refused."])[-1].removeprefix("gaudi-logs: "))
    if answer.returncode not in (0, 1) or (answer.returncode and not answer.stdout and not said):
        raise DeployError(f"{collectors[0]} does not show its logs ({(said or ['no answer'])[-1]}).")
    for line in _lines(answer.stdout):
        write(line)
    for line in said:
        complain(line)
    return answer.returncode


def _lines(text: str) -> Sequence[str]:
    """Lines of another machine, safe to show."""
    return [printable(line, WIDEST) for line in text.split("\n") if line.strip()]
