"""What the lookup `plan` returns within a task: what the function does, evaluated once for all options of the task."""

from __future__ import annotations

from typing import Any

import pytest
from ansible.errors import AnsibleError

from ansible_collections.gaudi3.scale.plugins.module_utils._plan import tuning
from ansible_collections.gaudi3.scale.plugins.plugin_utils.roles import trusted
from tests.unit.playbooks import jinja

GIVEN: dict[str, Any] = {
    "ansible_facts": {"kernel": "5.15.0"}, "inventory_hostname": "gaudi-1", "groups": {"gaudi": ["gaudi-1"]},
}  # fmt: skip


def evaluate(value: Any, **given: Any) -> Any:
    return jinja.evaluate(trusted(value), **given)


def variables(role: str, **given: Any) -> dict[str, Any]:
    return {
        **jinja.load(f"roles/{role}/defaults/main.yml"),
        **jinja.load(f"roles/{role}/vars/main.yml"),
        **GIVEN,
        **given,
    }


def test_a_role_reads_what_the_function_decides() -> None:
    found = evaluate("{{ _tuning_here.sysctl }}", **variables("tuning", tuning_hugepages=77))
    assert found == {"vm.nr_hugepages": 77, "kernel.numa_balancing": 0}


def test_all_options_of_a_task_ask_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    of_the_kernel = tuning._kernel
    monkeypatch.setattr(tuning, "_kernel", lambda values: asked.append(values) or of_the_kernel(values))
    options = {
        "one": "{{ _tuning_here.sysctl }}",
        "two": "{{ _tuning_here.sysctl }}",
        "three": "{{ _tuning_here.sysctl }}",
    }
    for option in options.values():
        evaluate(option, **variables("tuning"))
    several = len(asked)
    asked.clear()
    evaluate(options, **variables("tuning"))
    assert 0 < len(asked) < several


@pytest.mark.parametrize("name", ["tuning_hugepages", "ansible_facts"])
def test_a_variable_that_was_set_since_counts(name: str) -> None:
    given = variables("tuning")
    before = evaluate("{{ _tuning_here.sysctl }}", **given)
    set_since = {"tuning_hugepages": 5, "ansible_facts": {"kernel": "6.8.0"}}[name]
    assert evaluate("{{ _tuning_here.sysctl }}", **{**given, name: set_since}) != before
    assert evaluate("{{ _tuning_here.sysctl }}", **given) == before


def test_a_template_in_a_variable_is_evaluated_and_what_a_host_said_is_none() -> None:
    own = {"A": "{{ 1 + 1 }}", "B": trusted("{{ 1 + 1 }}")}
    given = variables("fabric", fabric_environment=own)
    facts = {"kernel": "6.8.0", "gaudi_fabric": {"kind": "gaudi"}}
    found = evaluate("{{ _fabric_here.environment }}", **{**given, "ansible_facts": facts})
    assert found == {"A": "{{ 1 + 1 }}", "B": 2}


def test_a_refusal_is_the_message() -> None:
    odd = {"command_line": "odd"}
    with pytest.raises(AnsibleError, match="What gaudi-1 answers about its kernel's command line cannot be read"):
        evaluate("{{ _tuning_waiting }}", **variables("tuning", _tuning_settings=odd))


def test_variables_of_the_users_stay_as_they_are() -> None:
    """The evaluation within the lookup uses names of its own."""
    text = "{{ a }} {{ _tuning_here.sysfs }} {{ a }}"
    found = evaluate(text, **variables("tuning", a="mine", tuning_cpu_governor=trusted("{{ a }}")))
    assert found == f"mine {{'{tuning.GOVERNOR}': 'mine'}} mine"


def test_a_variable_that_names_nothing_is_named() -> None:
    """And not the lookup alone, in which no user wrote it."""
    given = variables("tuning", tuning_hugepages=trusted("{{ not_there }}"))
    with pytest.raises(AnsibleError, match=r"tuning_hugepages.* cannot be evaluated on gaudi-1 .*'not_there'"):
        evaluate("{{ _tuning_here.sysctl }}", **given)
