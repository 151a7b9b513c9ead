"""No task that changes a node is left out unless the node was asked what it would do, or another answer says so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.gaudi3.scale.plugins.module_utils._plan.phases import PHASES
from ansible_collections.gaudi3.scale.plugins.plugin_utils.role_tasks import TASKS

from ..playbooks.test_decided_for_all import tasks

ROLES = Path(__file__).resolve().parents[3] / "roles"
#: The roles whose phases leave nodes out.
ASKED = ("synapseai", "fabric", "tuning", "pytorch", "trainer", "firewall", "node_exporter", "hpu_exporter")
#: The phases that leave hosts out.
LEAVES = ("tuning", "drivers", "fabric", "firewall", "pytorch", "monitoring", "train")
#: What changes no node.
HARMLESS = {
    *("assert", "debug", "fail", "find", "import_role", "import_tasks", "include_tasks", "set_fact", "setup", "slurp"),
    *("uri", "meta", "gaudi_host_plan", "gaudi_site_plan", "gaudi_pci_facts", "gaudi_fabric_facts"),
    *("gaudi_train_node_info", "gaudi_train_info", "trainer_wheel"),
}
#: Why a task needs no question of its own: another answer says that nothing of it would be done, or nobody is left out.
DNF = "what dnf installs is not asked, and no node of that family is left out"
DRIVER = "comes after a driver that was not the release's, of which the question for the driver knows"
LLDP = "a node without lldpd is not left out, as its addresses are not known, nor is one with ports that are down"
TCP = "where collectives go over TCP no node is left out"
PROTECTED = "an exporter with passwords or certificates is not left out"
SPECIAL = "a node with more than a user and a wheel is not left out"
JOB = "the head is asked each time how far the job is, and the others go by that"
COVERED = {
    "fabric": {
        "Bring the external ports up for LLDP": LLDP,
        "Build the wrapper": TCP,
        "Fetch the wrapper's source": TCP,
        "Install libfabric and a compiler": TCP,
        "Install lldpd": LLDP,
        "Make the folder of the wrapper's source": TCP,
        "Unpack the wrapper's source": TCP,
    },
    "firewall": {"Install nftables": "the table is loaded, for which nft has to be there"},
    "hpu_exporter": {"Have the exporter's image from the mirror": "a unit that runs as it is to be has its image"},
    "node_exporter": {
        "Create the folder of the web configuration": PROTECTED,
        "Create the user that the package's service runs as": PROTECTED,
        "Install the package, its service not yet started": "a service that runs as it is to be has its package",
        "Refuse what somebody else wrote": PROTECTED,
        "Write the web configuration": PROTECTED,
    },
    "pytorch": {"Install what PyTorch needs of the distribution": "comes only with PyTorch itself"},
    "synapseai": {
        "Add SHA-1 to it": DNF,
        "Add the vendor's repository, limited to the release": DNF,
        "Forget it": DNF,
        "Forget that it was changed": DNF,
        "Install packages and what they need": DNF,
        "Keep the vendor's package key, checked": DNF,
        "Make the folder of what has to be remembered": DNF,
        "Reboot": DRIVER,
        "Remember the policy, should this run be interrupted": DNF,
        "Set the policy that was there": DNF,
        "Set the policy that was there before": DNF,
        "Trust the vendor's package key": DNF,
    },
    "trainer": {
        "Bring the job to its state": JOB,
        "Bring the job to its state in Slurm": JOB,
        "Create the group of the jobs' user": SPECIAL,
        "Give the job the environment of the vendor's profile files": JOB,
        "Install packages that pip is in": SPECIAL,
        "Install the container's engine": SPECIAL,
        "Pull the container's image": SPECIAL,
        "Wait for the job": JOB,
        "Wait for the job in Slurm": JOB,
        "See how the job ended on the other nodes": JOB,
    },
    "tuning": {"Reboot": "an argument that waits for a reboot is in the answer, and its node is not left out"},
}


#: Roles of a monitoring host, which is left out of their phases. A service's own module asks what it does itself.
MONITORING = ("prometheus", "alertmanager", "grafana", "watch", "monitoring_service")
SERVICE = "gaudi3.scale.gaudi_monitoring"
STEPS = ("preflight", "claim", "targets", "run", "verify")
BEFORE = "a file of Service.before, which the look compares"
PACKAGE = "the look asks for it"
PAGES = "the exporters' alone, which are not left out where they have certificates"
COVERED_THERE = {
    "prometheus": {
        "Install the package": PACKAGE,
        "Refuse a host that watches another cluster": "the preflight asks it of each host, and changes nothing",
    },
    "alertmanager": {"Install the package": PACKAGE},
    "grafana": {
        "Add Grafana's repository": BEFORE,
        "Fetch the key of Grafana's repository": BEFORE,
        "Install the package": PACKAGE,
    },
    "monitoring_service": {
        "Make the folder of the certificate": PAGES,
        "Make the passwords and the certificate, once, on the controller: {{ monitoring_service_options.name }}": PAGES,
        "Say when the certificates end: {{ monitoring_service_options.name }}": PAGES,
        "Write the certificate, for {{ monitoring_service_options.group }}": PAGES,
    },
}


def changes(task: dict[str, Any]) -> bool:
    """Whether a task may change the node."""
    module = next((key.rpartition(".")[2] for key in task if key.count(".") == 2), None)
    looks = task.get("changed_when") is False or task.get("check_mode") is True
    return module is not None and module not in HARMLESS and not looks


def changing(role: str) -> set[str]:
    """The names of a role's tasks that may change a node, but for those that remove the role."""
    files = [path for path in sorted((ROLES / role / "tasks").glob("*.yml")) if path.stem != "remove"]
    return {task["name"] for path in files for task in tasks(yaml.safe_load(path.read_text())) if changes(task)}


