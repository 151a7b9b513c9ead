"""What the role grafana writes for a Grafana that is installed otherwise."""

from __future__ import annotations

import configparser
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

testinfra_hosts = ["ansible://monitoring"]
ROLE = Path(__file__).resolve().parents[4] / "roles" / "grafana"


@pytest.fixture
def variables(host: Any) -> dict[str, Any]:
    found: dict[str, Any] = host.ansible.get_variables()
    return found


def secret(variables: dict[str, Any], name: str) -> str:
    return (Path(variables["gaudi_secrets_dir"]) / name).read_text(encoding="utf-8").strip()


def test_it_listens_on_the_cluster_address_over_tls(host: Any, variables: dict[str, Any]) -> None:
    settings = configparser.ConfigParser(interpolation=None)
    settings.read_string(host.file("/etc/grafana/grafana.ini").content_string)
    address = variables["ansible_host"]
    assert dict(settings["server"]) == {
        "protocol": "https",
        "http_addr": address,
        "http_port": "3000",
        "root_url": f"https://{address}:3000/",
        "cert_file": "/etc/grafana/server.crt",
        "cert_key": "/etc/grafana/server.key",
    }
    assert settings["users"]["allow_sign_up"] == "false"
    assert settings["analytics"]["reporting_enabled"] == "false"


def test_its_certificate_is_for_that_address_and_signed_by_the_authority(host: Any, variables: dict[str, Any]) -> None:
    verified = host.run(
        f"openssl verify -x509_strict -CAfile /etc/grafana/ca.crt -verify_ip {variables['ansible_host']} "
        "/etc/grafana/server.crt"
    )
    assert verified.stdout.strip() == "/etc/grafana/server.crt: OK"


def test_the_password_is_generated_and_no_default(host: Any, variables: dict[str, Any]) -> None:
    password = host.file("/etc/grafana/admin_password").content_string
    assert len(password) == 32
    assert password == secret(variables, "grafana_password")
    ini = host.file("/etc/grafana/grafana.ini").content_string
    assert "admin_password = $__file{/etc/grafana/admin_password}" in ini
    assert password not in ini


def test_the_data_source_logs_in_to_prometheus_and_verifies_it(host: Any, variables: dict[str, Any]) -> None:
    text = host.file("/etc/grafana/provisioning/datasources/gaudi3-prometheus.yml").content_string
    (source,) = yaml.safe_load(text)["datasources"]
    assert source["url"] == f"https://{variables['ansible_host']}:9090"
    assert (source["basicAuth"], source["basicAuthUser"]) == (True, "prometheus")
    assert source["jsonData"] == {"httpMethod": "POST", "timeInterval": "5s", "tlsAuthWithCACert": True}
    assert source["secureJsonData"]["basicAuthPassword"] == secret(variables, "prometheus_password")
    assert source["secureJsonData"]["tlsCACert"].strip() == secret(variables, "ca.crt")


def test_the_dashboards_lie_where_grafana_looks(host: Any) -> None:
    provider = yaml.safe_load(host.file("/etc/grafana/provisioning/dashboards/gaudi3.yml").content_string)
    folder = provider["providers"][0]["options"]["path"]
    shipped = {file.name: json.loads(file.read_text()) for file in (ROLE / "files" / "dashboards").glob("*.json")}
    assert {name: json.loads(host.file(f"{folder}/{name}").content_string) for name in shipped} == shipped


@pytest.mark.parametrize(
    "name", ["server.key", "admin_password", "grafana.ini", "provisioning/datasources/gaudi3-prometheus.yml"]
)
def test_secrets_are_not_for_everybody(host: Any, name: str) -> None:
    assert host.file(f"/etc/grafana/{name}").mode == 0o640


def test_no_package_was_installed(host: Any) -> None:
    assert not host.package("grafana").is_installed
    assert not host.file("/etc/apt/sources.list.d/grafana.sources").exists
