"""The playbook that silences nodes, on a real Alertmanager behind TLS and the cluster's password."""

from __future__ import annotations

import datetime
import ipaddress
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import bcrypt
import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tests.ansible_run import ANSIBLE_PLAYBOOK, CALLBACK, PlaybookRun
from tests.monitoring.test_dashboards_live import free_port
from tests.monitoring.test_inhibition import program

ROOT = Path(__file__).resolve().parents[2]
PASSWORD = "a password of the cluster"


def certificate(folder: Path) -> None:
    """A certificate for this machine that is its own authority."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), True)
        .sign(key, hashes.SHA256())
    )
    (folder / "server.crt").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    (folder / "server.key").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )


class Monitor:
    """A monitoring host that is this machine."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        certificate(folder)
        hashed = bcrypt.hashpw(PASSWORD.encode(), bcrypt.gensalt(4)).decode()
        web = {
            "tls_server_config": {"cert_file": "server.crt", "key_file": "server.key"},
            "basic_auth_users": {"alertmanager": hashed},
        }
        (folder / "web.yml").write_text(yaml.safe_dump(web))
        (folder / "alertmanager.yml").write_text(
            yaml.safe_dump({"route": {"receiver": "nobody"}, "receivers": [{"name": "nobody"}]})
        )
        (folder / "secrets").mkdir(0o700)
        for name, text in {"alertmanager_password": PASSWORD, "alertmanager_password.bcrypt": hashed}.items():
            (folder / "secrets" / name).touch(0o600)
            (folder / "secrets" / name).write_text(text)
        monitor = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
        settings = {
            "alertmanager_listen_address": "127.0.0.1",
            "alertmanager_port": self.port,
            "gaudi_secrets_dir": str(folder / "secrets"),
            "silence_ca_file": str(folder / "server.crt"),
        }
        groups = {
            "monitoring": {"hosts": {"monitor-1": monitor | settings}},
            "gaudi": {"hosts": {"gaudi-5": {}, "gaudi-6": {}}},
        }
        (folder / "inventory").mkdir()
        (folder / "inventory" / "hosts.yml").write_text(yaml.safe_dump({"all": {"children": groups}}))

    def start(self) -> subprocess.Popen[bytes]:
        arguments = [f"--web.listen-address=127.0.0.1:{self.port}", "--web.config.file=web.yml"]
        arguments += ["--config.file=alertmanager.yml", "--storage.path=data", "--cluster.listen-address="]
        with (self.folder / "log").open("wb") as log:
            return subprocess.Popen([*program(), *arguments], cwd=self.folder, stdout=log, stderr=log)

    def amtool(self, *arguments: str) -> str:
        """What amtool prints, which asks with the password over TLS."""
        access = self.folder / "access.yml"
        access.write_text(
            yaml.safe_dump(
                {
                    "tls_config": {"ca_file": str(self.folder / "server.crt")},
                    "basic_auth": {"username": "alertmanager", "password": PASSWORD},
                }
            )
        )
        command = ["amtool", f"--alertmanager.url=https://127.0.0.1:{self.port}", f"--http.config.file={access}"]
        return subprocess.run([*command, *arguments], capture_output=True, text=True, check=False).stdout

    def silences(self) -> dict[str, str]:
        """Nodes that are silent, with the reason."""
        found = json.loads(self.amtool("silence", "query", "--output=json") or "[]")
        return {one["matchers"][0]["value"]: one["comment"] for one in found}

    def play(self, *options: str) -> PlaybookRun:
        environment = {key: value for key, value in os.environ.items() if not key.startswith("ANSIBLE_")}
        done = subprocess.run(
            [*ANSIBLE_PLAYBOOK, "-i", str(self.folder / "inventory"), "playbooks/silence.yml", *options],
            cwd=ROOT,
            env=environment | {"ANSIBLE_STDOUT_CALLBACK": CALLBACK},
            capture_output=True,
            text=True,
            check=False,
        )
        return PlaybookRun.read(done.returncode, done.stdout, done.stderr)


@pytest.fixture(scope="module")
def monitor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Monitor]:
    one = Monitor(tmp_path_factory.mktemp("monitor"))
    process = one.start()
    try:
        end = time.monotonic() + 30
        while "versionInfo" not in one.amtool("cluster", "show") and not one.amtool("config", "show"):
            assert process.poll() is None and time.monotonic() < end, (one.folder / "log").read_text()
            time.sleep(0.2)
        yield one
    finally:
        process.terminate()
        process.wait()


def test_nodes_are_silenced_for_a_while_and_heard_again(monitor: Monitor) -> None:
    silence = ("-e", '{"silence_hosts": "gaudi-5, gaudi-6", "silence_for": "2h", "silence_why": "new cables"}')
    check = monitor.play("--check", *silence)
    assert (check.returncode, len(check.changed()), monitor.silences()) == (0, 1, {}), check.messages()
    first = monitor.play(*silence)
    assert (first.returncode, len(first.changed())) == (0, 1), first.messages()
    assert monitor.silences() == {"gaudi-5": "new cables", "gaudi-6": "new cables"}
    assert PASSWORD not in first.everything
    again = monitor.play(*silence)
    assert (again.returncode, again.changed()) == (0, set()), again.messages()
    ended = monitor.play("-e", "silence_hosts=gaudi-5", "-e", "silence_state=absent")
    assert (ended.returncode, monitor.silences()) == (0, {"gaudi-6": "new cables"}), ended.messages()


def test_a_name_that_is_in_no_inventory_is_refused(monitor: Monitor) -> None:
    run = monitor.play("-e", "silence_hosts=gaudi-7", "-e", "silence_for=2h", "-e", "silence_why=x")
    assert run.returncode != 0
    assert run.messages() == [
        'silence_hosts is "gaudi-7": give names of hosts in the inventory, such as -e silence_hosts=gaudi-5.'
    ]
