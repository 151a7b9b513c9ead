# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""How a person opens a page of a monitoring host: its address, and a tunnel where the address is not reached."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from .._host.address import authority
from .._progress.unreachable import Login

#: Services by the user who logs in, and their names for people.
TITLES = {"prometheus": "Prometheus", "watch": "The cluster on one page"}
#: Why a page that is in order has red rows.
RED = "Its targets of the job training are red while no job runs: that is no fault."


def ways(address: str, port: object, secrets: str, folder: str, login: Login, service: str) -> Sequence[str]:
    """The lines for one service of one monitoring host.

    ``secrets`` says where password and certificate are. ``folder`` holds both as files, or is empty.
    """
    place = authority(address, port)
    tunnel = shlex.join(login.arguments("-N", "-L", f"{port}:{place}"))
    first = f"{TITLES[service]}: https://{place} (user {service}, {secrets})"
    elsewhere = f"  Where you do not reach that, open https://localhost:{port} behind"
    if service != "prometheus":
        # A command in a line of its own at the end of what a run says would be shown behind the run's last line.
        return [first, f"{elsewhere} `{tunnel}`."]
    lines = [first, f"{elsewhere} this tunnel:", f"  {tunnel}"]
    if folder:
        quoted = shlex.quote(f"{folder}/ca.crt")
        password = shlex.quote(f"{folder}/prometheus_password")
        lines.append(f'  curl --cacert {quoted} -u "prometheus:$(cat {password})" https://{place}/api/v1/alerts')
    return [*lines, f"  {RED}"]
