"""Which ports of a host are closed, and for whom they stay open."""

from __future__ import annotations

from typing import Any

from ansible_collections.gaudi3.scale.plugins.module_utils._host.firewall import groups_of


def groups(**given: Any) -> dict[str, tuple[list[str], list[str]]]:
    asked = {
        "trains": True, "collects": True, "jobs": [], "metrics_ports": [9100, "9410", 9100], "admin_ports": [9090],
        "rendezvous_port": 29400, "collective_ports": "32768-60999", "monitor_addresses": ["10.0.0.9"],
        "admin_networks": ["10.9.0.0/24"], "cluster_addresses": ["10.0.0.1"], "extra_cluster_addresses": ["fd00::1"],
    }  # fmt: skip
    return {each.name: (list(each.ports), list(each.sources)) for each in groups_of({**asked, **given})}


def test_a_host_that_is_both() -> None:
    assert groups() == {
        "metrics": (["9100", "9410"], ["10.0.0.9"]),
        "admin": (["9090"], ["10.9.0.0/24", "10.0.0.9"]),
        "cluster": (["29400", "32768-60999"], ["10.0.0.1", "fd00::1"]),
    }


def test_a_host_has_the_ports_of_what_it_is_for() -> None:
    assert groups(trains=False)["cluster"][0] == [] and groups(collects=False)["admin"][0] == []
    assert groups(admin_networks=[])["admin"][0] == [], "everybody may reach them, with a password"


def test_ports_that_are_none_are_left_out() -> None:
    assert groups(metrics_ports=[0, "9100", "0"])["metrics"][0] == ["9100"]
    assert groups(collective_ports="")["cluster"][0] == ["29400"]


def test_jobs_of_a_list_may_have_ports_of_their_own() -> None:
    jobs = [
        {"name": "one", "rdzv_port": 29500, "config": {"metrics": {"port": 9500}}},
        {"name": "two", "node_config": {"metrics": {"port": 9600}}, "config": None},
        {"name": "three", "config": {"metrics": {"port": 0}}},
    ]
    found = groups(jobs=jobs)
    assert found["metrics"][0] == ["9100", "9410", "9500", "9600"]
    assert found["cluster"][0] == ["29400", "29500", "32768-60999"]
