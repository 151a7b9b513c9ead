"""What a run is given: an inventory with nobody in it, names that nothing reads, jobs that cannot be meant."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.gaudi3.scale.plugins.module_utils._variables.given import Given, config_sentences, plain
from ansible_collections.gaudi3.scale.plugins.module_utils._variables.inventory import (
    DEFAULT_SOURCE,
    Inventory,
    inventory_problem,
)
from ansible_collections.gaudi3.scale.plugins.module_utils._variables.job_config import jobs_faults
from ansible_collections.gaudi3.scale.plugins.module_utils._variables.names import (
    OF_PLAYBOOKS,
    PREFIXES,
    unread_variables,
    used_in,
)

ROOT = Path(__file__).resolve().parents[5]
ROLES = sorted(path.name for path in (ROOT / "roles").iterdir())


def specifications() -> dict[str, dict[str, Any]]:
    """The options of all roles."""
    found: dict[str, dict[str, Any]] = {}
    for path in ROOT.glob("roles/*/meta/argument_specs.yml"):
        for entry in yaml.safe_load(path.read_text())["argument_specs"].values():
            found.update(entry.get("options", {}))
    return found


SPECIFIED = specifications()
KNOWN = {*SPECIFIED, *OF_PLAYBOOKS}
NODES = {"all": ["a", "m"], "gaudi": ["a"], "monitoring": ["m"], "ungrouped": []}
NOBODY: dict[str, list[str]] = {"all": [], "ungrouped": []}
READ = "The inventory has no host in group gaudi (Ansible read {}): "
GIVE = "give yours with -i, as in 'ansible-playbook -i mine gaudi3.scale.site', and name the Gaudi nodes in that group."


@pytest.mark.parametrize(
    ("inventory", "wanted", "sentence"),
    [
        (Inventory(NODES), ["gaudi"], ""),
        (Inventory(NODES, limit="m", left=["m"]), ["gaudi", "monitoring"], ""),
        (
            Inventory({"all": ["a"], "gaudi": ["a"], "monitoring": []}),
            ["monitoring"],
            "The inventory has no host in group monitoring, on which this playbook works: name the hosts of that group "
            "in it.",
        ),
        (Inventory(NOBODY, [DEFAULT_SOURCE]), ["gaudi"], READ.format(DEFAULT_SOURCE) + GIVE),
        (Inventory({"all": ["m"], "monitoring": ["m"]}, ["m,"]), ["gaudi"], READ.format("m,") + GIVE),
        (Inventory({"all": ["m"], "gaudi": []}), ["gaudi"], READ.format("none") + GIVE),
        (
            Inventory(NOBODY, ["/x/inventories/simulated"]),
            ["gaudi"],
            READ.format("/x/inventories/simulated")
            + "bring simulated nodes up with 'make up', or give the inventory of your own nodes with -i.",
        ),
        (
            Inventory(NODES, limit="m", left=["m"]),
            ["gaudi"],
            "--limit m leaves none of the hosts that this playbook works on: name hosts of group gaudi, or leave "
            "--limit out.",
        ),
        (
            Inventory({**NODES, "all": ["a", "m", "x"]}, limit="x", left=["x"]),
            ["gaudi", "monitoring"],
            "--limit x leaves none of the hosts that this playbook works on: name hosts of the groups gaudi and "
            "monitoring, "
            "or leave --limit out.",
        ),
        (
            Inventory(NODES, ["/nowhere/a", "/nowhere/b"], unread=["/nowhere/b"]),
            ["gaudi"],
            "The inventory /nowhere/b does not exist: give a file or folder that does with -i, as in "
            "'ansible-playbook -i mine "
            "gaudi3.scale.site'.",
        ),
        (
            Inventory(NODES, ["/"], unread=[str(ROOT / "README.md")]),
            ["gaudi"],
            f"The inventory {ROOT}/README.md was not read, for the reason that Ansible warns of above: correct "
            f"the file, or "
            "move it out of the inventory.",
        ),
    ],
)
def test_an_inventory_with_which_nothing_would_be_done(inventory: Inventory, wanted: list[str], sentence: str) -> None:
    assert inventory_problem(inventory, wanted) == sentence


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("synapseai_relase", "synapseai_release"),
        ("trainer_cofig", "trainer_config"),
        ("trainer_jobname", "trainer_job_name"),
        ("gaudi_sereal", "gaudi_serial"),
        ("health_mdoe", "health_mode"),
        ("doctor_card", "doctor_cards"),
        ("provision_sise", "provision_size"),
        ("firewall_enable", "firewall_enabled"),
        ("upgrade_plann", "upgrade_plan"),
        ("upgrade_signr", "upgrade_signer"),
        ("silence_host", "silence_hosts"),
    ],
)
def test_a_misspelt_variable_is_refused_with_the_one_that_was_meant(name: str, near: str) -> None:
    (found,) = unread_variables([name, "trainer_config", "mine", "_trainer_x", "ansible_host"], KNOWN, ROLES)
    assert (found.name, found.near, found.refused) == (name, near, True)
    assert found.sentence("group_vars/all.yml, line 3") == (
        f"{name} (group_vars/all.yml, line 3) is no variable of this collection: write {near} if you mean that, "
        f"or add {name} "
        "to gaudi_accept_variables if something else reads it."
    )
    assert unread_variables([name], KNOWN, ROLES, [name]) == []


@pytest.mark.parametrize(
    "name",
    ["node_exporter_version", "alertmanager_version", "prometheus_url", "grafana_host", "gaudi_user", "trainer_home"],
)
def test_a_name_that_only_begins_like_one_is_no_misspelt_one(name: str) -> None:
    (found,) = unread_variables([name], KNOWN, ROLES)
    assert not found.refused


def test_what_is_like_no_variable_is_told_and_refuses_nothing() -> None:
    found = unread_variables(["trainer_qqq", "synapsai_release", "rack", "http_port"], KNOWN, ROLES)
    assert [(each.name, each.near, each.refused) for each in found] == [
        ("synapsai_release", "synapseai_release", False),
        ("trainer_qqq", None, False),
    ]
    assert found[1].sentence("") == (
        "trainer_qqq begins as variables of this collection do, and nothing reads it: correct or remove it, or "
        "add it to "
        "gaudi_accept_variables if something else does."
    )
    assert unread_variables(["prometheus_qqq", "prometheus_ports"], KNOWN, ROLES, ["prometheus_*"]) == []


def test_helpers_of_an_inventory_that_its_own_templates_use_are_found() -> None:
    values = {"trainer_config": {"train": ["{{ trainer_config_base | d(1) }}"]}, "other": "trainer_jobz", "n": 5}
    assert used_in(values, ["trainer_config_base", "trainer_jobz"]) == {"trainer_config_base"}
    assert used_in({"a": "{% if gaudi_x %}{% endif %}"}, {"gaudi_x"}) == {"gaudi_x"}


#: Words of playbooks that begin as a variable does and are none: tags, groups, parameters of the phases, metrics.
NO_VARIABLES = {
    "gaudi_backup_controller_finished_timestamp_seconds",
    "gaudi_head", "phase_hosts", "phase_roles", "pytorch_index_plain_http",
    "pytorch_install", "pytorch_preflight", "slurm_controller",
    "slurm_database_password", "slurm_munge_password", "trainer_index_plain_http", "trainer_index_url",
    "trainer_job", "trainer_preflight",
}  # fmt: skip


def test_every_variable_of_playbooks_roles_and_inventories_is_known() -> None:
    files = [
        *ROOT.glob("playbooks/**/*.yml"),
        *ROOT.glob("playbooks/**/*.j2"),
        *ROOT.glob("roles/*/defaults/main.yml"),
        *ROOT.glob("examples/inventory/**/*.yml"),
        *ROOT.glob("inventories/simulated/**/*.yml"),
        ROOT / "plugins/inventory/terraform.py",
        ROOT / "terraform/modules/inventory/main.tf",
        ROOT / "deploy/src/gaudi3_deploy/partial.py",
        ROOT / "simulator/src/gaudi3_simulator/inventory.py",
    ]
    prefixes = "|".join([*ROLES, *PREFIXES])
    modules = {path.stem for kind in ("modules", "filter", "lookup") for path in (ROOT / "plugins" / kind).glob("*.py")}
    secrets = re.compile(r"(alertmanager|grafana|prometheus|watch)_(certificate|key|password|password_hash)")
    found: dict[str, str] = {}
    for path in files:
        for name in re.findall(rf"(?<![\w./-])((?:{prefixes})_[a-z0-9_]+)(?![\w(])", path.read_text()):
            if name not in {*KNOWN, *modules, *NO_VARIABLES, *ROLES} and not secrets.fullmatch(name):
                found.setdefault(name, str(path.relative_to(ROOT)))
    assert found == {}, "add these to OF_PLAYBOOKS in plugins/module_utils/_variables/names.py"


def test_no_variable_is_known_that_nothing_reads() -> None:
    text = "\n".join(
        path.read_text()
        for folder in ("playbooks", "roles", "plugins", "terraform/modules/inventory", "deploy/src")
        for path in sorted((ROOT / folder).rglob("*"))
        if path.suffix in (".yml", ".j2", ".py", ".tf") and path.name != "names.py"
    )
    words = set(re.findall(r"\w+", text))
    assert sorted(OF_PLAYBOOKS - words) == []


JOB = SPECIFIED["trainer_jobs"]["options"]


@pytest.mark.parametrize(
    ("jobs", "sentences"),
    [
        (None, []),
        (..., []),
        (
            [
                {
                    "name": "a",
                    "config": {"train": {"max_steps": 5}},
                    "cards": None,
                    "start_at_boot": "yes",
                    "threads": "4",
                }
            ],
            [],
        ),
        ("a", ["trainer_jobs is 'a': give a list of jobs, each with its name."]),
        (["a"], ["trainer_jobs[0] is 'a': give a mapping with a name."]),
        (
            [{"nmae": "a"}],
            ["Unknown key 'nmae' in trainer_jobs[0]: did you mean 'name'?", "trainer_jobs[0] has no name: give it."],
        ),
        (
            [{"name": "a"}, {"name": "b", "confg": {}}],
            ["Unknown key 'confg' in trainer_jobs[1]: did you mean 'config'?"],
        ),
        ([{"name": "a", "cards": "all"}], ["In trainer_jobs[0], cards is 'all': give a whole number."]),
        (
            [{"name": "a", "state": "ended"}],
            ["In trainer_jobs[0], state is 'ended': give started, finished, stopped or absent."],
        ),
        ([{"name": 2026, "nodes": "gaudi-1", "command": ["/srv/train.py", "--epochs", 3]}], []),
        ([{"name": "a", "nodes": {"b": 1}}], ["In trainer_jobs[0], nodes is a mapping: give a list."]),
        (
            [{"name": "a", "config": {"train": {"max_step": 5}}}],
            ["Unknown key 'train.max_step' in trainer_jobs[0].config: did you mean 'train.max_steps'?"],
        ),
        (
            [{"name": "a", "node_config": {"train": {"max_steps": "x"}}}],
            ["In trainer_jobs[0].node_config, train.max_steps is 'x': give a whole number of at least 1."],
        ),
    ],
)
def test_each_fault_of_a_list_of_jobs_is_one_sentence(jobs: object, sentences: list[str]) -> None:
    assert [each.said("trainer_jobs") for each in jobs_faults(jobs, JOB)] == sentences


class Marker:
    """What Ansible puts where a template fails, or where a value is left out."""


def test_what_a_template_leaves_open_is_right() -> None:
    for value in (Marker(), {"train": {"max_steps": Marker()}}, "{{ x }}", "__omit_place_holder__1"):
        given = Given("trainer_config", value, plain({"trainer_config": value}, "trainer_config"), lambda _part: "")
        assert config_sentences(given, JOB) == []
    given = Given("trainer_config", 5, plain({"c": 5}, "c"), lambda _part: "all.yml, line 1")
    assert config_sentences(given, JOB) == [
        "trainer_config (all.yml, line 1) is 5: give a mapping of the trainer's keys to values."
    ]


def test_a_key_with_a_dot_is_none() -> None:
    given = Given("trainer_config", {"train.max_steps": 5}, {"train.max_steps": 5}, lambda _part: "")
    assert [each[:39] for each in config_sentences(given, JOB)] == ["Key 'train.max_steps' in trainer_config"]
