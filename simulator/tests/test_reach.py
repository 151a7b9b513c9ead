"""The way from a cluster that is up to its nodes and to the services of its monitoring host."""

from __future__ import annotations

import ssl
import subprocess
import threading
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from gaudi3_simulator import cli, reach
from gaudi3_simulator.home import Cluster, Node

PASSWORD = "of-the-test"


@pytest.fixture
def up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    """Clusters demo and other on record, in a folder with a blank in its name."""
    monkeypatch.setenv("GAUDI3_SIMULATOR_HOME", str(tmp_path / "a home"))
    monkeypatch.delenv("GAUDI3_SIMULATOR_CLUSTER", raising=False)
    for variable in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(variable, raising=False)
    Cluster("other", "10.2.0.0/24", [Node("head", "10.2.0.11", 8)], user="ubuntu").save()
    made = Cluster(
        "demo", "10.1.0.0/24", [Node("gaudi-1", "10.1.0.11", 8), Node("gaudi-2", "10.1.0.12", 8)],
        Node("monitor-1", "127.0.0.1"),
    )  # fmt: skip
    made.save()
    return made


@pytest.fixture
def became(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """What the program became."""
    calls: list[list[str]] = []
    monkeypatch.setattr(reach.os, "execv", lambda _path, words: calls.append(words))
    monkeypatch.setattr(reach.shutil, "which", lambda name: f"/usr/bin/{name}")
    return calls


@pytest.mark.parametrize(
    ("words", "name", "login", "command"),
    [
        (["gaudi-2"], "demo", "root@10.1.0.12", []),
        ([], "demo", "root@10.1.0.11", []),
        (["monitor-1", "--", "ls", "-l", "--name"], "demo", "root@127.0.0.1", ["ls", "-l", "--name"]),
        (["--name", "other", "head"], "other", "ubuntu@10.2.0.11", []),
        (["head", "--name", "other", "--", "uptime"], "other", "ubuntu@10.2.0.11", ["uptime"]),
    ],
)
def test_ssh_goes_in_with_the_key_the_user_and_the_host_keys_of_the_cluster(
    up: Cluster, became: list[list[str]], words: list[str], name: str, login: str, command: list[str]
) -> None:
    assert cli.main(["ssh", *words]) == 0
    folder = up.folder.parent / name
    known = f'UserKnownHostsFile="{folder / "known_hosts"}"'
    ways = ["-o", known, "-o", "StrictHostKeyChecking=yes", "-o", "IdentitiesOnly=yes"]
    assert became == [["/usr/bin/ssh", "-i", str(folder / "id_ed25519"), *ways, login, *command]]


def test_ssh_reads_the_path_of_the_host_keys_as_one(up: Cluster, became: list[list[str]]) -> None:
    cli.main(["ssh", "gaudi-1"])
    shown = subprocess.run(["ssh", "-G", *became[0][1:]], capture_output=True, text=True, check=True).stdout
    assert f"userknownhostsfile {up.folder / 'known_hosts'}\n" in shown


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (["ssh", "gaudi-9"], 2, "Cluster demo has no node gaudi-9: it has gaudi-1, gaudi-2, monitor-1"),
        (["ssh", "--name", "third"], 2, "There is no cluster called third"),
        (["down", "--", "uptime"], 2, "down takes no command behind --: only ssh does."),
        (["open", "--name", "other", "prometheus"], 2, "Cluster other has no monitoring host"),
        (["open", "--name", "third", "prometheus"], 2, "There is no cluster called third"),
        (
            ["open", "alertmanager"],
            1,
            "Alertmanager is not installed in cluster demo: "
            "run GAUDI3_SIMULATOR_CLUSTER=demo ansible-playbook site.yml.",
        ),
        (["open", "grafana"], 1, "site.yml -e grafana_enabled=true, which needs Grafana's package repository."),
    ],
)
def test_what_is_not_there_is_said_in_one_sentence(
    up: Cluster, became: list[list[str]], capsys: pytest.CaptureFixture[str], words: list[str], code: int, sentence: str
) -> None:
    assert cli.main(words) == code
    said = capsys.readouterr()
    assert sentence in said.err
    assert (said.out, said.err.count("\n"), became) == ("", 1, [])


