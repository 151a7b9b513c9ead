"""How the roles of monitoring hand secrets on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from ..playbooks.jinja import render

ROLES = Path(__file__).resolve().parents[3] / "roles"
MODULE = "gaudi3.scale.gaudi_credentials"
SERVICES = ("node_exporter", "hpu_exporter", "trainer")


def read(path: str) -> Any:
    return yaml.safe_load((ROLES / path).read_text())


def test_what_is_handed_over_is_known_again_and_hidden() -> None:
    tasks = read("monitoring_service/tasks/credentials.yml")
    (taken,) = [task for task in tasks if MODULE in task]
    (present,) = [task for task in tasks if "ansible.builtin.slurp" in task]
    assert taken["module_defaults"][MODULE] == "{{ _monitoring_service_wanted }}"
    assert taken[MODULE] == {"present": "{{ _monitoring_service_found }}"}
    found = read("monitoring_service/vars/main.yml")["_monitoring_service_found"]
    assert found.startswith(f"{{{{ {present['register']}.results")
    for task in (taken, present):
        assert task["no_log"] is True and task["failed_when"] is False


@pytest.mark.parametrize("role", ("prometheus", "alertmanager", "grafana", "watch"))
def test_each_role_takes_what_a_site_hands_over(role: str) -> None:
    assert read(f"{role}/defaults/main.yml")[f"{role}_secrets"] == "{{ gaudi_secrets | default({}) }}"


@pytest.mark.parametrize("role", SERVICES)
def test_the_page_of_certificates_is_what_the_contract_says(role: str) -> None:
    """One name, one help text in the pages of all roles: node_exporter merges them."""
    ends = {"expires": "2026-06-01T00:00:00+00:00", "authority_expires": "2036-04-28T12:00:00+02:00"}
    text = render(
        "roles/monitoring_service/templates/certificates.prom.j2",
        ansible_managed="m", _monitoring_service_credentials=ends, monitoring_service_options={"name": role},
    )  # fmt: skip
    name = "gaudi_certificate_expiry_timestamp_seconds"
    contract = {
        each["name"]: each
        for each in yaml.safe_load((ROLES.parent / "docs/reference/metrics.yml").read_text())["metrics"]
    }
    assert contract[name]["labels"] == ["certificate", "service"]
    assert text.splitlines() == [
        *("#", "# m", "#"),
        f"# HELP {name} {contract[name]['help']}",
        f"# TYPE {name} {contract[name]['type']}",
        f'{name}{{certificate="authority",service="{role}"}} 2092989600',
        f'{name}{{certificate="server",service="{role}"}} 1780272000',
    ]
