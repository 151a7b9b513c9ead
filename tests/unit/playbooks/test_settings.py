"""Every playbook looks at Ansible's settings before it asks a node, and no user's setting changes how its plays go."""

from __future__ import annotations

import configparser
import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from ansible import constants
from ansible.inventory.manager import InventoryManager
from ansible.parsing.dataloader import DataLoader

from .jinja import ROOT

PLAYBOOKS = sorted((ROOT / "playbooks").glob("*.yml"))
FIRST = "check_settings.yml"
#: What runs on the controller in any case.
ON_THE_CONTROLLER = {
    "ansible.builtin.assert", "ansible.builtin.debug", "ansible.builtin.fail", "ansible.builtin.meta",
    "ansible.builtin.set_fact", "ansible.builtin.include_tasks", "gaudi3.scale.gaudi_arguments",
    "gaudi3.scale.gaudi_site_plan",
}  # fmt: skip
KEYWORDS = {
    "any_errors_fatal", "args", "become", "block", "changed_when", "check_mode", "delegate_to", "diff", "failed_when",
    "loop", "loop_control", "module_defaults", "name", "no_log", "register", "rescue", "retries", "run_once", "tags",
    "until", "vars", "when",
}  # fmt: skip


def entries(name: str) -> list[dict[str, Any]]:
    """The plays and imports of a playbook."""
    return list(yaml.safe_load((ROOT / "playbooks" / name).read_text()))


def plays(name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """File and play of a playbook, those that it imports in their place."""
    for entry in entries(name):
        if "ansible.builtin.import_playbook" in entry:
            yield from plays(entry["ansible.builtin.import_playbook"])
        else:
            yield name, entry


def tasks(found: Any) -> Iterator[dict[str, Any]]:
    """The tasks of a list, those of blocks too."""
    for each in found or []:
        if "block" in each:
            yield from tasks([*each["block"], *each.get("rescue", []), *each.get("always", [])])
        else:
            yield each


def all_tasks() -> Iterator[tuple[str, dict[str, Any]]]:
    """Where, and a task, of everything that the product plays."""
    for path in PLAYBOOKS:
        for entry in entries(path.name):
            for kind in ("pre_tasks", "tasks", "post_tasks", "handlers"):
                yield from ((path.name, each) for each in tasks(entry.get(kind)))
    for path in [
        *(ROOT / "playbooks/tasks").glob("*.yml"),
        *ROOT.glob("roles/*/tasks/*.yml"),
        *ROOT.glob("roles/*/handlers/*.yml"),
    ]:
        yield from ((str(path.relative_to(ROOT)), each) for each in tasks(yaml.safe_load(path.read_text())))


@pytest.mark.parametrize("playbook", [path.name for path in PLAYBOOKS])
def test_the_settings_are_checked_before_any_node_is_asked(playbook: str) -> None:
    found = list(plays(playbook))
    if all(play["hosts"] == "localhost" for _where, play in found):
        return
    where, first = found[0]
    assert where == FIRST, f"{playbook} has to import {FIRST} first"
    # A pattern of fewer hosts would be passed by with --limit, and without a host Ansible says nothing.
    assert first["hosts"] == "all:localhost" and first["gather_facts"] is False
    assert all(task["tags"] == ["always"] for task in first["tasks"])
    assert {module for task in first["tasks"] for module in task} & ON_THE_CONTROLLER == {
        "ansible.builtin.meta", "ansible.builtin.fail",
    }  # fmt: skip


def test_playbooks_that_ask_nodes_are_many() -> None:
    assert sum(any(play["hosts"] != "localhost" for _where, play in plays(path.name)) for path in PLAYBOOKS) > 15


@pytest.mark.parametrize("playbook", [path.name for path in PLAYBOOKS])
def test_every_play_names_its_strategy(playbook: str) -> None:
    own = [each for each in entries(playbook) if "ansible.builtin.import_playbook" not in each]
    assert [each["name"] for each in own if each.get("strategy") != "ansible.builtin.linear"] == []


def test_what_is_done_once_for_all_hosts_asks_no_node() -> None:
    """Facts in the answer of such a task would be those of all hosts."""
    once = [(where, task) for where, task in all_tasks() if "run_once" in task]
    assert len(once) > 20
    wrong = [
        (where, task["name"])
        for where, task in once
        if not set(task) - KEYWORDS <= ON_THE_CONTROLLER and task.get("delegate_to") != "localhost"
    ]
    assert wrong == []


#: What asks for the settings itself, as --skip-tags and --start-at-task leave out the play that does.
ASKING = {"gaudi3.scale.gaudi_credentials"}
#: Of a folder that the lookup state_dir gives, or of nothing but what it is told: it only counts, shows or remembers.
ON_A_CHECKED_FOLDER = re.compile(r"\{\{ _(?:health|heal|doctor|certificate|upgrade)_folder \}\}")
COUNTING = {
    "gaudi3.scale.gaudi_pair_search", "gaudi3.scale.gaudi_healing", "ansible.builtin.debug", "ansible.builtin.set_fact",
}  # fmt: skip


def test_what_a_play_of_nodes_does_on_the_controller_asks_for_the_settings_itself() -> None:
    found = [(where, task) for where, task in all_tasks() if task.get("delegate_to") == "localhost"]
    assert len(found) > 8
    wrong = [
        (where, task["name"])
        for where, task in found
        if not (ASKING | COUNTING) & set(task)
        and not ON_A_CHECKED_FOLDER.search(str(task))
        and "lookup('gaudi3.scale.settings_problem', refuse=true)" not in str(task)
    ]
    assert wrong == []
    heal = next(each for each in entries("heal.yml") if each["name"].startswith("Heal"))
    assert ON_A_CHECKED_FOLDER.match(heal["module_defaults"]["gaudi3.scale.gaudi_healing"]["path"])


def test_no_task_delegates_facts_or_takes_hosts_from_a_node() -> None:
    wrong = [
        (where, task["name"])
        for where, task in all_tasks()
        # What the controller itself answers may be facts of the controller.
        if (task.get("delegate_facts") and task.get("delegate_to") != "localhost")
        or {"ansible.builtin.add_host", "ansible.builtin.group_by"} & set(task)
    ]
    assert wrong == []


def settings(path: str) -> dict[tuple[str, str], str]:
    """The settings of a file, by section and name."""
    parser = configparser.ConfigParser(interpolation=None)
    parser.read(ROOT / path)
    return {(section, name): value for section in parser.sections() for name, value in parser[section].items()}


def test_the_example_has_the_settings_of_the_checkout() -> None:
    checkout = settings("ansible.cfg")
    # Paths of the checkout, and what is Ansible's default.
    own = {
        ("defaults", "inventory"),
        ("defaults", "collections_path"),
        ("defaults", "any_errors_fatal"),
        ("diff", "always"),
    }
    assert own <= checkout.keys()
    assert settings("examples/inventory/ansible.cfg") == {key: checkout[key] for key in checkout.keys() - own}
    assert checkout["defaults", "inject_facts_as_vars"] == "False"


def test_settings_beside_hosts_are_no_inventory() -> None:
    assert ".cfg" in constants.config.get_config_value("INVENTORY_IGNORE_EXTS")
    found = InventoryManager(loader=DataLoader(), sources=[str(ROOT / "examples/inventory")])
    assert sorted(found.hosts) == ["gaudi-01", "gaudi-02", "monitor-01"]
