"""Jobs on the nodes, as their systemd units: a stopped unit is an interruption, on which the trainer saves and ends."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gaudi3_deploy import nodes, ssh
from gaudi3_deploy.errors import DeployError
from gaudi3_deploy.record import Deployment

#: Names of the units that run, then a stop of all of them, which returns when they have ended.
STOP = """set -u
sudo=""; [ "$(id -u)" -eq 0 ] || sudo="sudo -n"
states=active,activating,deactivating
units=$(systemctl list-units --plain --no-legend --state=$states 'gaudi-train-*.service' | cut -d' ' -f1)
[ -z "$units" ] || { echo $units; $sudo systemctl stop $units; }
"""
LONGEST = 1800.0
"""Seconds for the last checkpoint."""


def drain(deployment: Deployment, say: Callable[[str], None], leave_out: Sequence[str] = ()) -> list[str]:
    """Have all jobs save and end, on all nodes at once; their units. Raises DeployError where a node did not."""
    outputs = nodes.on_record(deployment)
    names = [each["name"] for each in nodes.machines(outputs) if each.get("role") != "monitor"]
    names = [each for each in names if each not in leave_out]
    answers = ssh.each(names, lambda node: ssh.run(deployment, node, "sh -s", timeout=LONGEST, given=STOP))
    units: set[str] = set()
    for node, answer in zip(names, answers, strict=True):
        if answer.returncode:
            said = (answer.stderr.strip().splitlines() or [f"exit code {answer.returncode}"])[-1]
            raise DeployError(f"The jobs on {node} were not stopped ({said}): run the same command again.")
        units.update(answer.stdout.split())
    found = sorted(each.removeprefix("gaudi-train-").removesuffix(".service") for each in units)
    say(f"saved and ended: {', '.join(found)}" if found else "no job runs")
    return found
