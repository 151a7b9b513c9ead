"""A monitoring host that is as wanted is left out of its phases; what is disturbed there sends exactly its phase."""

from __future__ import annotations

import datetime
import http.server
import json
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._credentials import Authority, issue

from ..ansible_run import PlaybookRun
from . import disturb
from .cluster import Cluster

ADDRESS = "127.0.0.2"
SERVICES = ("prometheus", "alertmanager", "grafana", "watch")
CERTIFICATES = {
    "prometheus": "/etc/prometheus/server",
    "alertmanager": "/etc/prometheus/alertmanager",
    "grafana": "/etc/grafana/server",
    "watch": "/etc/gaudi3-scale/watch/server",
}
PAGES = "../../pages.json"
#: What somebody or a fault does to the host, and the phases that have to run then. A path is one of the host.
DISTURBED: dict[str, tuple[list[str], set[str]]] = {
    "nothing": ([], set()),
    "configuration open": (["chmod", "644", "/etc/prometheus/prometheus.yml"], {"prometheus"}),
    "configuration of another group": (["own", "/etc/prometheus/prometheus.yml", "0 0"], {"prometheus"}),
    "rules gone": (["rm", "/etc/prometheus/rules-gaudi3.rules.yml"], {"prometheus"}),
    "targets gone": (["rm", "/etc/prometheus/targets-node.yml"], {"prometheus"}),
    "targets closed": (["chmod", "600", "/etc/prometheus/targets-hpu.yml"], {"prometheus"}),
    "arguments gone": (["rm", "/etc/default/prometheus"], {"prometheus"}),
    "key gone": (["rm", "/etc/prometheus/server.key"], {"prometheus"}),
    "page of certificates gone": (
        ["rm", "/var/lib/prometheus/node-exporter/gaudi-certificates-prometheus.prom"],
        {"prometheus"},
    ),
    "record open": (
        ["set", "pending", '["/etc/prometheus/ca.crt"]', "/etc/gaudi3-scale/written/prometheus.json"],
        {"prometheus"},
    ),
    "package gone": (["package", "prometheus"], {"prometheus"}),
    "unit stopped": (["unit", "prometheus", "word", "stopped"], {"prometheus"}),
    "unit not started at boot": (["unit", "prometheus", "enabled", ""], {"prometheus"}),
    "program newer than its process": (["touch", "/usr/bin/prometheus"], {"prometheus"}),
    "arguments newer than the process": (["touch", "/etc/default/prometheus"], {"prometheus"}),
    "page closed": (["set", "prometheus", "401", PAGES], {"prometheus"}),
    "target down": (["set", "down", '["node/mon"]', PAGES], {"prometheus"}),
    "target unknown": (["set", "unknown", '["node/mon"]', PAGES], {"prometheus"}),
    "password changed": (
        ["put", "another one", "../../secrets/prometheus_password"],
        {"prometheus", "grafana", "watch"},
    ),
    "certificate ends soon": (["bring", "../../ending", "../../secrets"], {"prometheus"}),
    "receivers open": (["chmod", "644", "/etc/prometheus/alertmanager.yml"], {"alertmanager"}),
    "receivers gone": (["rm", "/etc/prometheus/alertmanager.yml"], {"alertmanager"}),
    "alertmanager failed": (["unit", "prometheus-alertmanager", "word", "failed"], {"alertmanager"}),
    "alertmanager's package gone": (["package", "prometheus-alertmanager"], {"alertmanager"}),
    "alertmanager does not answer": (["set", "alertmanager", "503", PAGES], {"alertmanager"}),
    "alertmanager's password changed": (
        ["put", "another one", "../../secrets/alertmanager_password"],
        {"prometheus", "alertmanager"},
    ),
    "dashboard gone": (["rm", "/etc/grafana/dashboards/gaudi3-training.json"], {"grafana"}),
    "dashboard closed": (["chmod", "600", "/etc/grafana/dashboards/gaudi3-training.json"], {"grafana"}),
    "folder closed": (["chmod", "700", "/etc/grafana/provisioning"], {"grafana"}),
    "settings touched": (["touch", "/etc/grafana/grafana.ini"], {"grafana"}),
    "repository gone": (["rm", "/etc/apt/sources.list.d/grafana.sources"], {"grafana"}),
    "key of the repository gone": (["rm", "/etc/apt/keyrings/grafana.asc"], {"grafana"}),
    "grafana's package gone": (["package", "grafana"], {"grafana"}),
    "grafana's password changed": (["put", "another one", "../../secrets/grafana_password"], {"grafana"}),
    "program of the page gone": (["rm", "/usr/local/lib/gaudi3-watch/gaudi3_watch/pages.py"], {"watch"}),
    "page stopped": (["unit", "gaudi3-watch", "word", "stopped"], {"watch"}),
    "page does not answer": (["set", "watch", "503", PAGES], {"watch"}),
    "page's password changed": (["put", "another one", "../../secrets/watch_password"], {"watch"}),
}
#: Content that somebody else changed is refused until the site says that it is to be replaced.
CHANGED = ("/etc/prometheus/prometheus.yml", "/etc/prometheus/alertmanager.yml", "/etc/grafana/grafana.ini")
AT_ONCE = 16


