"""An end that comes without this machine: a timer on every node, which powers it off at the run's last moment.

systemd stops the job's unit first, by the signal that the trainer takes for an interruption: it saves a checkpoint.
Whether a machine that is powered off costs nothing is the cloud's rule; its disks and what is beside it go on costing.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from gaudi3_deploy import nodes, ssh
from gaudi3_deploy.errors import DeployError
from gaudi3_deploy.record import Deployment

#: Variable of a root module that does the same from the machine's first start on.
VARIABLE = "ttl"
GRACE = 600.0
"""Seconds after the run's end for its own way out: saving, fetching, destroying."""
UNIT = """set -eu
sudo=""; [ "$(id -u)" -eq 0 ] || sudo="sudo -n"
put() { $sudo tee "/etc/systemd/system/gaudi3-ttl.$1" >/dev/null; }
put service <<'END'
[Unit]
Description=Power off: the run's time is over
[Service]
Type=oneshot
ExecStart=/usr/bin/systemctl poweroff
END
put timer <<'END'
[Unit]
Description=The end of the run's time
[Timer]
OnCalendar={when} UTC
Persistent=true
[Install]
WantedBy=timers.target
END
$sudo systemctl daemon-reload
$sudo systemctl enable gaudi3-ttl.timer
$sudo systemctl restart gaudi3-ttl.timer
"""


def span(ttl: float) -> str:
    """The variable's value for a run of this many seconds: one number and one unit."""
    minutes = math.ceil((ttl + GRACE) / 60)
    return f"{minutes}m" if minutes < 10_000 else f"{math.ceil(minutes / 60)}h"


def script(until: float) -> str:
    """What is run on a node; `until` in seconds since 1970."""
    return UNIT.replace("{when}", time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(until)))


def install(deployment: Deployment, until: float, log: Callable[[str], None]) -> None:
    """Put the timer on every machine. Raises DeployError where one did not take it."""
    machines = [machine.name for machine in nodes.machines(nodes.on_record(deployment))]
    last = until + GRACE
    answers = ssh.on_each(machines, lambda node: ssh.run(deployment, node, "sh -s", given=script(last)))
    for node, answer in zip(machines, answers, strict=True):
        if answer.returncode:
            said = (answer.stderr.strip().splitlines() or [f"exit code {answer.returncode}"])[-1]
            raise DeployError(f"{node} did not take the timer that ends it ({said}): nothing would end it without you.")
    when = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(last))
    log(f"{len(machines)} machine(s) power off at {when} by themselves")
