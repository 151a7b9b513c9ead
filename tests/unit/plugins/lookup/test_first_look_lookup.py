"""The first look at a run, on inventories as Ansible itself reads them."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ansible import context
from ansible.inventory.manager import InventoryManager
from ansible.parsing.dataloader import DataLoader
from ansible.parsing.vault import VaultLib, VaultSecret, VaultSecretsContext
from ansible.vars.hostvars import HostVars
from ansible.vars.manager import VariableManager

from ansible_collections.gaudi3.scale.plugins.lookup import first_look
from ansible_collections.gaudi3.scale.plugins.module_utils._variables.given import Given, config_sentences
from ansible_collections.gaudi3.scale.plugins.plugin_utils import origin

SECRET = VaultSecret(b"one of a test")
PLAIN = "Sesame-7"
Look = Callable[..., str]


@pytest.fixture
def look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Look:
    """Looks at an inventory of a text, as the first play of a playbook does."""
    monkeypatch.setattr(first_look, "settings_problem", lambda _value: "")
    monkeypatch.setattr(VaultSecretsContext, "_current", VaultSecretsContext([("default", SECRET)]))

    def given(text: str, hosts: str = "gaudi", roles: tuple[str, ...] = (), limit: str = "", **more: Any) -> str:
        first_look._FOUND.clear()
        site = more.pop("site", False)
        monkeypatch.setattr(context, "CLIARGS", {"subset": limit, **more.pop("cli", {})})
        source = tmp_path / "hosts.yml"
        source.write_text(text)
        loader = DataLoader()
        loader.set_vault_secrets([("default", SECRET)])
        inventory = InventoryManager(loader=loader, sources=[str(source), *more.pop("sources", ())])
        manager = VariableManager(loader=loader, inventory=inventory)
        hostvars = HostVars(inventory, manager, loader)
        variables = {
            "groups": inventory.get_groups_dict(), "hostvars": hostvars, "ansible_run_tags": ["all"],
            "ansible_inventory_sources": inventory._sources,
            "ansible_play_hosts_all": [host.name for host in inventory.get_hosts(limit or "all")], **more,
        }  # fmt: skip
        plugin = first_look.LookupModule(loader=loader)
        monkeypatch.setattr(plugin, "set_options", lambda **_given: None)
        monkeypatch.setattr(plugin, "get_option", {"hosts": hosts, "roles": list(roles), "site": site}.__getitem__)
        (said,) = plugin.run([], variables)
        return str(said)

    return given


NODES = "all: {children: {gaudi: {hosts: {n-1: , n-2: }}, monitoring: {hosts: {m-1: }}}, vars: {%s}}\n"


def test_what_is_right_is_passed(look: Look) -> None:
    assert look(NODES % "trainer_config: {train: {max_steps: 5}}", "gaudi:monitoring", ("trainer",)) == ""
    assert look(NODES % "trainer_config: '{{ later }}'", roles=("trainer",)) == ""
    # A node of the controller's own name is a node.
    own = "all: {children: {gaudi: {hosts: {localhost: {ansible_connection: local}}}}}\n"
    assert look(own, limit="localhost") == ""
    assert "synapseai_relase" in look(own.replace("local}", "local, synapseai_relase: x}"))


def test_a_switch_that_is_none_is_refused_on_whichever_host(look: Look) -> None:
    own = "all: {children: {gaudi: {hosts: {n-1: , n-2: {firewall_enabled: maybe}}}}}\n"
    said = look(own)
    assert said.startswith("firewall_enabled (") and said.endswith(") is maybe: give true or false.")


def test_the_nodes_have_one_number_of_which_as_many_are_taken(look: Look) -> None:
    text = "all: {children: {gaudi: {hosts: {n-1: %s, n-2: %s}}, monitoring: {hosts: {m-1: {gaudi_serial: x}}}}}\n"
    one, other = "{gaudi_serial: 1}", "{gaudi_serial: '{{ 4 // 2 }}'}"
    assert look(text % (one, one)) == look(text % (other, other)) == look(text % ("", "")) == ""
    assert look(text % (one, other)).startswith("gaudi_serial is 1 on n-1 and 2 on n-2: give all nodes the same")
    # The play takes that of the first node, also where the run leaves it out.
    assert "gaudi_serial is 1 on n-1 and not set on n-2" in look(text % (one, ""), limit="n-2")
    assert look(text % (one, one), limit="n-2") == ""
    assert "cannot be evaluated on n-1" in look(text % ("{gaudi_serial: '{{ later }}'}", ""))


@pytest.mark.parametrize("name", ["gaudi_remove", "gaudi_restore_host", "upgrade_plan"])
def test_what_chooses_the_hosts_of_one_run_is_none_of_the_inventory(
    look: Look, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    said = look(NODES % f"{name}: n-1")
    assert said.startswith(f"{name} (") and said.endswith(
        "is for one run, and the plays whose hosts it chooses do not read the inventory: take it out there, and give "
        f"it to the run that means it, with -e {name}=..."
    )
    monkeypatch.setattr(first_look, "load_extra_vars", lambda _loader: {name: "n-2"})
    assert look(NODES % f"{name}: n-1") == ""


def test_the_keys_of_every_mapping_are_looked_at(look: Look) -> None:
    wrong = "prometheus_scrape_limits: {sampel_limit: 5}, trainer_interruption: {sources: [aws], pol: 2}"
    limits, interruption = look(NODES % wrong).splitlines()
    assert re.sub(r" \(.*\)", "", limits) == (
        "Unknown key 'sampel_limit' in prometheus_scrape_limits: did you mean 'sample_limit'?"
    )
    assert re.sub(r" \(.*\)", "", interruption) == "Unknown key 'pol' in trainer_interruption: did you mean 'poll'?"


def test_secrets_in_the_inventory_are_refused_where_they_would_be_made(look: Look, tmp_path: Path) -> None:
    own = NODES % f"gaudi_secrets_dir: {tmp_path}/secrets"
    assert look(own, roles=("trainer",)).startswith(f"{tmp_path}/secrets lies in the inventory {tmp_path}")
    assert look(own) == look(NODES % f"gaudi_secrets_dir: {tmp_path}-secrets", roles=("trainer",)) == ""
    assert look(NODES % f"gaudi_secrets: {{}}, gaudi_secrets_dir: {tmp_path}/s", roles=("trainer",)) == ""


def test_a_tag_that_nothing_has_is_refused(look: Look) -> None:
    cli = {"tags": ["tunning"], "args": ["gaudi3.scale.site"]}
    assert look(NODES % "", cli=cli) == ("--tags has tunning, which is no tag of this collection: did you mean tuning?")


def test_jobs_are_looked_at_where_training_is_part_of_the_run(look: Look) -> None:
    wrong = NODES % "trainer_config: {train: {max_step: 5}}, trainer_jobs: [{nmae: a}]"
    said = look(wrong, roles=("trainer",))
    assert "Unknown key 'train.max_step' in trainer_config" in said and "Unknown key 'nmae' in trainer_jobs[0]" in said
    assert look(wrong, roles=("fabric",)) == ""
    left_out = [{"ansible_skip_tags": [each]} for each in ("train", "trainer", "trainer_job", "tagged", "all")]
    for more in ({"ansible_run_tags": ["drivers"]}, *left_out):
        assert look(wrong, roles=("trainer",), **more) == ""
    for run in ({"ansible_run_tags": ["tagged"]}, {"ansible_run_tags": ["trainer"], "ansible_skip_tags": ["drivers"]}):
        assert look(wrong, roles=("trainer",), **run) == said
    assert look(wrong.replace("trainer_jobs", "trainer_wheel: /w, trainer_jobs"), roles=("trainer",)) == ""


def test_names_are_accepted_by_the_lists_of_all_hosts(look: Look) -> None:
    text = (
        "all: {children: {gaudi: {hosts: {n-1: }, vars: {gaudi_accept_variables: [gaudi_zona], gaudi_zona: a}},"
        " monitoring: {hosts: {m-1: }, vars: {gaudi_accept_variables: ['{{ mine }}'], mine: gaudi_regio,"
        " gaudi_regio: b}}}}\n"
    )
    assert look(text) == ""
    assert "gaudi_accept_variables is x" in look(NODES % "gaudi_accept_variables: x")


def test_a_source_that_nothing_read_is_named(look: Look, tmp_path: Path) -> None:
    broken = tmp_path / "more.yml"
    broken.write_text("all: [\n")
    assert f"The inventory {broken} was not read" in look(NODES % "", sources=[str(broken)])


def vault(value: str, indent: str = "") -> str:
    """The value as ansible-vault writes it into a file."""
    lines = VaultLib([("default", SECRET)]).encrypt(value, SECRET).decode().splitlines()
    return "\n".join(["!vault |", *(f"{indent}  {line}" for line in lines)])


#: Variables with a value of a wrong type that may be a secret, and what is said of it.
HIDDEN = {
    "a key": ("trainer_config:\n  train:\n    max_steps: " + vault(PLAIN, "    "), "max_steps is a text"),
    "all of it": ("trainer_config: " + vault(PLAIN), "trainer_config (group_vars/gaudi.yml, line 1) is a text"),
    "a list of jobs": ("trainer_jobs: " + vault(PLAIN), "trainer_jobs (group_vars/gaudi.yml, line 1) is a text"),
    "a job": ("trainer_jobs:\n  - " + vault(PLAIN, "  "), "trainer_jobs[0]"),
    "a section": ("trainer_config:\n  train: " + vault(PLAIN, "  "), "train is a text"),
    "a list of it": ("trainer_config:\n  data:\n    mixture: " + vault(PLAIN, "    "), "mixture is a text"),
    "an item": ("trainer_config:\n  data:\n    mixture:\n      - " + vault(PLAIN, "      "), "mixture[0] is a text"),
    "through a template": (
        "mine: " + vault(PLAIN) + "\ntrainer_config: {train: {max_steps: '{{ mine }}'}}", "max_steps is a text",
    ),
    "through two": (
        "db_password: " + PLAIN + "\nmine: 'x{{ db_password }}'\ntrainer_config: {train: {max_steps: '{{ mine }}'}}",
        "max_steps is a text",
    ),
    "a number": ("pin: 77071\ntrainer_config: {model: {name: '{{ pin }}'}}", "name is a number"),
    "a mapping of a template": (
        "mine: {max_steps: " + PLAIN + "}\ntrainer_config: {train: '{{ mine }}'}", "max_steps is a text",
    ),
    "a lookup": ("trainer_config: \"{{ '" + PLAIN + "' | upper | lower }}\"", "is a text"),
    "by its name": ("trainer_config: {metrics: {key: 77071}}", "key is a number"),
    "by its form": ("trainer_config: {train: {seed: hf_abcdefghijklmnopqrstuvwxyz}}", "seed is a text"),
    "of a job's state": ("trainer_jobs: [{name: a, nodes: {a: " + PLAIN + "}}]", "nodes is a mapping"),
    "accepted names": ("gaudi_accept_variables: " + vault(PLAIN), "gaudi_accept_variables is a text"),
    "accepted names by a template": (
        "mine: " + PLAIN + "\ngaudi_accept_variables: '{{ mine }}'", "gaudi_accept_variables is a text",
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", HIDDEN)
def test_a_value_that_may_be_a_secret_is_not_shown(
    look: Look, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.chdir(tmp_path)
    text, said = HIDDEN[kind]
    path = tmp_path / "group_vars/gaudi.yml"
    path.parent.mkdir()
    path.write_text(text + "\n")
    found = look(NODES % "", roles=("trainer",))
    assert said in found and ": give " in found
    for secret in (PLAIN.lower(), "77071", "abcdefghij"):
        assert secret not in found.lower()


def test_a_file_that_is_a_vault_is_not_shown_and_another_is(
    look: Look, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "group_vars/gaudi.yml"
    path.parent.mkdir()
    text = f"trainer_config: {{train: {{max_steps: {PLAIN}, seed: false}}}}\n"
    path.write_text(text)
    shown = look(NODES % "", roles=("trainer",))
    assert f"train.max_steps is '{PLAIN}': give" in shown and "line 1" in shown
    path.write_bytes(VaultLib([("default", SECRET)]).encrypt(text, SECRET))
    origin._is_vault.cache_clear()
    hidden = look(NODES % "", roles=("trainer",))
    assert "train.max_steps is a text: give" in hidden and PLAIN not in hidden


def test_the_variables_of_a_host_are_put_together_once(look: Look, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    evaluated: list[str] = []

    def asks(own: HostVars, host: str) -> Any:
        asked.append(host)
        return original(own, host)

    def evaluates(given: Given, options: Any) -> list[str]:
        evaluated.append(given.name)
        return config_sentences(given, options)

    original = HostVars.raw_get
    monkeypatch.setattr(HostVars, "raw_get", asks)
    monkeypatch.setattr(first_look, "config_sentences", evaluates)
    hosts = ", ".join(f"n-{number}: " for number in range(40))
    text = "all: {children: {gaudi: {hosts: {%s}, vars: {trainer_config: {train: {max_steps: %s}}, mine: 5}}}}\n"
    assert look(text % (hosts, "5"), roles=("trainer",)) == ""
    assert sorted(asked) == sorted(f"n-{number}" for number in range(40)) and evaluated == ["trainer_config"]
    # A template is another value on each host.
    asked.clear()
    evaluated.clear()
    assert look(text % (hosts, "'{{ mine }}'"), roles=("trainer",)) == ""
    assert len(asked) == 40 and len(evaluated) == 40


def test_of_a_whole_site_the_head_and_the_controllers_packages_are_looked_at(look: Look) -> None:
    assert look(NODES % "", site=True).startswith("Group gaudi_head has no host: name exactly one node of group gaudi")
    headed = NODES.replace("gaudi: {", "gaudi_head: {hosts: {n-1: }}, gaudi: {")
    assert look(headed % "", site=True) == ""
    assert look(headed % "trainer_build_python: /none/python", site=True) == (
        "The controller's Python lacks hatchling, which passwords and the trainer's wheel need: run '/none/python -m "
        "pip install hatchling'."
    )
    assert look(headed % "trainer_build_python: /none/python") == ""
    for more in ({"ansible_skip_tags": ["train"]}, {"ansible_run_tags": ["drivers"]}):
        assert look(headed % "trainer_build_python: /none/python", site=True, **more) == "", "nothing is built"
