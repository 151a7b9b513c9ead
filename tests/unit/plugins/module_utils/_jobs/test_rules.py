"""The rules of a job: what each refuses, and that its sentence has the names of the module or those of the role."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.gaudi3.scale.plugins.module_utils._jobs import rules
from ansible_collections.gaudi3.scale.plugins.module_utils._jobs.spec import JobSpec
from ansible_collections.gaudi3.scale.plugins.modules import gaudi_train

ROOT = Path(__file__).resolve().parents[5]
SPEC = JobSpec(name="demo", config={"train": {"max_steps": 20}}, nodes=("a", "b"), head_address="10.0.0.1")
JOB = {"cards": None, **{name: getattr(SPEC, name) for name in SPEC.__dataclass_fields__}}

#: Changes of a sound job, and the refusal of each in the words of the module.
CASES: list[tuple[dict[str, Any], str]] = [
    ({"name": "No Way"},
     "name is 'No Way', which cannot be used: take 1 to 63 lower-case letters, digits, '-' and '_', beginning "
     "and ending with a letter or digit."),
    ({"nodes": ()}, "nodes is empty: list the inventory names of the job's nodes."),
    ({"nodes": ("a", "a")}, "Job demo names a node twice in 'nodes': list each node once."),
    ({"head_address": "a b"},
     "Head address 'a b' is not a host name or an address: set 'head_address' to the address at which all nodes "
     "reach the first one."),
    ({"cards": 0},
     "This node has no cards on its PCI bus: to train on its processors, set cards to null and "
     "processes_per_node to a number."),
    ({"cards": 8, "processes_per_node": 16},
     "This node has 8 cards, too few for 16 processes: set processes_per_node to at most 8."),
    ({"cards": 1, "processes_per_node": 2},
     "This node has 1 card, too few for 2 processes: set processes_per_node to at most 1."),
    ({"rdzv_port": 80}, "rdzv_port is 80, but must be from 1024 to 65535."),
    ({"processes_per_node": 0}, "processes_per_node is 0, but must be from 1 to 1024."),
    ({"max_restarts": -1}, "max_restarts is -1, but must be from 0 to 1000."),
    ({"stop_timeout": 0}, "stop_timeout is 0, but must be from 1 to 86400."),
    ({"spares": 2}, "spares is 2, but job demo has 2 nodes: leave at least one to work."),
    ({"min_nodes": 3}, "min_nodes is 3, but must be from 1 to 2, the nodes that are no spares."),
    ({"spares": 1},
     "Job demo is to go on without a node that is lost, which is a restart of the others: set max_restarts to at "
     "least 1."),
    ({"command": ("/srv/train.py",)},
     "command and config are both set: keep command for a script of your own, or config for the trainer's."),
    ({"chdir": "/srv"},
     "chdir is '/srv' and command is empty: chdir is the folder that a command runs in, so give both or leave it "
     "out."),
    ({"command": ("train.py", "--lr=1"), "config": {}},
     "command begins with 'train.py', which is not an absolute path: give one, or set chdir to the folder on the "
     "nodes that it is in."),
    ({"command": ("",), "chdir": "/srv", "config": {}},
     "command begins with an empty word: give the path of a script first, and its arguments after it."),
    ({"command": ("/srv/train.py",), "chdir": "mine", "config": {}},
     "chdir is 'mine', which cannot be written into a unit: give an absolute path without control characters, "
     "backslashes and spaces at its end."),
    ({"command": ("/srv/train\\.py",), "config": {}},
     "The script of command is '/srv/train\\\\.py', which cannot be written into a unit: give an absolute path "
     "without control characters, backslashes and spaces at its end."),
    ({"command": ("/tmp/mine/train.py",), "config": {}},
     "The script /tmp/mine/train.py of command is below /tmp, of which a job has its own: put it into another "
     "folder, such as one below /srv."),
    ({"command": ("/srv/train.py",), "chdir": "/var/tmp", "config": {}},
     "The folder /var/tmp of chdir is below /var/tmp, of which a job has its own: put it into another folder, "
     "such as one below /srv."),
    ({"command": ("/srv/train.py", "two\nlines"), "config": {}},
     "command has the word 'two\\nlines', which cannot be written into a unit: take out control characters."),
    ({"threads": 0}, "threads is 0, but must be at least 1 (or left out)."),
    ({"user": "a;b"}, "User 'a;b' is not a name of a user: take lower-case letters, digits, '-' and '_'."),
    ({"config": {"output_dir": "/tmp"}},
     "config.output_dir is set by module gaudi_train to the job's own folder: leave it out, and use 'jobs_dir' "
     "to keep jobs elsewhere."),
    ({"environment": {"A B": "1"}},
     "Environment variable 'A B' cannot be set: a name has letters, digits and '_', and a value has one line "
     "without control characters."),
    ({"environment": {"A": "1\n2"}},
     "Environment variable 'A' cannot be set: a name has letters, digits and '_', and a value has one line "
     "without control characters."),
    ({"venv": "opt"},
     "venv is 'opt', which cannot be written into a unit: give an absolute path without control characters, "
     "backslashes and spaces at its end."),
    ({"environment_files": ("/etc/a.env", "/etc/b ")},
     "environment_files is '/etc/b ', which cannot be written into a unit: give an absolute path without control "
     "characters, backslashes and spaces at its end."),
]  # fmt: skip


def rule_of(change: dict[str, Any], sentence: str) -> rules.Rule:
    """The one rule that says this."""
    (rule,) = [rule for rule in rules.RULES if rule.problem({**JOB, **change}) == sentence]
    return rule


@pytest.mark.parametrize(("change", "sentence"), CASES)
def test_a_job_that_cannot_run_is_refused_in_one_sentence(change: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError) as caught:
        rules.check({**JOB, **change}) if "cards" in change else replace(SPEC, **change).check()
    assert str(caught.value) == sentence
    assert rule_of(change, sentence).problem(JOB) is None


def test_each_rule_speaks_of_the_module_and_of_the_role() -> None:
    options = yaml.safe_load(gaudi_train.DOCUMENTATION)["options"]
    given = yaml.safe_load((ROOT / "roles/trainer/meta/argument_specs.yml").read_text())["argument_specs"]["main"]
    assert set(rules.MODULE) <= set(options) and list(rules.MODULE) == list(rules.ROLE)
    # The head's address is a variable of all roles.
    assert set(rules.ROLE.values()) - set(given["options"]) == {"gaudi_cluster_address"}
    spoken = set()
    for change, sentence in CASES:
        rule = rule_of(change, sentence)
        said = rule.problem({**JOB, **change, "host": "n1"}, rules.ROLE) or ""
        named = set(re.findall(r"\{(\w+)", rule.reason)) & set(rules.ROLE)
        assert said and "This node" not in said and all(rules.ROLE[name] in said for name in named)
        spoken |= set(re.findall(r"\{(\w+)", rule.template()))
    assert {rule_of(*case) for case in CASES} == set(rules.RULES), "a rule has no case"
    assert set(rules.MODULE) <= spoken, "the table names options that no rule speaks of"


@pytest.mark.parametrize("name", ["a", "demo", "llama-7b_2", "x" * 63])
def test_names_that_are_fine(name: str) -> None:
    replace(SPEC, name=name).check()


@pytest.mark.parametrize("name", ["", "-a", "a-", "x" * 64, "a.b", "a/b", "a@b", "A", "../a"])
def test_names_that_are_not(name: str) -> None:
    with pytest.raises(ValueError, match="cannot be used"):
        replace(SPEC, name=name).check()


def test_more_processes_than_cards() -> None:
    spec = replace(SPEC, processes_per_node=16)
    spec.check_cards(None)
    spec.check_cards(16)
    with pytest.raises(ValueError) as caught:
        spec.check_cards(8)
    assert str(caught.value) == "This node has 8 cards, too few for 16 processes: set processes_per_node to at most 8."
