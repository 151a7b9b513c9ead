# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""How a person opens Prometheus: its address, a tunnel where the address is not reached, and a call of its API."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from .._progress.unreachable import Login

#: Why a page that is in order has red rows.
RED = "Its targets of the job training are red while no job runs: that is no fault."


def authority(address: str, port: object) -> str:
    """Address and port as a URL has them: an address of IPv6 stands in brackets."""
    return f"[{address}]:{port}" if ":" in address and not address.startswith("[") else f"{address}:{port}"


def ways(address: str, port: object, secrets: str, folder: str, login: Login) -> Sequence[str]:
    """The lines for one monitoring host.

    ``secrets`` says where password and certificate are. ``folder`` holds both as files, or is empty.
    """
    place = authority(address, port)
    tunnel = login.arguments("-N", "-L", f"{port}:{place}")
    lines = [
        f"Prometheus: https://{place} (user prometheus, {secrets})",
        f"  Where you do not reach that, open https://localhost:{port} behind this tunnel:",
        f"  {shlex.join(tunnel)}",
    ]
    if folder:
        quoted = shlex.quote(f"{folder}/ca.crt")
        password = shlex.quote(f"{folder}/prometheus_password")
        lines.append(f'  curl --cacert {quoted} -u "prometheus:$(cat {password})" https://{place}/api/v1/alerts')
    return [*lines, f"  {RED}"]
