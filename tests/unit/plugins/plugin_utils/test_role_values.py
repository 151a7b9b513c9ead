"""Values of roles' variables as a host's plan takes them: the same as Ansible's own, and each evaluated once."""

from __future__ import annotations

from typing import Any

from ansible_collections.gaudi3.scale.plugins.plugin_utils.role_tasks import TASKS, VARIABLES
from ansible_collections.gaudi3.scale.plugins.plugin_utils.role_values import RoleValues
from ansible_collections.gaudi3.scale.plugins.plugin_utils.roles import trusted
from tests.unit.playbooks.jinja import evaluate

FACTS = {"os_family": "Debian", "distribution": "Ubuntu", "distribution_version": "22.04", "kernel": "6.8.0-1-generic"}
SITE: dict[str, Any] = {
    "inventory_hostname": "gaudi-1",
    "groups": {"gaudi": ["gaudi-1"], "gaudi_head": ["gaudi-1"], "monitoring": []},
    "hostvars": {"gaudi-1": {"ansible_host": "10.0.0.1"}, "localhost": {}},
    "ansible_play_hosts_all": ["gaudi-1"],
    "ansible_host": "10.0.0.1",
    "ansible_facts": FACTS,
    "ansible_check_mode": False,
    "ansible_playbook_python": "/usr/bin/python3",
    "omit": "what is left out",
}


class Counted:
    """Ansible's own evaluation, with what it was asked."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def __call__(self, value: Any, variables: dict[str, Any]) -> Any:
        self.texts += value
        return evaluate(value, **variables)


def values(**given: Any) -> tuple[RoleValues, Counted]:
    counted = Counted()
    marked = {name: trusted(value) for name, value in given.items()}
    return RoleValues({**VARIABLES, **SITE, **marked}, counted), counted


def test_a_value_is_that_of_ansible_itself() -> None:
    """Of every variable of the roles that has one without an answer of a host."""
    ours, _counted = values()
    compared = 0
    for name in VARIABLES:
        try:
            wanted = evaluate([VARIABLES[name]], **{**VARIABLES, **SITE})
        except Exception:
            continue  # for want of an answer
        if wanted != [ours[name]]:
            # A file that a lookup writes has the time in it, or nothing: no other differs.
            raise AssertionError(f"{name}: {ours[name]!r}, and Ansible has {wanted!r}")
        compared += 1
    assert compared > 280


def test_what_names_a_variable_alone_or_has_a_plain_default_compiles_no_template() -> None:
    ours, counted = values(
        one="{{ two }}",
        two="{{ three | default('x') }}",
        four="{{ five | default(7) }}",
        six="{{ two | default(true) }}",
    )
    assert (ours["one"], ours["four"], ours["six"]) == ("x", 7, "x")
    chain = "{{ nowhere | default(ansible_host | default(inventory_hostname)) }}"
    head = "{{ groups['%s'] | default([]) | first | default('') }}"
    ours, counted = values(
        address=chain, head=head % "gaudi_head", none=head % "nobody", all="{{ groups['gaudi'] | default([]) }}"
    )
    assert (ours["address"], ours["head"], ours["none"], ours["all"]) == ("10.0.0.1", "gaudi-1", "", ["gaudi-1"])
    assert counted.texts == []


def test_a_template_is_evaluated_once_until_the_host_has_answered() -> None:
    ours, counted = values(
        fixed="{{ 1 + 1 }}",
        asked="{{ ansible_facts.kernel | upper }}",
        both="{{ fixed }} {{ asked }}",
        twin="{{ 1 + 1 }}",
    )
    assert [ours["both"], ours["fixed"], ours["twin"]] == ["2 6.8.0-1-GENERIC", 2, 2]
    assert sorted(counted.texts) == ["{{ 1 + 1 }}", "{{ ansible_facts.kernel | upper }}", "{{ fixed }} {{ asked }}"]
    counted.texts.clear()
    ours.answered(ansible_facts={**FACTS, "kernel": "6.9"})
    assert (ours["both"], ours["fixed"]) == ("2 6.9", 2)
    assert "{{ 1 + 1 }}" not in counted.texts


def test_what_a_host_said_is_no_template() -> None:
    ours, _counted = values(driver="{{ _gaudi_plan.found.driver }}", shown="on {{ driver }}")
    ours.answered(_gaudi_plan={"found": {"driver": "{{ trainer_job_secret }}"}})
    assert (ours["driver"], ours["shown"]) == ("{{ trainer_job_secret }}", "on {{ trainer_job_secret }}")


def test_what_is_omitted_is_left_out() -> None:
    ours, _counted = values(one={"a": "{{ omit }}", "b": 1}, two=["{{ omit }}", 2, "{{ three | default(omit) }}"])
    assert (ours["one"], ours["two"]) == ({"b": 1}, [2])


def test_a_name_in_a_branch_that_is_not_taken_needs_no_value() -> None:
    ours, _counted = values(one="{{ two if false else 'x' }}", two="{{ nowhere.to.be.found }}")
    assert ours["one"] == "x"
    assert ours["unheard_of"] is None


def test_the_options_of_tasks_are_found_by_their_names() -> None:
    module, options = TASKS["synapseai"]["Have driver and external ports brought up at each boot"]
    assert module == "gaudi_service"
    found = values()[0].evaluate(options)
    assert found["name"] == "gaudi3-scale-ports.service"
    (unit,) = (each["content"] for each in found["files"] if each["path"].endswith(".service"))
    assert "manage_network_ifs.sh" in unit
    assert TASKS["trainer"]["Create the user of the jobs"][0] == "account"
