"""The first look at a run, on inventories as Ansible itself reads them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ansible import context
from ansible.inventory.manager import InventoryManager
from ansible.parsing.dataloader import DataLoader
from ansible.vars.hostvars import HostVars
from ansible.vars.manager import VariableManager

from ansible_collections.gaudi3.scale.plugins.lookup import first_look

Look = Callable[..., str]


@pytest.fixture
def look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Look:
    """Looks at an inventory of a text, as the first play of a playbook does."""
    monkeypatch.setattr(first_look, "settings_problem", lambda _value: "")

    def given(text: str, hosts: str = "gaudi", roles: tuple[str, ...] = (), limit: str = "", **more: Any) -> str:
        first_look._FOUND.clear()
        monkeypatch.setattr(context, "CLIARGS", {"subset": limit})
        source = tmp_path / "hosts.yml"
        source.write_text(text)
        loader = DataLoader()
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
        monkeypatch.setattr(plugin, "get_option", {"hosts": hosts, "roles": list(roles)}.__getitem__)
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


def test_jobs_are_looked_at_where_training_is_part_of_the_run(look: Look) -> None:
    wrong = NODES % "trainer_config: {train: {max_step: 5}}, trainer_jobs: [{nmae: a}]"
    said = look(wrong, roles=("trainer",))
    assert "Unknown key 'train.max_step' in trainer_config" in said and "Unknown key 'nmae' in trainer_jobs[0]" in said
    assert look(wrong, roles=("fabric",)) == ""
    for more in ({"ansible_run_tags": ["drivers"]}, {"ansible_skip_tags": ["train"]}):
        assert look(wrong, roles=("trainer",), **more) == ""
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
