"""Where one node's answer could decide for all: conditions of the run itself, and what is evaluated once for all nodes.

Each place is known and says how it takes an odd answer; a new one has to be put down here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from jinja2 import Environment, nodes

from .jinja import ROOT, holds
from .jinja import load as trusted

FILES = sorted([*ROOT.glob("playbooks/**/*.yml"), *ROOT.glob("roles/**/*.yml")])
#: What a condition of a `meta` task may read as it is: the inventory, the command, and what the controller alone made.
OWN = {
    "ansible_run_tags", "ansible_skip_tags", "inventory_hostname", "trainer_head", "trainer_jobs",
    "_gaudi_site", "phase_apart", "phase_hook",  # names of hosts and phases, which gaudi_site_plan makes
}  # fmt: skip
#: Lookups that never fail.
SAFE = ("gaudi3.scale.holds", "gaudi3.scale.first_look", "gaudi3.scale.hook")


def tasks(entries: Any) -> Iterator[dict[str, Any]]:
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, dict):
            yield entry
            for part in ("block", "rescue", "always", "tasks", "pre_tasks", "post_tasks", "handlers"):
                yield from tasks(entry.get(part))


def all_tasks() -> Iterator[tuple[str, dict[str, Any]]]:
    for path in FILES:
        for task in tasks(yaml.safe_load(path.read_text())):
            yield str(path.relative_to(ROOT)), task


def texts(value: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """Every text in a file, behind the last key that leads to it."""
    if isinstance(value, dict):
        for name, each in value.items():
            yield from texts(each, str(name))
    elif isinstance(value, list):
        for each in value:
            yield from texts(each, key)
    elif isinstance(value, str):
        yield key, value


def _tree(condition: str) -> nodes.Template:
    engine = Environment(autoescape=True)
    for text in re.findall(r"\|\s*([\w.]+)|\bis (?:not )?([\w.]+)", condition):
        engine.filters.setdefault(text[0], str)
        engine.tests.setdefault(text[1], lambda _value: True)
    return engine.parse("{{ (" + condition + ") }}")


def odd_names(condition: Any) -> list[str]:
    """What a condition reads that an answer of a node could make an error, by its name."""
    if isinstance(condition, list):
        return [name for each in condition for name in odd_names(each)]
    tree = _tree(str(condition))
    lookups = [call for call in tree.find_all(nodes.Call) if isinstance(call.node, nodes.Name)]
    found = [str(call.args[0].as_const()) for call in lookups if call.args[0].as_const() not in SAFE]
    names = {each.name for each in tree.find_all(nodes.Name)} - {"lookup"} - OWN
    return sorted(names) + found


def test_no_condition_of_the_run_itself_can_be_made_an_error_by_a_node() -> None:
    """Ansible evaluates that of a `meta` task in the run: an error ends it for all nodes, and names none."""
    found = [(path, task) for path, task in all_tasks() if "ansible.builtin.meta" in task or "meta" in task]
    assert len(found) >= 17
    wrong = [
        f"{path}: {task['name']}: {odd_names(task['when'])}: ask the lookup gaudi3.scale.holds"
        for path, task in found
        if "when" in task and odd_names(task["when"])
    ]
    assert wrong == []


def test_what_conditions_of_the_run_ask_for_is_defined() -> None:
    """A name that is nowhere would never hold."""
    defined = {key for path in FILES for key, _text in texts(yaml.safe_load(path.read_text()))}
    asked = {
        name for path in FILES for name in re.findall(r"lookup\('gaudi3\.scale\.holds', '(\w+)'\)", path.read_text())
    }
    assert len(asked) >= 5 and asked <= defined


@pytest.mark.parametrize(
    ("condition", "found"),
    [
        ("_synapseai_problem == ''", ["_synapseai_problem"]),
        ("ansible_facts.gaudi_pci.iommu_problem is none or x | bool", ["ansible_facts", "x"]),
        (["'all' in ansible_run_tags", "not _answer.done"], ["_answer"]),
        ("lookup('ansible.builtin.vars', '_answer') == ''", ["ansible.builtin.vars"]),
        ("hostvars[inventory_hostname].x is defined", ["hostvars"]),
        ("not lookup('gaudi3.scale.holds', '_answer') or 'all' in ansible_run_tags", []),
    ],
)
def test_a_condition_that_a_node_could_break_is_found(condition: Any, found: list[str]) -> None:
    assert odd_names(condition) == found


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("{{ answer.done | length == 0 }}", True), ("{{ answer.done | length == 1 }}", False), ("{{ answer }}", False),
        ("{{ answer.missing.value == 1 }}", False), ("{{ answer.done > 5 }}", False), ("{{ nothing }}", False),
        ("{{ answer.done[7] }}", False), ("{{ 1 // 0 }}", False), ("{{ 'True' }}x", False),
    ],
)  # fmt: skip
def test_what_cannot_be_evaluated_does_not_hold(tmp_path: Path, value: str, expected: bool) -> None:
    page = tmp_path / "page.yml"
    page.write_text(yaml.safe_dump({"value": value, "when": ["lookup('gaudi3.scale.holds', 'value')"]}))
    given = trusted(str(page))
    assert holds(given["when"], value=given["value"], answer={"done": []}) is expected


#: Every value that is read of several nodes, or of one node for others: the filter that reads it, whatever it is. In
#: the other places it is the inventory's, or the controller's own.
INVENTORY = "inventory"
CONTROLLER = "controller"
READ = {
    "playbooks/backup.yml: _controller_snapshot": CONTROLLER,
    "playbooks/bmc.yml: _bmc_asked": INVENTORY,
    "playbooks/bmc.yml: _bmc_lines": "bmc_lines",
    "playbooks/bmc.yml: content": "bmc_metrics",
    "playbooks/certificate.yml: answers": "certificate_answers",
    "playbooks/doctor.yml: _doctor_lines": "doctor_letter",
    "playbooks/doctor.yml: _doctor_logins": INVENTORY,
    "playbooks/drivers.yml: max_fail_percentage": INVENTORY,
    "playbooks/drivers.yml: serial": INVENTORY,
    "playbooks/heal.yml: _heal_decided": CONTROLLER,
    "playbooks/heal.yml: _unread": "health_report",
    "playbooks/heal.yml: fences": "health_report",
    "playbooks/heal.yml: reports": "health_report",
    "playbooks/health.yml: _health_fit": "health_report",
    "playbooks/health.yml: _pair_options": CONTROLLER,
    "playbooks/health.yml: pair_search": CONTROLLER,
    "playbooks/health.yml: examinations": "health_report",
    "playbooks/tasks/heal-round.yml: _busy": CONTROLLER,  # a boolean
    "playbooks/tasks/heal-round.yml: _ended": "ended_jobs",
    "playbooks/tasks/heal-round.yml: ended": CONTROLLER,  # a boolean, and a message that is printable
    "playbooks/tasks/heal-round.yml: reports": "health_report",
    "playbooks/tasks/pair-round.yml: _answers": "call_answer",
    "playbooks/tasks/pair-search.yml: _addresses": INVENTORY,
    "playbooks/tasks/pair-search.yml: _cards": "health_report",
    "playbooks/tasks/pair-search.yml: _told": "health_report",
    "playbooks/tasks/pair-search.yml: cards": "health_report",
    "playbooks/tasks/upgrade-unfence.yml: _looks": "upgrade_look",
    "playbooks/upgrade.yml: examinations": "health_report",
    "playbooks/upgrade.yml: looks": "upgrade_look",
    "playbooks/vars/controller.yml: _controller_clusters": INVENTORY,
    "roles/monitoring_service/vars/main.yml: _monitoring_service_wanted": "others_addresses",
    "roles/trainer/tasks/install-container.yml: _trainer_ids": "exact_texts",
}
#: What a value of the inventory or of the controller may not have in it: what a task registered on a node, or facts.
_OF_NODES = re.compile(r"ansible_facts|_answer\b(?! *\}\})|\.stdout|\.msg\b")


def test_every_value_of_other_nodes_is_read_by_a_typed_filter() -> None:
    found: dict[str, list[str]] = {}
    for path in FILES:
        if path.name != "argument_specs.yml":
            for key, text in texts(yaml.safe_load(path.read_text())):
                if "hostvars" in text:
                    found.setdefault(f"{path.relative_to(ROOT)}: {key}", []).append(text)
    assert sorted(found) == sorted(READ)
    for place, said in found.items():
        for text in said:
            if READ[place] in (INVENTORY, CONTROLLER):
                assert not _OF_NODES.search(text), place
            else:
                assert re.search(rf"gaudi3\.scale\.{READ[place]}\b", text), place


def test_templates_read_other_nodes_through_filters_too() -> None:
    pages = [path for folder in ("playbooks", "roles") for path in (ROOT / folder).rglob("*.j2")]
    (page,) = (path for path in pages if "hostvars" in path.read_text())
    assert page.name == "summary.j2"
    text = page.read_text()
    read = set(re.findall(r"hostvars\[\w+\]\.(\w+)", text)) | set(re.findall(r"attribute='([\w.]+)'", text))
    inventory = {"gaudi_secrets", "gaudi_secrets_dir", "gaudi_cluster_address", "ansible_host", "prometheus_port"}
    inventory |= {"watch_enabled", "watch_port"}
    inventory |= {"ansible_user", "ansible_port", "ansible_ssh_private_key_file"}
    assert read == {"ansible_facts.gaudi", "_verify_job.jobs"} | inventory
    assert "cards | gaudi3.scale.site_summary(jobs," in text
    assert not re.search(r"\b(?:cards|jobs)[.\[]", text), "what was answered goes to the filter alone"


#: Tasks that are done once for all nodes, or on the controller, and read what a task registered on a node.
ONCE = {
    ("playbooks/bmc.yml", "Sum up", "_bmc"),
    ("playbooks/certificate.yml", "Write the certificates", "_certificate"),
    ("playbooks/certificate.yml", "Write the certificates", "_certificate_bmc"),
    ("playbooks/doctor.yml", "Write the report", "_doctor"),  # the action plugin refuses an answer without a report
    ("playbooks/doctor.yml", "Sum up", "_doctor"),
    ("playbooks/heal.yml", "Decide what is done", "_heal_seen"),
    ("playbooks/heal.yml", "Sum up", "_heal_seen"),
    ("playbooks/health.yml", "Keep which nodes jobs named for a hang", "_health"),
    ("playbooks/health.yml", "Write the reports, and give healthy nodes their passports", "_health"),
    ("playbooks/preflight.yml", "Decide what is done on each host", "_gaudi_plan"),  # reads it by _plan/site.py
    ("playbooks/tasks/heal-round.yml", "Decide what follows", "_heal_tested"),
    ("playbooks/tasks/pair-round.yml", "Judge the round, and plan the next", "_pair_answer"),
    ("playbooks/tasks/pair-search.yml", "Demand two nodes or more with as many cards", "_health"),
    ("playbooks/tasks/pair-search.yml", "Keep what the search is given", "_health"),
    ("playbooks/tasks/upgrade-passport.yml", "Issue its passport", "_upgrade_health"),
    ("playbooks/upgrade.yml", "Refuse what the plan was not made for", "_upgrade_health"),
}


def test_every_task_for_all_nodes_that_reads_an_answer_is_known() -> None:
    every = list(all_tasks())
    once = [(path, task) for path, task in every if task.get("run_once") or task.get("delegate_to") == "localhost"]
    assert len(once) >= 35
    registered = {
        str(task["register"]) for _path, task in every if "register" in task and task.get("delegate_to") != "localhost"
    } | {"ansible_facts"}
    found = {
        (path, str(task["name"]), name)
        for path, task in once
        for key, text in texts({key: value for key, value in task.items() if key != "register"})
        for name in registered
        if key != "name" and re.search(rf"(?<![\w']){name}\b|'{name}(?=['.])", text)
    }
    assert found == ONCE


#: Tasks that are done once and set facts of all nodes, though no fact of them is set: each node has facts of its own by
#: then, which a task of each has gathered.
GATHERED = {
    ("playbooks/train.yml", "See whether all nodes are as the preflight found them"),
    ("playbooks/verify.yml", "Sum up"),
    ("roles/fabric/tasks/configure.yml", "Tell what does not leave a host"),
    ("roles/trainer/tasks/job.yml", "Say that the job stays stopped"),
    ("roles/tuning/tasks/settings.yml", "Tell what hosts do not have"),
}
_SETS_FACTS = {"debug", "set_fact", "include_vars"}


def test_no_task_for_all_nodes_makes_them_share_their_facts() -> None:
    """In ansible-core 2.21 what such a task sets is one object for all nodes: a later fact of one is one of all."""
    once = [(path, task) for path, task in all_tasks() if task.get("run_once")]
    setting = [
        (path, task)
        for path, task in once
        if task.get("delegate_to") == "localhost" or {key.rpartition(".")[2] for key in task} & _SETS_FACTS
    ]
    assert len(setting) >= 20
    sharing = {(path, str(task["name"])) for path, task in setting if task.get("delegate_facts") is not True}
    assert sharing == GATHERED
