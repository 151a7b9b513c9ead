"""What several roles need is said once, in a variable of the site."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ..playbooks.jinja import evaluate, load

ROLES = Path(__file__).resolve().parents[3] / "roles"
SHARED = {
    "gaudi_hl_smi": {"fabric_hl_smi": "hl-smi", "hpu_exporter_hl_smi": "/usr/bin/hl-smi"},
    "gaudi_network_script": dict.fromkeys(
        ("fabric_ports_script", "synapseai_network_script"), "/opt/habanalabs/qual/gaudi3/bin/manage_network_ifs.sh"
    ),
    "gaudi_apt_cache_valid_time": {
        f"{role}_apt_cache_valid_time": 3600 for role in ("alertmanager", "grafana", "node_exporter", "prometheus")
    },
    "gaudi_secrets_dir": {f"{role}_secrets_dir": "" for role in ("alertmanager", "grafana", "prometheus", "watch")},
    "node_exporter_textfile_directory": {
        f"{role}_textfile_directory": "/var/lib/prometheus/node-exporter"
        for role in ("alertmanager", "grafana", "prometheus", "watch")
    },
}


def defaults() -> dict[str, Any]:
    """The defaults of all roles together."""
    files = sorted(ROLES.glob("*/defaults/main.yml"))
    return {name: value for path in files for name, value in load(str(path.relative_to(ROLES.parent))).items()}


@pytest.mark.parametrize("shared", SHARED)
def test_set_once_all_roles_follow(shared: str) -> None:
    variables = {**defaults(), "ansible_facts": {}}
    variables.pop(shared, None)
    own = SHARED[shared]
    assert {name: evaluate(variables[name], **variables) for name in own} == own
    said = 77 if shared.endswith("time") else "/srv/there"
    followed = {name: evaluate(variables[name], **variables, **{shared: said}) for name in own}
    assert followed == dict.fromkeys(own, said)


def test_the_generation_of_the_cards_decides_otherwise() -> None:
    facts = {"gaudi_pci": {"generation": "gaudi2"}, "gaudi_fabric": {"generation": "gaudi2"}}
    for name in SHARED["gaudi_network_script"]:
        found = evaluate(defaults()[name], ansible_facts=facts)
        assert found == "/opt/habanalabs/qual/gaudi2/bin/manage_network_ifs.sh"


def test_the_last_phase_asks_the_same_hl_smi() -> None:
    (task,) = [
        task
        for play in load("playbooks/verify.yml")
        for task in play.get("tasks", [])
        if "gaudi3.scale.hl_smi_facts" in task
    ]
    assert task["gaudi3.scale.hl_smi_facts"]["executable"] == "{{ gaudi_hl_smi | default(omit) }}"
