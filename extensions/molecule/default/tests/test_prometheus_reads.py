"""What the site's Prometheus reads of exporters that serve nobody else."""

from __future__ import annotations

import json
import time
from typing import Any

testinfra_hosts = ["monitoring"]


def test_prometheus_reads_the_exporters(host: Any) -> None:
    address = host.ansible.get_variables()["ansible_host"]
    login = "--cacert /etc/prometheus/ca.crt --user prometheus:$(cat /etc/prometheus/prometheus_password)"
    query = f"curl -s {login} --data-urlencode 'query=up{{job=~\"node|hpu\"}}' https://{address}:9090/api/v1/query"
    expected = {("node", "gaudi-1"), ("node", "gaudi-2"), ("node", "monitor-1"), ("hpu", "gaudi-1"), ("hpu", "gaudi-2")}
    deadline = time.monotonic() + 60
    up = set[tuple[str, str]]()
    while up != expected and time.monotonic() < deadline:
        found = json.loads(host.check_output(query))["data"]["result"]
        labels = [each["metric"] for each in found if each["value"][1] == "1"]
        up = {(each["job"], each["instance"]) for each in labels}
        time.sleep(1)
    assert up == expected
