# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""A drop-in for sudo: a team starts and stops the units of its own jobs, and does nothing else as root."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .._printable import printable
from .._refusal import Refusal
from .declared import TeamEntry

#: What a job's unit has after "gaudi-train-TEAM-".
_REST = "[a-z0-9_-]*[a-z0-9]"
_JOB = re.compile(r"[a-z0-9](?:[a-z0-9_-]{0,61}[a-z0-9])?")
_PATH = re.compile(r"/[A-Za-z0-9_./-]+")


def drop_in(
    wanted: Sequence[TeamEntry], jobs: Sequence[str] = (), systemctl: str = "/usr/bin/systemctl", password: bool = True
) -> str:
    """The text of a file for /etc/sudoers.d.

    Without jobs, a rule matches the arguments by a regular expression from end to end, which has no place for a space,
    so that nothing fits that names a second unit or an option. sudo before 1.9.10 takes such a rule literally and
    matches nothing. A shell pattern is no way there: its ``*`` matches spaces too. With jobs, each unit is named
    as it is.

    Args:
        wanted: The teams.
        jobs: Names of jobs, each beginning with its team's name and ``-``.
        systemctl: Its path on the nodes.
        password: Whether sudo asks for the user's password.

    Raises:
        Refusal: A job has no team, or a name or path cannot be one.
    """
    if not _PATH.fullmatch(systemctl):
        raise Refusal(
            f"The path {printable(repr(systemctl), 80)} is not one of systemctl: give one as /usr/bin/systemctl"
        )
    names = {entry.name for entry in wanted}
    for job in jobs:
        if not _JOB.fullmatch(job) or job.partition("-")[0] not in names or "-" not in job:
            raise Refusal(
                f"The job {printable(repr(job), 80)} is none of a team: its name begins with the team's and '-', as "
                f"{wanted[0].name}-llama"
            )
    lines = ["# Written by gaudi3-deploy teams sudoers. Check it with visudo -cf before it is put into /etc/sudoers.d."]
    if not jobs:
        lines.append("# Needs sudo 1.9.10 or newer; an older one matches nothing of this.")
    for entry in wanted:
        units = [f"gaudi-train-{job}.service" for job in jobs if job.partition("-")[0] == entry.name]
        if jobs and not units:
            continue
        alias = f"GAUDI_{entry.name.upper()}"
        change = [f"{systemctl} {verb} {unit}" for unit in units for verb in ("start", "stop")]
        # systemctl shows with a pager on a terminal, and a pager starts a shell for who asks it.
        show = [f"{systemctl} --no-pager status {unit}" for unit in units]
        if not jobs:
            unit = rf"gaudi-train-{entry.name}-{_REST}\.service$"
            change, show = [f"{systemctl} ^(start|stop) {unit}"], [f"{systemctl} ^--no-pager status {unit}"]
        hosts = ", ".join(entry.nodes) or "ALL"
        tag = "" if password else "NOPASSWD: "
        lines += [
            "",
            f"User_Alias {alias} = {', '.join(entry.users)}",
            f"Cmnd_Alias {alias}_CHANGE = {', '.join(change)}",
            f"Cmnd_Alias {alias}_SHOW = {', '.join(show)}",
            f"{alias} {hosts} = (root) {tag}{alias}_CHANGE",
            f"{alias} {hosts} = (root) NOEXEC: {tag}{alias}_SHOW",
        ]
    return "\n".join(lines) + "\n"
