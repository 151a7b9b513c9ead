"""What the role prometheus leaves on a monitoring host."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest

testinfra_hosts = ["ansible://monitoring"]
CA = "--cacert /etc/prometheus/ca.crt"


@pytest.fixture
def address(host: Any) -> str:
    return f"{host.ansible.get_variables()['ansible_host']}:9090"


@pytest.fixture
def password(host: Any) -> str:
    folder = Path(host.ansible.get_variables()["gaudi_secrets_dir"])
    return (folder / "prometheus_password").read_text(encoding="utf-8").strip()


def code(host: Any, options: str, url: str) -> str:
    """The status that curl gets."""
    return str(host.run(f"curl --silent --output /dev/null --write-out '%{{http_code}}' {options} {url}").stdout)


def api(host: Any, address: str, password: str, path: str) -> Any:
    answer = host.run(
        f"curl --silent --fail --globoff {CA} --user prometheus:{password} 'https://{address}/api/v1/{path}'"
    )
    assert answer.rc == 0, answer.stderr
    return json.loads(answer.stdout)["data"]


def test_it_runs_now_and_at_boot_and_was_started_once(host: Any) -> None:
    assert host.service("prometheus").is_running
    assert host.service("prometheus").is_enabled
    assert host.run("journalctl --unit prometheus --output cat").stdout.count("Started ") == 1


def test_it_wants_the_password(host: Any, address: str, password: str) -> None:
    assert code(host, CA, f"https://{address}/-/ready") == "401"
    assert code(host, f"{CA} --user prometheus:wrong", f"https://{address}/-/ready") == "401"
    assert code(host, f"{CA} --user prometheus:{password}", f"https://{address}/-/ready") == "200"


def test_it_speaks_tls_only_and_by_its_own_authority(host: Any, address: str) -> None:
    assert code(host, "", f"http://{address}/-/ready") == "400"
    assert host.run(f"curl --silent https://{address}/-/ready").rc == 60
    assert host.run(f"curl --silent {CA} https://monitor-1:9090/ --resolve monitor-1:9090:{address[:-5]}").rc == 0


def test_it_listens_on_the_cluster_address_only(host: Any, address: str) -> None:
    lines = host.run("ss --no-header --listening --tcp --udp --numeric --processes").stdout.splitlines()
    assert [line.split()[4] for line in lines if '"prometheus"' in line] == [address]


@pytest.mark.parametrize("name", ["server.key", "web.yml", "prometheus_password", "alertmanager_password"])
def test_secrets_are_for_the_service_only(host: Any, name: str) -> None:
    file = host.file(f"/etc/prometheus/{name}")
    assert (file.user, file.group, file.mode) == ("root", "prometheus", 0o640)


def test_secrets_on_the_controller_are_for_their_owner_only(host: Any) -> None:
    folder = Path(host.ansible.get_variables()["gaudi_secrets_dir"])
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {file.stat().st_mode & 0o777 for file in folder.iterdir()} == {0o600}


def test_the_password_is_not_in_what_everybody_may_read(host: Any, password: str) -> None:
    assert host.run(f"find /etc /run/systemd -perm -o=r -type f -exec grep -l -e '{password}' {{}} +").stdout == ""
    assert password not in host.run("ps -eo args").stdout


def test_its_configuration_is_valid(host: Any) -> None:
    assert host.run("promtool check config /etc/prometheus/prometheus.yml").rc == 0


def test_it_keeps_data_by_age_and_size(host: Any, address: str, password: str) -> None:
    flags = api(host, address, password, "status/flags")
    assert flags["storage.tsdb.retention.time"] == "15d"
    assert flags["storage.tsdb.retention.size"] == "20GiB"
    assert flags["web.external-url"] == f"https://{address}/"


def test_it_knows_the_targets_of_the_inventory(host: Any, address: str, password: str) -> None:
    node = address.rsplit(".", 1)[0] + ".11"
    targets = api(host, address, password, "targets?state=active")["activeTargets"]
    assert {(one["labels"]["job"], one["labels"]["instance"], one["scrapeUrl"]) for one in targets} == {
        ("node", "gaudi-1", f"http://{node}:9100/metrics"),
        ("node", "monitor-1", f"http://{address[:-5]}:9100/metrics"),
        ("hpu", "gaudi-1", f"http://{node}:41611/metrics"),
        ("training", "gaudi-1", f"http://{node}:9410/metrics"),
        ("prometheus", "monitor-1", f"https://{address}/metrics"),
        ("alertmanager", "monitor-1", f"https://{address[:-5]}:9093/metrics"),
    }


def test_it_scrapes_itself_over_tls_with_the_password(host: Any, address: str, password: str) -> None:
    for _ in range(30):
        found = api(host, address, password, 'query?query=up{job="prometheus"}')["result"]
        if found and found[0]["value"][1] == "1":
            return
        time.sleep(1)
    raise AssertionError(found)


def test_it_has_the_alerts(host: Any, address: str, password: str) -> None:
    groups = api(host, address, password, "rules?type=alert")["groups"]
    rules = (Path(__file__).parents[4] / "roles/prometheus/templates/gaudi3.rules.yml.j2").read_text(encoding="utf-8")
    expected = re.findall(r"^ +- alert: (\w+)$", rules, re.MULTILINE)
    assert len(expected) > 50
    assert sorted(rule["name"] for group in groups for rule in group["rules"]) == sorted(expected)


def test_it_says_when_its_certificate_ends(host: Any) -> None:
    text = host.file("/var/lib/prometheus/node-exporter/gaudi-certificates-prometheus.prom").content_string
    (line,) = [line for line in text.splitlines() if line.startswith("gaudi") and 'certificate="server"' in line]
    days = (float(line.split()[-1]) - time.time()) / 86400
    assert 365 < days < 398, line


def test_a_new_target_needs_no_restart(host: Any, address: str, password: str) -> None:
    file = "/etc/prometheus/targets-node.yml"
    before = host.file(file).content_string
    host.run_test(f"printf '%s\\n' '- targets: [192.0.2.1:9100]' '  labels: {{instance: gaudi-99}}' >> {file}")
    try:
        for _ in range(30):
            targets = api(host, address, password, "targets?state=active")["activeTargets"]
            known = {one["labels"]["instance"] for one in targets if one["labels"]["job"] == "node"}
            if "gaudi-99" in known:
                break
            time.sleep(1)
        assert known == {"gaudi-1", "monitor-1", "gaudi-99"}
    finally:
        host.run_test(f"cat > {file} <<'END'\n{before}END")
