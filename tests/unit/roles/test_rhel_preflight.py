"""What is refused on RHEL before anything changes; no dnf is at hand, so the tasks are read and their conditions "
"asked."""

from __future__ import annotations

from typing import Any

import pytest

from ..playbooks.jinja import evaluate, holds, load

MISSING = {"failed": True, "msg": "Failed to install some of the specified packages", "failures": ["No package {}."]}


def tasks(role: str) -> list[dict[str, Any]]:
    """The tasks of a role's preflight, and those for dnf alone."""
    then = load(f"roles/{role}/tasks/preflight-dnf.yml")
    if role == "synapseai":  # the preflight of a site asks it
        play = next(each for each in load("playbooks/preflight.yml") if "few" in each["name"])
        (asking,) = (task for task in play["tasks"] if "(dnf)" in task["name"])
        assert asking["when"] == "'dnf' in _gaudi_plan.more"  # of that family: _plan/drivers.py
        return then
    first = load(f"roles/{role}/tasks/preflight.yml")
    (asking,) = (task for task in first if "preflight-dnf.yml" in str(task))
    assert asking["when"] == "ansible_facts.os_family == 'RedHat'"
    return [*first, *then]


def test_a_system_that_is_not_debian_is_asked_for_node_exporter() -> None:
    (asking,) = (task for task in load("roles/node_exporter/tasks/special.yml") if "preflight.yml" in str(task))
    assert [holds([asking["when"]], ansible_facts={"os_family": each}) for each in ("Debian", "RedHat", "Suse")] == [
        False, True, True,
    ]  # fmt: skip


def using(role: str, module: str) -> dict[str, Any]:
    (task,) = (task for task in tasks(role) if module in task)
    return task


def variables(role: str, answer: dict[str, Any], family: str = "RedHat") -> dict[str, Any]:
    return {
        **load(f"roles/{role}/defaults/main.yml"),
        "inventory_hostname": "gaudi-1",
        "ansible_facts": {"os_family": family, "distribution": family, "distribution_version": "9.4"},
        using(role, "ansible.builtin.dnf")["register"]: answer,
    }


@pytest.mark.parametrize(("role", "package"), [("synapseai", "dkms"), ("node_exporter", "node-exporter")])
def test_a_package_of_epel_that_does_not_resolve_is_refused(role: str, package: str) -> None:
    question = using(role, "ansible.builtin.dnf")
    known = variables(role, MISSING)
    assert evaluate(question["ansible.builtin.dnf"]["name"], **known) == package
    assert question["check_mode"] is True and question["changed_when"] is False
    refusal = [task["ansible.builtin.assert"] for task in tasks(role) if "ansible.builtin.assert" in task][-1]
    conditions = [refusal["that"]] if isinstance(refusal["that"], str) else refusal["that"]
    assert not holds(conditions, **known)
    assert holds(conditions, **variables(role, {"changed": True, "msg": "Check mode: No changes made"}))
    said = " ".join(evaluate(refusal["fail_msg"], **known).split())
    assert said.startswith(f"dnf finds no package {package} on gaudi-1: enable EPEL and CodeReady Builder")


def test_a_system_without_a_known_package_is_refused() -> None:
    (refusal, *_rest) = (
        task["ansible.builtin.assert"] for task in tasks("node_exporter") if "ansible.builtin.assert" in task
    )
    for family, admitted in (("Debian", True), ("RedHat", True), ("Suse", False)):
        assert holds([refusal["that"]], **variables("node_exporter", {}, family)) is admitted
    own = {**variables("node_exporter", {}, "Suse"), "node_exporter_package": "golang-github-prometheus-node_exporter"}
    assert holds([refusal["that"]], **own)


def test_the_preflight_of_a_site_asks_both() -> None:
    plays = load("playbooks/preflight.yml")
    roles = [
        task["ansible.builtin.import_role"]
        for play in plays
        for outer in play.get("tasks", [])
        for task in (outer, *outer.get("block", []))
        if "ansible.builtin.import_role" in task
    ]
    asked = {(role["name"].rpartition(".")[2], role["tasks_from"]) for role in roles}
    assert {("synapseai", "preflight-dnf"), ("node_exporter", "preflight")} <= asked


def test_the_rpm_key_has_a_fingerprint_of_its_own() -> None:
    flat = [inner for task in load("roles/synapseai/tasks/install-dnf.yml") for inner in (task, *task.get("block", []))]
    (kept,) = (task["gaudi3.scale.synapseai_rpm_key"] for task in flat if "gaudi3.scale.synapseai_rpm_key" in task)
    (trust,) = (task["ansible.builtin.rpm_key"] for task in flat if "ansible.builtin.rpm_key" in task)
    known = {"synapseai_rpm_key_fingerprint": "B" * 40, "synapseai_key_fingerprint": "A" * 40}
    assert evaluate(kept["fingerprint"], **known) == evaluate(trust["fingerprint"], **known) == "B" * 40
