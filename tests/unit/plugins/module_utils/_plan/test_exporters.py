"""What the exporters run with, and what keeps that of the cards from it.

Their files and arguments: tests/unit/roles/test_exporter_files.py and test_node_exporter.py.
"""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._plan import exporters
from ansible_collections.gaudi3.scale.plugins.module_utils._plan.run import Run

USUAL: dict[str, Any] = {
    "inventory_hostname": "gaudi-1",
    "hpu_exporter_kind": "hl_smi",
    "hpu_exporter_hl_smi": "/usr/bin/hl-smi",
    "hpu_exporter_container_engine": "podman",
    "hpu_exporter_address": "10.0.0.1",
    "hpu_exporter_port": 41611,
    "hpu_exporter_interval": 10,
    "hpu_exporter_details_interval": 30,
    "_hpu_exporter_devices": {"files": [{"path": "/usr/bin/hl-smi"}, {"path": "/usr/bin/podman"}]},
}
INTEL = {"hpu_exporter_kind": "intel"}
TLS = {f"hpu_exporter_{name}": f"/{name}" for name in ("certificate", "key", "client_authority")}
TOGETHER = "hpu_exporter_certificate, hpu_exporter_key and hpu_exporter_client_authority belong together, for kind"


def values(**given: Any) -> Any:
    return {**USUAL, **given}.get


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, []),
        (TLS, []),
        (INTEL, []),
        ({"hpu_exporter_interval": 4}, ["hpu_exporter_interval is 4 and hpu_exporter_details_interval is 30: give 5"]),
        (
            {"hpu_exporter_details_interval": "x"},
            ["hpu_exporter_interval is 10 and hpu_exporter_details_interval is"],
        ),
        ({"hpu_exporter_key": "/key"}, [f"{TOGETHER} hl_smi: give all three or none."]),
        ({**TLS, **INTEL}, [f"{TOGETHER} hl_smi: give all three or none, or hl_smi as hpu_exporter_kind."]),
        (
            {"_hpu_exporter_devices": {"files": []}},
            ["/usr/bin/hl-smi is not on gaudi-1: install it with role gaudi3.scale.synapseai, or give its path as"],
        ),
        (
            {**INTEL, "hpu_exporter_container_engine": "docker"},
            ["/usr/bin/docker is not on gaudi-1: install docker, or name another engine as hpu_exporter_container_eng"],
        ),
        ({"_hpu_exporter_devices": {"files": []}, "ansible_check_mode": True}, []),
        ({"_hpu_exporter_devices": {"files": "odd"}}, ["/usr/bin/hl-smi is not on gaudi-1"]),
    ],
)
def test_what_cannot_work(given: dict[str, Any], said: list[str]) -> None:
    found = exporters.problems(values(**given))
    assert len(found) == len(said) and all(each.startswith(begins) for each, begins in zip(found, said, strict=True))


def test_the_plan_of_the_host_has_looked_where_the_role_has_not() -> None:
    plan = {"found": {"hpu_exporter_files": {"files": [{"path": "/usr/bin/hl-smi"}]}}}
    assert exporters.problems(values(_hpu_exporter_devices=None, _gaudi_plan=plan)) == []


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ({}, "http://10.0.0.1:41611/healthz"),
        (INTEL, "http://10.0.0.1:41611/metrics"),
        ({"hpu_exporter_address": "fd00::1"}, "http://[fd00::1]:41611/healthz"),
    ],
)
def test_the_page(given: dict[str, Any], url: str) -> None:
    assert exporters.url(values(**given)) == url


def test_a_container_is_asked_for_by_its_name_and_may_be_fetched_first() -> None:
    assert exporters.cards_listen(values()).keys() == {"address", "port", "variable"}
    found = exporters.cards_listen(values(**INTEL))
    assert found["container"] == ["/usr/bin/podman", "inspect", "--format", "{{.Id}}", "gaudi-hpu-exporter"]
    assert found["timeout"] == 300
    assert exporters.sources(values(**INTEL)) == []


@pytest.mark.parametrize(("name", "unit"), [("mine", "mine.service"), ("mine.timer", "mine.timer")])
def test_a_unit_has_its_whole_name(name: str, unit: str) -> None:
    assert exporters.service(values(node_exporter_service=name)) == unit


def test_a_page_with_passwords_is_one_more_file_to_claim() -> None:
    given = {"node_exporter_arguments_file": "/args", "node_exporter_web_config_file": "/web"}
    assert exporters.claim(values(**given, node_exporter_web_config={}))["files"] == ["/args"]
    found = exporters.claim(values(**given, node_exporter_web_config={"a": 1}, node_exporter_take_over="yes"))
    assert (found["files"], found["take_over"]) == (["/args", "/web"], True)


@pytest.mark.parametrize(
    ("family", "tags", "asks"),
    [("Debian", "all", False), ("RedHat", "all", True), ("RedHat", "monitoring", True), ("Suse", "drivers", False)],
)
def test_a_package_is_asked_for_where_it_is_not_the_distributions_own(family: str, tags: str, asks: bool) -> None:
    given = values(ansible_facts={"os_family": family})
    assert exporters.asks_package(given, Run.of([tags], [])) is asks
    assert exporters.asks_package(given, Run.of([tags], ["monitoring"])) is False