def probed(role: str) -> set[str]:
    return {each.task for phase in PHASES for each in (*phase.questions, *phase.details) if each.role == role} - {""}


@pytest.mark.parametrize("role", ASKED)
def test_every_task_that_changes_a_node_is_asked_for(role: str) -> None:
    found, known = changing(role), {*probed(role), *COVERED.get(role, {})}
    assert found - known == set(), "name the task in plugins/module_utils/_plan/, or say why it needs no question"
    assert COVERED.get(role, {}).keys() - found == set(), "is no task any more"


@pytest.mark.parametrize("role", ASKED)
def test_what_is_asked_is_a_task(role: str) -> None:
    assert probed(role) <= TASKS[role].keys()
    assert probed(role) or role in ("node_exporter", "hpu_exporter")


def changing_there(role: str) -> set[str]:
    """The names of a monitoring role's tasks that may change its host and are no step that the look knows."""
    files = [path for path in sorted((ROLES / role / "tasks").glob("*.yml")) if path.stem != "remove"]
    found = [task for path in files for task in tasks(yaml.safe_load(path.read_text())) if changes(task)]
    return {task["name"] for task in found if task.get(SERVICE, {}).get("step") not in STEPS}


@pytest.mark.parametrize("role", MONITORING)
def test_every_task_that_changes_a_monitoring_host_is_asked_for(role: str) -> None:
    found, known = changing_there(role), COVERED_THERE.get(role, {}).keys()
    assert found - known == set(), "give it to the service in plugins/module_utils/_plan/, or say how the look knows it"
    assert known - found == set(), "is no task any more"


def test_no_playbook_of_a_phase_changes_a_host_itself() -> None:
    """A role does, whose tasks are asked for."""
    plays = [
        (path.name, play)
        for path in sorted(ROLES.parent.glob("playbooks/*.yml"))
        if path.stem in LEAVES
        for play in yaml.safe_load(path.read_text())
    ]
    found = [(name, task["name"]) for name, play in plays for task in tasks(play.get("tasks")) if changes(task)]
    assert len(plays) > 30 and found == []


def test_a_task_without_a_question_is_found() -> None:
    assert changes({"name": "Write", "ansible.builtin.copy": {}})
    assert changes({"name": "Write", "gaudi3.scale.gaudi_service": {}, "when": "x"})
    assert not changes({"name": "Ask", "ansible.builtin.dnf": {}, "check_mode": True, "changed_when": False})
    assert not changes({"name": "See", "block": []})
