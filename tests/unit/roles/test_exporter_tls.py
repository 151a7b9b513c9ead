"""The exporter over TLS, on real connections: who has a certificate of the authority is served, and no other."""

from __future__ import annotations

import contextlib
import shutil
import socket
import ssl
import subprocess
import threading
import urllib.request
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

from ..playbooks.jinja import evaluate, load, render
from ..plugins.module_utils._plan.services import files
from .decided import decided
from .test_hpu_exporter import Node, exporter, node

__all__ = ["exporter", "node"]


def certificate(folder: Path, name: str) -> tuple[str, str]:
    """A certificate that is its own authority, and its key."""
    made = (str(folder / f"{name}.crt"), str(folder / f"{name}.key"))
    command = ["openssl", "req", "-x509", "-nodes", "-days", "2", "-subj", f"/CN={name}", "-newkey", "ec"]
    command += ["-pkeyopt", "ec_paramgen_curve:prime256v1", "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run([*command, "-out", made[0], "-keyout", made[1]], check=True, capture_output=True)
    return made


def ask(url: str, authority: str, own: tuple[str, str] | None) -> str:
    """A page, over TLS, with a certificate or without."""
    context = ssl.create_default_context(cafile=authority)
    if own:
        context.load_cert_chain(*own)
    with urllib.request.urlopen(url, context=context, timeout=5) as answer:
        return str(answer.read().decode())


def test_only_callers_with_a_certificate_are_served(
    exporter: ModuleType,
    node: Node,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    server, prometheus, stranger = (certificate(tmp_path, name) for name in ("server", "prometheus", "stranger"))
    for name, path in (("certificate", server[0]), ("key", server[1]), ("client_authority", prometheus[0])):
        shutil.copy(path, tmp_path / name)
    node.settle()
    serving = exporter.Server("127.0.0.1", 0, node.reader, exporter.client_checking(str(tmp_path)))
    threading.Thread(target=serving.serve_forever, daemon=True).start()
    port = serving.server_address[1]
    # One that says nothing holds up no other.
    silent = socket.create_connection(("127.0.0.1", port))
    assert "habanalabs_power_mW{" in ask(f"https://127.0.0.1:{port}/metrics", server[0], prometheus)
    for own in (None, stranger):
        with pytest.raises((ssl.SSLError, OSError)):
            ask(f"https://127.0.0.1:{port}/metrics", server[0], own)
    with pytest.raises(OSError):
        urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5)
    silent.close()
    serving.shutdown()
    serving.server_close()
    assert "Traceback" not in capsys.readouterr().err


def test_files_that_are_missing_are_named(exporter: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", "/none")
    with pytest.raises(SystemExit, match=r"^certificate, key or client_authority cannot be read \(.*No such file"):
        exporter.main(["--tls"])


def unit(**choices: Any) -> str:
    variables = {
        **load("roles/hpu_exporter/defaults/main.yml"),
        **load("roles/hpu_exporter/vars/main.yml"),
        "ansible_managed": "Ansible managed",
        "ansible_host": "10.0.0.1",
        "hpu_exporter_groups": [],
        **choices,
    }
    return render("roles/hpu_exporter/templates/gaudi-hpu-exporter.service.j2", **variables)


def test_the_unit_hands_the_files_over() -> None:
    files = {f"hpu_exporter_{name}": f"/etc/tls/{name}" for name in ("certificate", "key", "client_authority")}
    lines = unit(**files).splitlines()
    assert [line for line in lines if line.startswith("LoadCredential=")] == [
        f"LoadCredential={name}:/etc/tls/{name}" for name in ("certificate", "key", "client_authority")
    ]
    assert any(line.endswith("--timeout 8 --tls") for line in lines)
    assert "--tls" not in unit() and "LoadCredential" not in unit()


def scraped(**variables: Any) -> list[dict[str, Any]]:
    """The jobs of Prometheus' configuration."""
    text = files("prometheus", **variables)["/etc/prometheus/prometheus.yml"].content
    return list(yaml.safe_load(text)["scrape_configs"])


def test_prometheus_is_told_of_tls() -> None:
    tls = {"ca_file": "/etc/prometheus/ca.crt", "cert_file": "/c.crt", "key_file": "/c.key"}
    (job,) = scraped(prometheus_jobs=[{"name": "hpu", "groups": ["gaudi"], "port": 41611, "tls_config": tls}])
    assert (job["scheme"], job["tls_config"]) == ("https", tls)


EXPORTERS = {"node": "node_exporter", "hpu": "hpu_exporter", "training": "trainer"}
AUTHORITY = {"ca_file": "/etc/prometheus/ca.crt"}
OWN = {"cert_file": "/etc/prometheus/server.crt", "key_file": "/etc/prometheus/server.key"}


@pytest.mark.parametrize("switch", [True, False])
def test_one_switch_sets_exporters_trainer_and_prometheus(switch: bool) -> None:
    """Each has a certificate of its own, and serves only callers whom the cluster's authority signed, as Prometheus."""
    host = {
        "inventory_hostname": "gaudi-1",
        "ansible_host": "10.0.0.1",
        "ansible_managed": "x",
        "gaudi_metrics_tls": switch,
    }
    roles = {
        role: {**load(f"roles/{role}/defaults/main.yml"), **load(f"roles/{role}/vars/main.yml"), **host}
        for role in EXPORTERS.values()
    }

    def service(role: str) -> dict[str, Any]:
        (task,) = load(f"roles/{role}/tasks/tls.yml")
        return dict(task["vars"]["monitoring_service_options"])

    def hosts_of(role: str) -> Any:
        return evaluate(service(role)["certificate_hosts"], **roles[role])

    def said(role: str, name: str) -> Any:
        return evaluate(roles[role][name], **roles[role])

    jobs = {job["job_name"]: job for job in scraped(gaudi_metrics_tls=switch)}
    for job, role in EXPORTERS.items():
        found = (jobs[job].get("scheme"), jobs[job].get("tls_config"))
        assert found == (("https", {**AUTHORITY, **OWN}) if switch else (None, None))
        assert (service(role)["name"], hosts_of(role)) == (role, ["10.0.0.1", "gaudi-1"])
    files = {role: service(role)["secret_files"] if switch else [] for role in EXPORTERS.values()}
    served = said("node_exporter", "node_exporter_web_config").get("tls_server_config", {})
    named = [served[key] for key in ("cert_file", "key_file", "client_ca_file") if key in served]
    assert named == files["node_exporter"]
    assert served.get("client_auth_type") == ("RequireAndVerifyClientCert" if switch else None)
    handed = [line for line in unit(**host).splitlines() if line.startswith("LoadCredential=")]
    assert [line.partition(":")[2] for line in handed] == files["hpu_exporter"]
    job = decided("trainer_options", **host)
    metrics = job["node_config"]["metrics"]
    assert (metrics.pop("address"), list(metrics.values())) == ("10.0.0.1", files["trainer"])
    assert "metrics" not in job["config"]  # the job stays the same one


def test_idle_callers_keep_nobody_waiting_and_are_ended(exporter: ModuleType, node: Node, tmp_path: Path) -> None:
    """As many as one likes: the exporter has few threads, and Prometheus is served."""
    node.settle()
    serving = exporter.Server("127.0.0.1", 0, node.reader)
    serving.callers, serving.deadline = 4, 60.0
    threading.Thread(target=serving.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    port = serving.server_address[1]
    before = threading.active_count()
    idle = [socket.create_connection(("127.0.0.1", port)) for _caller in range(40)]
    for each in idle[::2]:
        with contextlib.suppress(OSError):
            each.sendall(b"GET /met")
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=20) as answer:
        assert b"habanalabs_power_mW{" in answer.read()
    assert threading.active_count() - before <= serving.callers + 1
    serving.deadline = 0.0  # for the whole request: a caller that sends a byte now and then is ended, too
    for each in idle:
        each.settimeout(20)
        with contextlib.suppress(OSError):
            assert each.recv(1) == b""
        each.close()
    serving.shutdown()
    serving.server_close()
    assert "LimitNOFILE=1024" in unit()