class Page(BaseHTTPRequestHandler):
    """A service that wants its password."""

    def do_GET(self) -> None:
        given = self.headers.get("Authorization", "")
        users = [b64encode(f"{each.user}:{PASSWORD}".encode()).decode() for each in reach.SERVICES.values()]
        self.send_response(200 if given in [f"Basic {user}" for user in users] else 401)
        self.end_headers()

    def log_message(self, *_arguments: Any) -> None:
        """Nothing."""


@pytest.fixture
def monitoring(up: Cluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A cluster whose services answer, and its folder of secrets."""
    secrets = up.folder / "secrets"
    secrets.mkdir()
    key = up.folder / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    about = ["-subj", "/CN=test", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", secrets / "ca.crt"]
    subprocess.run([*command, *about], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(secrets / "ca.crt", key)
    server = HTTPServer(("127.0.0.1", 0), Page)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    for name, service in reach.SERVICES.items():
        (secrets / f"{name}_password").write_text(f"{PASSWORD}\n")
        monkeypatch.setitem(reach.SERVICES, name, replace(service, port=server.server_port))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield secrets
    server.shutdown()
    thread.join()
    server.server_close()


def test_how_a_service_is_opened(monitoring: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, service in reach.SERVICES.items():
        assert cli.main(["open", name]) == 0
        lines = capsys.readouterr().out.splitlines()
        place = f"https://127.0.0.1:{service.port}"
        assert (
            lines[0] == f"{service.title}: {place} (user {service.user}, password and CA certificate in {monitoring})"
        )
        assert f"  password: {monitoring}/{name}_password" in lines
        assert PASSWORD not in "\n".join(lines)
        given = (
            f"""curl --cacert '{monitoring}/ca.crt' -u "{service.user}:$(cat '{monitoring}/{name}_password')" {place}"""
        )
        assert any(line.strip().startswith(given) for line in lines)
        assert ("  There is no display here: open it yourself." in lines) == (name != "alertmanager")


def test_a_display_gets_the_page(monitoring: Path) -> None:
    shown: list[str] = []
    lines = reach.opened("demo", "prometheus", lambda url: not shown.append(url))
    assert shown == [f"https://127.0.0.1:{reach.SERVICES['prometheus'].port}"]
    assert lines[-1] == "  Your browser was asked to open it."


def test_a_service_that_does_not_answer_is_named_with_the_reason(
    monitoring: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (monitoring / "prometheus_password").write_text("another")
    assert cli.main(["open", "prometheus"]) == 1
    assert "(it refuses the password): see that monitor-1 is up" in capsys.readouterr().err
    monkeypatch.setitem(reach.SERVICES, "alertmanager", replace(reach.SERVICES["alertmanager"], port=1))
    assert cli.main(["open", "alertmanager"]) == 1
    said = capsys.readouterr().err
    assert "Alertmanager does not answer at https://127.0.0.1:1 (" in said
    assert "Connection refused" in said
    (monitoring / "ca.crt").write_text("no certificate")
    assert cli.main(["open", "grafana"]) == 1
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize(("name", "more"), [("demo", ""), ("other", " --name other")])
def test_a_cluster_that_came_up_says_what_is_next(
    up: Cluster, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str, more: str
) -> None:
    monkeypatch.setattr(cli.cluster, "up", lambda *_arguments: replace(up, name=name))
    # As `make demo CLUSTER=other` sets it, and the shell behind it does not have it.
    monkeypatch.setenv("GAUDI3_SIMULATOR_CLUSTER", name)
    assert cli.main(["up", "--name", name]) == 0
    assert capsys.readouterr().out.splitlines()[1:] == [
        f"next: GAUDI3_SIMULATOR_CLUSTER={name} ansible-playbook site.yml",
        f"      gaudi3-simulator ssh gaudi-1{more}",
    ]
