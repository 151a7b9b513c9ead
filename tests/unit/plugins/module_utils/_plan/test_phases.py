"""When a run leaves a host out of a phase: only where the host has said that all is as it is to be."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._plan.model import Phase
from ansible_collections.gaudi3.scale.plugins.module_utils._plan.phases import BY_NAME

SEEN: dict[str, Any] = {"changed": False, "done": [], "diff": []}
FAILED: dict[str, Any] = {"failed": True, "msg": "systemctl is missing", "done": [], "diff": []}
DRIVER = {"changed": False, "loaded": [], "unloaded": [], "ports_brought_up": False, "reboot_required": False}
LINE = {"name": "gaudi3-scale", "missing": [], "reboot_needed": False}
VALUES: dict[str, Any] = {
    "fabric_kind": "gaudi",
    "hpu_exporter_kind": "hl_smi",
    "hpu_exporter_hl_smi": "/usr/bin/hl-smi",
    "hpu_exporter_interval": 10,
    "hpu_exporter_details_interval": 30,
    "_hpu_exporter_devices": {"files": [{"path": "/usr/bin/hl-smi"}]},
    "firewall_enabled": True,
    "pytorch_state": "present",
}
#: What a host answers of which every phase leaves it out.
CONVERGED: dict[str, Any] = {
    "account": {"changed": False},
    "boot": SEEN,
    "driver": DRIVER,
    "fabric": {"changed": False, "files": []},
    "firewall": SEEN,
    "firewall_boot": SEEN,
    "holds": {"changed": False},
    "hpu_exporter": SEEN,
    "hpu_exporter_page": {"status": 200},
    "node_exporter": SEEN,
    "node_exporter_port": {"state": "started"},
    "packages": SEEN,
    "ports": {"changed": False, "down": []},
    "pytorch": SEEN,
    "trainer": {"changed": False},
    "tuning": {"changed": False, "command_line": [LINE]},
}
#: The job's own phase asks the head each time.
LEFT = [phase for name, phase in BY_NAME.items() if name != "train"]
#: What each phase goes by.
READ = {
    "drivers": ("driver", "packages", "boot", "holds"),
    "fabric": ("fabric", "ports"),
    "tuning": ("tuning",),
    "pytorch": ("pytorch",),
    "trainer": ("account", "trainer", "pytorch"),
    "firewall": ("firewall", "firewall_boot"),
    "node_exporter": ("node_exporter", "node_exporter_port"),
    "hpu_exporter": ("hpu_exporter", "hpu_exporter_page"),
}


def unchanged(phase: Phase, answers: dict[str, Any], **values: Any) -> bool:
    return phase.unchanged({**VALUES, **values}.get, answers)


@pytest.mark.parametrize("phase", LEFT, ids=lambda phase: phase.name)
def test_a_host_that_is_as_wanted_is_left_out(phase: Phase) -> None:
    assert unchanged(phase, CONVERGED)


@pytest.mark.parametrize("odd", [None, {}, [], "yes", 1, {"skipped": True, **SEEN}, FAILED, {"done": None, "diff": []}])
@pytest.mark.parametrize(("name", "answer"), [(name, each) for name, read in READ.items() for each in read])
def test_an_answer_that_says_something_else_or_nothing_leaves_nobody_out(name: str, answer: str, odd: Any) -> None:
    assert not unchanged(BY_NAME[name], {**CONVERGED, answer: odd})
    assert not unchanged(BY_NAME[name], {key: value for key, value in CONVERGED.items() if key != answer})


@pytest.mark.parametrize(
    ("name", "answer", "found"),
    [
        ("drivers", "driver", {**DRIVER, "loaded": ["habanalabs"]}),
        ("drivers", "driver", {**DRIVER, "unloaded": ["habanalabs"]}),
        ("drivers", "driver", {**DRIVER, "ports_brought_up": True}),
        ("drivers", "driver", {**DRIVER, "reboot_required": True}),
        ("drivers", "packages", {**SEEN, "done": ["packages"]}),
        ("drivers", "boot", {**SEEN, "done": ["enable"]}),
        ("drivers", "holds", {"changed": True}),
        ("fabric", "fabric", {"files": ["/etc/gaudi3-scale/fabric.env"]}),
        ("fabric", "ports", {"down": [1]}),
        ("tuning", "tuning", {"changed": True, "command_line": []}),
        ("tuning", "tuning", {"changed": False, "command_line": [{**LINE, "reboot_needed": True}]}),
        ("tuning", "tuning", {"changed": False, "command_line": ["odd"]}),
        ("pytorch", "pytorch", {**SEEN, "done": ["pytorch"]}),
        ("trainer", "account", {"changed": True}),
        ("trainer", "trainer", {"changed": True}),
        ("trainer", "pytorch", {**SEEN, "done": ["pytorch"]}),
        ("firewall", "firewall", {**SEEN, "diff": [{"after": "another table"}]}),
        ("firewall", "firewall_boot", {**SEEN, "done": ["start"]}),
        ("node_exporter", "node_exporter", {**SEEN, "done": ["start"]}),
        ("node_exporter", "node_exporter", {**SEEN, "diff": [{"after": "other arguments"}]}),
        ("node_exporter", "node_exporter_port", {"failed": True, "msg": "Timeout"}),
        ("hpu_exporter", "hpu_exporter", {**SEEN, "done": ["daemon-reload", "restart"]}),
        ("hpu_exporter", "hpu_exporter_page", {"status": 503}),
        ("hpu_exporter", "hpu_exporter_page", {"status": -1}),
    ],
)
def test_what_would_be_changed_is_not_left_out(name: str, answer: str, found: dict[str, Any]) -> None:
    assert not unchanged(BY_NAME[name], {**CONVERGED, answer: found})


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("fabric", {"fabric_kind": "host_tcp"}),
        ("firewall", {"firewall_enabled": "false"}),
        ("pytorch", {"pytorch_state": "preinstalled"}),
        ("hpu_exporter", {"_hpu_exporter_devices": {"files": []}}),
    ],
)
def test_what_is_not_looked_at_is_not_left_out(name: str, values: dict[str, Any]) -> None:
    assert not unchanged(BY_NAME[name], CONVERGED, **values)


@pytest.mark.parametrize(
    ("answer", "left"), [({"installed": True}, True), ({"installed": False}, False), ({"installed": None}, False)]
)
def test_a_package_whose_name_has_a_version_is_to_be_there_in_it(answer: dict[str, Any], left: bool) -> None:
    phase, wanted = BY_NAME["node_exporter"], {"node_exporter_package": "prometheus-node-exporter=1.5.0-1~bpo11+1"}
    assert unchanged(phase, {**CONVERGED, "node_exporter_package": answer}, **wanted) is left
    (question,) = (each for each in phase.details if each.name == "node_exporter_package")
    assert question.applies(wanted.get) and not question.applies({"node_exporter_package": "exporter"}.get)
    assert question.options is not None and question.options(wanted.get) == {"package": wanted["node_exporter_package"]}
    assert not unchanged(phase, CONVERGED, **wanted)


def test_intels_exporter_answers_the_second_request_with_429() -> None:
    assert unchanged(BY_NAME["hpu_exporter"], {**CONVERGED, "hpu_exporter_page": {"status": 429}})


def test_the_phase_of_jobs_is_never_left_out() -> None:
    assert not unchanged(BY_NAME["train"], CONVERGED)
