"""How the roles of monitoring hand secrets on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from ..playbooks.jinja import render

ROLES = Path(__file__).resolve().parents[3] / "roles"
MODULE = "gaudi3.scale.gaudi_credentials"
WHERE = {"prometheus": "main.yml", "alertmanager": "main.yml", "grafana": "configure.yml"}


def tasks(role: str, file: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = yaml.safe_load((ROLES / role / "tasks" / file).read_text())
    return found


@pytest.mark.parametrize(("role", "file"), WHERE.items())
def test_what_preflight_checks_is_what_the_role_takes(role: str, file: str) -> None:
    (checked,) = [task for task in tasks(role, "preflight.yml") if MODULE in task]
    (taken,) = [task for task in tasks(role, file) if MODULE in task]
    present = taken[MODULE].pop("present")
    assert taken[MODULE] == checked[MODULE]
    assert taken[MODULE]["given"] == f"{{{{ {role}_secrets }}}}" and taken[MODULE]["service"] == role
    (read,) = [task for task in tasks(role, file) if "ansible.builtin.slurp" in task]
    assert present.startswith(f"{{{{ {read['register']}.results")
    for task in (checked, taken, read):
        assert task["no_log"] is True and task["failed_when"] is False
    assert checked["check_mode"] is True and checked["changed_when"] is False
    # Every file that is read is one that the role writes.
    variables = (ROLES / role / "vars/main.yml").read_text()
    assert [name for name in read["loop"] if name not in variables] == []
    defaults = yaml.safe_load((ROLES / role / "defaults/main.yml").read_text())
    assert defaults[f"{role}_secrets"] == "{{ gaudi_secrets | default({}) }}"


@pytest.mark.parametrize("role", WHERE)
def test_the_page_of_certificates_is_what_the_contract_says(role: str) -> None:
    """One name, one help text in the pages of all roles: node_exporter merges them."""
    ends = {"expires": "2026-06-01T00:00:00+00:00", "authority_expires": "2036-04-28T12:00:00+02:00"}
    text = render(f"roles/{role}/templates/certificates.prom.j2", ansible_managed="m", **{f"_{role}_credentials": ends})
    name = "gaudi_certificate_expiry_timestamp_seconds"
    contract = {
        each["name"]: each for each in yaml.safe_load((ROLES.parent / "docs/metrics.yml").read_text())["metrics"]
    }
    assert contract[name]["labels"] == ["certificate", "service"]
    assert text.splitlines() == [
        "# m",
        f"# HELP {name} {contract[name]['help']}",
        f"# TYPE {name} {contract[name]['type']}",
        f'{name}{{certificate="authority",service="{role}"}} 2092989600',
        f'{name}{{certificate="server",service="{role}"}} 1780272000',
    ]
