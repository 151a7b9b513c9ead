"""Which hosts send their logs, which one collects them, and what keeps them from it."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._plan import logs
from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal

USUAL: dict[str, Any] = {
    "inventory_hostname": "gaudi-1",
    "groups": {"all": ["gaudi-1", "gaudi-2", "mon"], "gaudi": ["gaudi-1", "gaudi-2"], "monitoring": ["mon"]},
    "hostvars": {"mon": {"ansible_host": "10.0.0.5"}, "gaudi-1": {"ansible_host": "10.0.0.11"}},
    "ansible_facts": {"os_family": "Debian", "distribution": "Ubuntu"},
    "logs_collector": "",
    "logs_address": "10.0.0.11",
    "logs_port": 19532,
    "logs_retention_time": "30d",
    "logs_retention_size": "20G",
    "logs_node_size": "",
    "logs_vendor": True,
    "logs_jobs_dir": "/var/lib/gaudi3-scale/jobs",
    "logs_package": "systemd-journal-remote",
}
MONITOR = {"inventory_hostname": "mon", "logs_address": "10.0.0.5"}


def decided(**given: Any) -> Any:
    return logs.decide({**USUAL, **given}.get)


def text(files: list[dict[str, Any]], end: str) -> str:
    (found,) = [each["content"] for each in files if each["path"].endswith(end)]
    return str(found)


def test_a_node_sends_to_the_monitoring_host() -> None:
    found = decided()
    assert (found["problem"], found["collects"], found["sends"]) == ("", False, True)
    assert "--url=https://10.0.0.5:19532 " in text(found["files"]["upload"], ".service")
    assert found["names"] == ["gaudi-1", "10.0.0.11"], "the first is the name of the certificate"


def test_the_monitoring_host_collects() -> None:
    found = decided(**MONITOR)
    assert (found["collects"], found["sends"]) == (True, False)
    assert "--address 10.0.0.5 --port 19532\n" in text(found["files"]["collector"], ".service")
    assert "MaxUse=21474836480" in text(found["files"]["collector"], "journal-remote.conf")
    assert "--seconds 2592000 --bytes 21474836480" in text(found["files"]["retention"], ".service")
    assert text(found["files"]["collector"], "bin/gaudi-logs").startswith("#!/bin/sh\n")


def test_another_host_may_collect_by_an_address_of_its_own() -> None:
    hostvars = {"mon": {}, "gaudi-2": {"logs_address": "fd00::5", "ansible_host": "10.0.0.12"}}
    found = decided(logs_collector="gaudi-2", hostvars=hostvars)
    assert "--url=https://[fd00::5]:19532 " in text(found["files"]["upload"], ".service")
    both = decided(inventory_hostname="gaudi-2", logs_collector="gaudi-2", logs_address="10.0.0.12")
    assert both["collects"] and both["sends"]
    idle = decided(**MONITOR, logs_collector="gaudi-2", hostvars=hostvars)
    assert not idle["collects"] and not idle["sends"] and idle["problem"] == ""


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"groups": {"gaudi": ["gaudi-1"]}}, "No host is in the group monitoring, where the nodes' logs are collected"),
        ({"logs_collector": "no"}, "logs_collector is no, which is no host of the inventory: name one that is."),
        ({"ansible_facts": {"os_family": "Suse", "distribution": "SLES"}}, "gaudi-1 runs SLES, whose package of"),
        ({"logs_port": 70000}, "logs_port is 70000: give a port from 1 to 65535."),
        ({"logs_port": "x"}, "logs_port is x: give a port from 1 to 65535."),
        ({"hostvars": {"mon": {"ansible_host": "mon.site"}}}, 'logs_address of mon is "mon.site": give its IP address'),
        ({"hostvars": {"mon": {"ansible_host": "127.0.0.1"}}}, 'logs_address of mon is "127.0.0.1": give its IP'),
        ({"logs_retention_time": "month"}, 'logs_retention_time is "month": write a number and one of h and d'),
        ({"logs_retention_time": "10m"}, 'logs_retention_time is "10m": write a number and one of h and d'),
        ({"logs_retention_size": "20 GB"}, 'logs_retention_size is "20 GB": write a number and one of M, G and T'),
        ({"logs_retention_size": "500M"}, "logs_retention_size is 500M, and 2 nodes have 256 MB of files that are"),
        ({"logs_node_size": "lots"}, 'logs_node_size is "lots": write a number and one of M, G and T, such as 4G, or'),
        ({"logs_jobs_dir": '/jobs" --x'}, 'logs_jobs_dir is "/jobs" --x": give a path of letters'),
        ({"inventory_hostname": "g" * 65}, f"The name {'g' * 65} cannot be that of a certificate"),
        ({"inventory_hostname": "g,CN=x"}, "The name g,CN=x cannot be that of a certificate"),
    ],
)
def test_what_cannot_work_is_one_sentence(given: dict[str, Any], said: str) -> None:
    problem = decided(**given)["problem"]
    assert problem.startswith(said) and problem.endswith(".") and "\n" not in problem


def test_an_unsafe_setting_is_refused_as_addresses_are_other_hosts() -> None:
    with pytest.raises(Refusal, match="inject"):
        decided(gaudi_settings_problem="inject_facts_as_vars is on.")
