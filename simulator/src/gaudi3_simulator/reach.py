"""The way to a cluster for a person: ssh to its nodes, and the address of each service of its monitoring host."""

from __future__ import annotations

import os
import shlex
import shutil
import ssl
import urllib.error
import urllib.request
from base64 import b64encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from . import RequestError, SimulatorError
from .cluster import find_cluster, find_node
from .home import Cluster


@dataclass(frozen=True)
class Service:
    """A service of the monitoring host, at the port that its role has by default."""

    title: str
    port: int
    user: str
    call: str
    """Path of its API for the line with curl."""
    note: str = ""


#: The cluster that commands and inventories/simulated are about where nothing names another.
DEFAULT_CLUSTER = "demo"
#: The words of the notes are those of the roles' README files and of what site.yml shows at its end.
SERVICES = {
    "prometheus": Service(
        "Prometheus", 9090, "prometheus", "/api/v1/alerts",
        "Its targets of the job training are red while no job runs: that is no fault.",
    ),
    "alertmanager": Service(
        "Alertmanager", 9093, "alertmanager", "/api/v2/alerts",
        "Debian's package has no web page; Prometheus' own page shows the alerts.",
    ),
    "grafana": Service("Grafana", 3000, "admin", "/api/search"),
    "watch": Service("The cluster on one page", 9109, "watch", "/data.json"),
}  # fmt: skip


def next_steps(cluster: Cluster) -> list[str]:
    """What to type after ``up``, in a shell that has not the environment of this command, which may be make's."""
    name = "" if cluster.name == DEFAULT_CLUSTER else f" --name {cluster.name}"
    return [
        f"next: GAUDI3_SIMULATOR_CLUSTER={cluster.name} ansible-playbook site.yml",
        f"      gaudi3-simulator ssh {cluster.nodes[0].name}{name}",
    ]


def ssh_command(cluster: Cluster, address: str, command: Sequence[str]) -> list[str]:
    """ssh with the cluster's key, user and known hosts, and no other key."""
    found = shutil.which("ssh")
    if found is None:
        raise SimulatorError("The command 'ssh' is not on this machine: install OpenSSH's client.")
    known = f'UserKnownHostsFile="{cluster.folder / "known_hosts"}"'
    given = ["-o", known, "-o", "StrictHostKeyChecking=yes", "-o", "IdentitiesOnly=yes"]
    return [found, "-i", str(cluster.key), *given, f"{cluster.user}@{address}", *command]


def enter(name: str, node: str | None, command: Sequence[str]) -> None:
    """Become ssh to ``node`` of cluster ``name``, by default its first node."""
    cluster, found = find_node(name, node or find_cluster(name).nodes[0].name)
    called = ssh_command(cluster, found.address, command)
    os.execv(called[0], called)


def opened(name: str, service: str, browse: Callable[[str], bool]) -> list[str]:
    """Lines that say how ``service`` of cluster ``name`` is opened; ``browse`` opens a page where there is a display.

    Raises SimulatorError where the service is not there, or does not answer.
    """
    about, cluster = SERVICES[service], find_cluster(name)
    if cluster.monitor is None:
        raise RequestError(f"Cluster {name} has no monitoring host: add it with 'gaudi3-simulator up --name {name}'.")
    place, secrets = f"{cluster.monitor.address}:{about.port}", cluster.folder / "secrets"
    password, authority = secrets / f"{service}_password", secrets / "ca.crt"
    install = f"GAUDI3_SIMULATOR_CLUSTER={name} ansible-playbook site.yml"
    if not (password.exists() and authority.exists()):
        raise SimulatorError(f"{about.title} is not installed in cluster {name}: {_cure(service, install)}.")
    reason = _silent(f"https://{place}{about.call}", about.user, password.read_text().strip(), authority)
    if reason:
        raise SimulatorError(
            f"{about.title} does not answer at https://{place} ({reason}): see that {cluster.monitor.name} is up with "
            f"'gaudi3-simulator status', and {_cure(service, install)}."
        )
    quoted = shlex.quote(str(authority))
    lines = [
        f"{about.title}: https://{place} (user {about.user}, password and CA certificate in {secrets})",
        f"  password: {password}",
        f"  CA certificate: {authority}",
        f"  Where you do not reach that, open https://localhost:{about.port} behind this tunnel, with the name of this "
        "machine for HOST:",
        f"  ssh -N -L {about.port}:{place} HOST",
        f'  curl --cacert {quoted} -u "{about.user}:$(cat {shlex.quote(str(password))})" https://{place}{about.call}',
    ]
    lines += [f"  {about.note}"] if about.note else []
    if service != "alertmanager":  # which has no page
        shown = browse(f"https://{place}")
        lines.append(
            "  Your browser was asked to open it." if shown else "  There is no display here: open it yourself."
        )
    return lines


def _cure(service: str, install: str) -> str:
    if service == "grafana":  # inventories/simulated leaves it out
        install += " -e grafana_enabled=true, which needs Grafana's package repository"
    return f"run {install}"


def _silent(url: str, user: str, password: str, authority: Path) -> str:
    """Why a service does not answer; empty where it does."""
    login = b64encode(f"{user}:{password}".encode()).decode()
    request = urllib.request.Request(url, headers={"Authorization": f"Basic {login}"})
    try:
        context = ssl.create_default_context(cafile=str(authority))
        with urllib.request.urlopen(request, timeout=10, context=context):
            return ""
    except urllib.error.HTTPError as error:
        return "it refuses the password" if error.code in (401, 403) else f"it answers {error.code}"
    except urllib.error.URLError as error:
        return str(error.reason)
    except OSError as error:
        return str(error)


def browse(url: str) -> bool:
    """Open a page in the browser of this machine's display; False where there is none."""
    if not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        return False
    import webbrowser

    try:
        return webbrowser.open(url)
    except webbrowser.Error:
        return False
