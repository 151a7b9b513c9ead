"""What the role alertmanager leaves on a monitoring host."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

testinfra_hosts = ["ansible://monitoring"]
CA = "--cacert /etc/prometheus/alertmanager-ca.crt"


@pytest.fixture
def address(host: Any) -> str:
    return f"{host.ansible.get_variables()['ansible_host']}:9093"


@pytest.fixture
def password(host: Any) -> str:
    folder = Path(host.ansible.get_variables()["gaudi_secrets_dir"])
    return (folder / "alertmanager_password").read_text(encoding="utf-8").strip()


def code(host: Any, options: str, url: str) -> str:
    """The status that curl gets."""
    return str(host.run(f"curl --silent --output /dev/null --write-out '%{{http_code}}' {options} {url}").stdout)


def test_it_runs_now_and_at_boot_and_was_started_once(host: Any) -> None:
    assert host.service("prometheus-alertmanager").is_running
    assert host.service("prometheus-alertmanager").is_enabled
    assert host.run("journalctl --unit prometheus-alertmanager --output cat").stdout.count("Started ") == 1


def test_it_wants_the_password(host: Any, address: str, password: str) -> None:
    assert code(host, CA, f"https://{address}/-/ready") == "401"
    assert code(host, f"{CA} --user alertmanager:wrong", f"https://{address}/-/ready") == "401"
    assert code(host, f"{CA} --user alertmanager:{password}", f"https://{address}/-/ready") == "200"


def test_it_speaks_tls_only(host: Any, address: str) -> None:
    assert code(host, "", f"http://{address}/-/ready") == "400"


def test_it_listens_on_the_cluster_address_only_and_does_not_gossip(host: Any, address: str) -> None:
    lines = host.run("ss --no-header --listening --tcp --udp --numeric --processes").stdout.splitlines()
    assert [line.split()[4] for line in lines if '"prometheus-aler"' in line] == [address]


@pytest.mark.parametrize("name", ["alertmanager.key", "alertmanager-web.yml", "alertmanager.yml"])
def test_secrets_are_for_the_service_only(host: Any, name: str) -> None:
    file = host.file(f"/etc/prometheus/{name}")
    assert (file.user, file.group, file.mode) == ("root", "prometheus", 0o640)


def test_its_configuration_is_valid_and_tells_nobody_yet(host: Any) -> None:
    assert host.run("amtool check-config /etc/prometheus/alertmanager.yml").rc == 0
    routed = host.run("amtool config routes test --config.file=/etc/prometheus/alertmanager.yml alertname=NodeDown")
    assert routed.stdout.strip() == "nobody"


def test_it_takes_alerts_and_keeps_quiet_on_what_a_dead_node_explains(host: Any, address: str, password: str) -> None:
    alerts = [{"labels": {"alertname": name, "instance": "gaudi-9"}} for name in ("NodeDown", "HpuNoCards")]
    base = f"curl --silent --fail {CA} --user alertmanager:{password}"
    url = f"https://{address}/api/v2/alerts"
    sent = host.run(f"{base} --header 'Content-Type: application/json' --data '{json.dumps(alerts)}' {url}")
    assert sent.rc == 0
    # What is inhibited is worked out when a group is flushed, after group_wait (10 s).
    host.run("sleep 12")
    held = json.loads(host.run(f"{base} {url}").stdout)
    assert {one["labels"]["alertname"]: one["status"]["state"] for one in held} == {
        "NodeDown": "active",
        "HpuNoCards": "suppressed",
    }