class Pages:
    """What the services answer on their ports, as a file has it that the test's playbook changes."""

    def __init__(self, cluster: Cluster) -> None:
        self.folder, self.cluster = cluster.folder, cluster
        self.ports = {name: free_port() for name in SERVICES}
        (self.folder / "pages.json").write_text(json.dumps({}))
        self.servers: list[http.server.ThreadingHTTPServer] = []

    def serve(self) -> None:
        """With the certificates that the roles have written."""
        for name in SERVICES:
            server = http.server.ThreadingHTTPServer((ADDRESS, self.ports[name]), self.handler(name))
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            files = [self.cluster["mon"].path(f"{CERTIFICATES[name]}.{end}") for end in ("crt", "key")]
            context.load_cert_chain(files[0], files[1])
            server.socket = context.wrap_socket(server.socket, server_side=True)
            threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
            self.servers.append(server)

    def handler(self, name: str) -> type[http.server.BaseHTTPRequestHandler]:
        pages = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                said = json.loads((pages.folder / "pages.json").read_text())
                known = [each for each in pages.targets() if each not in said.get("unknown", [])]
                active = [
                    {
                        "labels": dict(zip(("job", "instance"), each.split("/"), strict=True)),
                        "health": "down" if each in said.get("down", ["training/gaudi-1"]) else "up",
                    }
                    for each in known
                ]
                self.send_response(said.get(name, 200))
                self.end_headers()
                self.wfile.write(json.dumps({"data": {"activeTargets": active}}).encode())

            def log_message(self, *_arguments: Any) -> None:
                """Nothing."""

        return Handler

    @staticmethod
    def targets() -> list[str]:
        nodes = [f"{job}/gaudi-1" for job in ("node", "hpu", "training")]
        return [*nodes, "node/mon", "prometheus/mon", "alertmanager/mon"]


def free_port() -> int:
    with socket.socket() as found:
        found.bind((ADDRESS, 0))
        port: int = found.getsockname()[1]
        return port


@pytest.fixture
def pages(cluster: Cluster) -> Iterator[Pages]:
    """A monitoring host on which the packages are and nothing else, and what will answer there."""
    made = Pages(cluster)
    variables = {"gaudi_cluster_address": ADDRESS, **{f"{name}_port": port for name, port in made.ports.items()}}
    host = cluster.add("mon", "monitoring", cards=0, system="debian", variables=variables)
    cluster.variables["gaudi-1"] = {"ansible_host": "192.0.2.1"}
    cluster.groups["gaudi"] = ["gaudi-1"]
    cluster.all["gaudi_secrets_dir"] = str(cluster.folder / "secrets")
    host.give(packages={"prometheus": "2.42.0", "prometheus-alertmanager": "0.25.0", "grafana": "12.0.1"})
    for name in ("promtool", "amtool"):
        (host.folder / "bin" / name).write_text("#!/bin/sh\n")
        (host.folder / "bin" / name).chmod(0o755)
    host.write("/usr/bin/prometheus", "", 0o755)
    host.write("/etc/apt/keyrings/grafana.asc", "")
    host.path("/etc/apt/sources.list.d").mkdir(parents=True, exist_ok=True)
    cluster.all["grafana_group"] = "prometheus"  # one that the stand-ins have
    for unit in ("prometheus", "prometheus-alertmanager"):
        host.write(f"/lib/systemd/system/{unit}.service", "[Service]\n")
    host.write("/lib/systemd/system/grafana-server.service", f"[Service]\nExecStart=g --port {made.ports['grafana']}\n")
    yield made
    for server in made.servers:
        server.shutdown()


