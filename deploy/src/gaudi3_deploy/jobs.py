"""Jobs on the nodes, as their systemd units: a stopped unit is an interruption, on which the trainer saves and ends."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from gaudi3_deploy import nodes, site, ssh
from gaudi3_deploy.errors import DeployError, UsageError
from gaudi3_deploy.record import Deployment

#: Names of the units that run.
LIST = """set -u
states=active,activating,deactivating
units=$(systemctl list-units --plain --no-legend --state=$states 'gaudi-train-*.service' | cut -d' ' -f1)
[ -z "$units" ] || echo $units
"""
#: The same, then a stop of all of them, which returns when they have ended.
STOP = f"""{LIST}
sudo=""; [ "$(id -u)" -eq 0 ] || sudo="sudo -n"
[ -z "$units" ] || $sudo systemctl stop $units
"""
LONGEST = 1800.0
"""Seconds for the last checkpoint."""
#: Where the inventory says that jobs are; else the role's default.
JOBS_DIR = "{{ trainer_jobs_dir | default('/var/lib/gaudi3-scale/jobs') }}"


def drain(deployment: Deployment, log: Callable[[str], None], leave_out: Sequence[str] = ()) -> list[str]:
    """Have all jobs save and end, on all nodes at once; their units. Raises DeployError where a node did not."""
    found = _ask(deployment, STOP, "were not stopped", LONGEST, leave_out)
    log(f"saved and ended: {', '.join(found)}" if found else "no job runs")
    return found


def stop(deployment: Deployment, collection: Path, log: Callable[[str], None], name: str | None = None) -> list[str]:
    """Have one job or all save and end, and stay so in later runs of site.yml; their names.

    Raises UsageError where the job does not run and others do.
    """
    running = _ask(deployment, LIST, "were not looked at", 60)
    if not running:
        log("no job runs")
        return []
    if name is not None and name not in running:
        raise UsageError(
            f"Job {name!r} does not run in deployment {deployment.name!r} (there is: {', '.join(running)}): name one."
        )
    chosen = [name] if name is not None else running
    for each in chosen:
        log(f"{each} saves and ends")
        given = {"name": each, "state": "stopped", "jobs_dir": JOBS_DIR}
        code = site.run_module(deployment, collection, "gaudi3.scale.gaudi_train", given)
        if code:
            raise DeployError(f"Job {each} was not stopped on every node (exit code {code}): run the same again.")
    log(
        f"stopped: {', '.join(chosen)}; to go on, run "
        f"`gaudi3-deploy site {deployment.name} -e trainer_resume_stopped=true`"
    )
    return chosen


def _ask(deployment: Deployment, script: str, failed: str, timeout: float, leave_out: Sequence[str] = ()) -> list[str]:
    """Names of the jobs that a script has printed the units of, on all nodes at once."""
    outputs = nodes.on_record(deployment)
    names = [each.name for each in nodes.workers(outputs)]
    names = [each for each in names if each not in leave_out]
    answers = ssh.on_each(names, lambda node: ssh.run(deployment, node, "sh -s", timeout=timeout, given=script))
    units: set[str] = set()
    for node, answer in zip(names, answers, strict=True):
        if answer.returncode:
            said = (answer.stderr.strip().splitlines() or [f"exit code {answer.returncode}"])[-1]
            raise DeployError(f"The jobs on {node} {failed} ({said}): run the same command again.")
        units.update(answer.stdout.split())
    return sorted(each.removeprefix("gaudi-train-").removesuffix(".service") for each in units)
