"""Where the summary sends people: to the ports that the services have, and to the site's folder of secrets."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.filter.service_ways import service_ways

from .jinja import render

NODE = {
    "ansible_facts": {"gaudi": {"card_count": 8, "driver_version": "1.23.0", "firmware": {}, "hl_smi_version": "1.23"}}
}


def test_the_address_of_prometheus_is_the_configured_one() -> None:
    given = {"prometheus_port": 9191, "gaudi_cluster_address": "10.0.0.9", "gaudi_secrets_dir": "/srv/secrets"}
    text = render(
        "playbooks/templates/summary.j2",
        ansible_play_hosts=["gaudi-1"],
        hostvars={"gaudi-1": NODE, "mon": given},
        groups={"gaudi": ["gaudi-1"], "gaudi_head": ["gaudi-1"], "monitoring": ["mon"]},
    )
    lines = text.splitlines()
    (line,) = (line for line in lines if line.startswith("Prometheus: "))
    assert line == ("Prometheus: https://10.0.0.9:9191 (user prometheus, password and CA certificate in /srv/secrets)")
    behind = lines[lines.index(line) + 1 :]
    assert all(len(each) <= 80 for each in (behind[0], behind[3]))
    assert behind[1] == "  ssh -N -L 9191:10.0.0.9:9191 mon" and "https://localhost:9191" in behind[0]
    assert behind[2] == (
        '  curl --cacert /srv/secrets/ca.crt -u "prometheus:$(cat /srv/secrets/prometheus_password)" '
        "https://10.0.0.9:9191/api/v1/alerts"
    )
    assert behind[3] == "  Its targets of the job training are red while no job runs: that is no fault."


def summary(**given: Any) -> list[str]:
    hostvars = {"gaudi-1": NODE, "mon": {"gaudi_cluster_address": "10.0.0.9", "gaudi_secrets_dir": "/srv", **given}}
    groups = {"gaudi": ["gaudi-1"], "gaudi_head": ["gaudi-1"], "monitoring": ["mon"]}
    return render(
        "playbooks/templates/summary.j2", ansible_play_hosts=["gaudi-1"], hostvars=hostvars, groups=groups
    ).splitlines()


@pytest.mark.parametrize(
    ("given", "port", "secrets"),
    [
        ({}, 9109, "password and CA certificate in /srv"),
        ({"watch_port": 9200}, 9200, "password and CA certificate in /srv"),
        (
            {"gaudi_secrets": {"prometheus_password": "p", "ca_certificate": "c"}},
            9109,
            "password and CA certificate in /srv and gaudi_secrets",
        ),
        (
            {"gaudi_secrets": {"watch_password": "w", "ca_certificate": "c"}},
            9109,
            "password and CA certificate as handed over in gaudi_secrets",
        ),
    ],
)
def test_it_ends_with_the_address_of_the_page(given: dict[str, Any], port: int, secrets: str) -> None:
    assert summary(**given)[-2:] == [
        f"The cluster on one page: https://10.0.0.9:{port} (user watch, {secrets})",
        f"  Where you do not reach that, open https://localhost:{port} behind `ssh -N -L {port}:10.0.0.9:{port} mon`.",
    ]


def test_a_page_that_is_switched_off_has_no_address() -> None:
    for value in (False, "no"):
        lines = summary(watch_enabled=value)
        assert "one page" not in str(lines) and any(line.startswith("Prometheus: ") for line in lines)
    assert "" not in lines


def test_an_address_of_ipv6_can_be_typed_and_a_tunnel_takes_the_login_of_ansible() -> None:
    lines = service_ways("fd00::9", 9090, "both in gaudi_secrets", "", ["mon.example.org", "ubuntu", 2222, "/k"])
    assert lines[0] == "Prometheus: https://[fd00::9]:9090 (user prometheus, both in gaudi_secrets)"
    assert lines[2] == "  ssh -N -L '9090:[fd00::9]:9090' -p 2222 -i /k ubuntu@mon.example.org"
    assert not any("curl" in line for line in lines)