def play(cluster: Cluster, name: str, tasks: list[dict[str, Any]]) -> PlaybookRun:
    path = cluster.folder / f"{name}.yml"
    path.write_text(json.dumps([{"hosts": "monitoring", "gather_facts": False, "tasks": tasks}]))
    return cluster.play(str(path))


def look(name: str) -> dict[str, Any]:
    return {"name": f"Look: {name}", "gaudi3.scale.gaudi_host_plan": None}


def test_each_disturbance_of_a_converged_host_sends_its_phase(cluster: Cluster, pages: Pages) -> None:
    steps = [
        {"name": f"{step} {service}", "gaudi3.scale.gaudi_monitoring": {"service": service, "step": step}}
        for service in SERVICES
        for step in ("claim", *(("targets",) if service == "prometheus" else ()), "run")
    ]
    # The source of Grafana's packages is written by the role's own task.
    source = {
        "name": "source",
        "ansible.builtin.template": {
            "src": str(Path(__file__).parents[2] / "roles/grafana/templates/grafana.sources.j2"),
            "dest": "/etc/apt/sources.list.d/grafana.sources",
            "mode": "0644",
        },
        "vars": {
            "grafana_repository_url": "https://apt.grafana.com",
            "grafana_repository_key_fingerprint": "B53AE77BADB630A683046005963FA27710458545",
        },
    }
    first = play(cluster, "converge", [{"name": "facts", "ansible.builtin.setup": {}}, *steps, source])
    assert first.returncode == 0, first.messages()
    second = play(cluster, "converge", [{"name": "facts", "ansible.builtin.setup": {}}, *steps, source])
    assert second.returncode == 0 and second.changed() == set(), second.changed()
    pages.serve()

    secrets = cluster.folder / "secrets"
    authority = Authority((secrets / "ca.crt").read_bytes(), (secrets / "ca.key").read_bytes())
    ending = issue(authority, [ADDRESS, "mon"], 20, datetime.datetime.now(datetime.UTC))
    (cluster.folder / "ending").mkdir()
    for end, content in zip(("crt", "key"), ending, strict=True):
        (cluster.folder / f"ending/prometheus-mon.{end}").write_bytes(content)
    changes = {**DISTURBED, **{f"changed {path}": (["append", "# mine", path], set()) for path in CHANGED}}
    names = [*changes]
    runs: list[PlaybookRun] = []
    found: dict[str, dict[str, Any]] = {}
    # In parts, none of which takes minutes on a machine that does something else, too.
    for begin in range(0, len(names), AT_ONCE):
        some = names[begin : begin + AT_ONCE]
        tasks: list[dict[str, Any]] = []
        for name in some:
            acts = [words] if (words := changes[name][0]) else []
            tasks += [disturb.task(cluster["mon"].folder, acts), look(name)]
        runs.append(play(cluster, "disturb", tasks))
        assert runs[-1].returncode == 0, runs[-1].messages()
        found |= {name: runs[-1].result("mon", f"Look: {name}") for name in some}
    sent = {name: {*SERVICES} - {*found[name]["leave"]} for name in DISTURBED}
    assert sent == {name: phases for name, (_words, phases) in DISTURBED.items()}
    assert {name: found[name]["problem"] for name in DISTURBED} == dict.fromkeys(DISTURBED, "")
    for path in CHANGED:
        said = found[f"changed {path}"]["problem"]
        assert said.startswith(f"{path} on this host was not written by this collection, or changed since: "), said
    texts = [path.read_text() for path in secrets.iterdir() if path.suffix in ("", ".bcrypt", ".key")]
    for each in (first, second, *runs):
        assert not [text for text in texts for line in text.splitlines() if len(line) > 9 and line in each.everything]
