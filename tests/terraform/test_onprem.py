"""The root for machines that are there already: applied for real, as it needs no provider."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from .support.tool import Project

HOSTS = [{"name": f"rack-{number}", "address": f"192.0.2.{number}", "zone": "hall-a"} for number in (11, 12, 13)]


@pytest.fixture(scope="module")
def applied(onprem: Project) -> dict[str, Any]:
    """The outputs after an apply with 16 cards."""
    given = onprem.folder / "hosts.auto.tfvars.json"
    given.write_text(
        json.dumps(
            {
                "instance_type": "onprem-gaudi3-8",
                "hosts": HOSTS,
                "monitor_host": {"name": "watch", "address": "192.0.2.5"},
                "ssh_user": "admin",
                "jump_host": "me@gate.example.com",
            }
        )
    )
    done = onprem.change("apply", "-var=cluster_size=16")
    assert done.code == 0, done.output
    return onprem.outputs()


def test_the_inventory_is_what_site_yml_works_on(applied: dict[str, Any]) -> None:
    inventory = yaml.safe_load(applied["ansible_inventory"])["all"]
    assert {name: sorted(group["hosts"]) for name, group in inventory["children"].items()} == {
        "gaudi": ["rack-11", "rack-12"],
        "gaudi_head": ["rack-11"],
        "monitoring": ["watch"],
        "onprem": ["rack-11", "rack-12", "watch"],
    }
    assert inventory["vars"] == {
        "ansible_user": "admin",
        "ansible_become": True,
        "ansible_ssh_common_args": "-o ProxyJump=me@gate.example.com",
    }
    assert inventory["hosts"]["rack-12"] == {
        "ansible_host": "192.0.2.12",
        "gaudi_cluster_address": "192.0.2.12",
        "gaudi_instance_type": "onprem-gaudi3-8",
        "gaudi_zone": "hall-a",
    }


def test_the_outputs_are_complete(applied: dict[str, Any]) -> None:
    assert applied["master_ip"] == "192.0.2.11"
    assert applied["cluster_endpoints"]["rack-11"] == {
        "role": "head",
        "private_ip": "192.0.2.11",
        "public_ip": None,
        "instance_id": None,
        "instance_type": "onprem-gaudi3-8",
        "cards": 8,
        "zone": "hall-a",
        "market": None,
        "ssh_user": "admin",
        "connect_to": "192.0.2.11",
    }
    assert applied["cluster"]["cluster_size"] == 16
    assert applied["cluster"]["node_names"] == ["rack-11", "rack-12"]


def test_a_second_plan_is_empty_and_a_third_machine_is_added(onprem: Project, applied: dict[str, Any]) -> None:
    assert onprem.change("plan", "-detailed-exitcode", "-var=cluster_size=16").code == 0
    done = onprem.change("apply", "-var=cluster_size=24")
    assert "0 added, 1 changed, 0 destroyed" in done.output
    assert onprem.outputs()["cluster"]["node_names"] == ["rack-11", "rack-12", "rack-13"]
