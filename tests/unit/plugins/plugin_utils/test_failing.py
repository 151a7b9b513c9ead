"""A variable whose template fails is named, and what to write in its place."""

from __future__ import annotations

from typing import Any

from ansible_collections.gaudi3.scale.plugins.plugin_utils.failing import failing
from ansible_collections.gaudi3.scale.plugins.plugin_utils.roles import DEFAULTS


def evaluate(value: Any) -> Any:
    if "nope" in str(value):
        raise ValueError("'nope' is\n undefined.")
    return value


def test_each_variable_that_fails_is_named_with_its_error() -> None:
    given = {"trainer_nodes": "{{ nope }}", "trainer_user": "me", "trainer_head": "{{ nope.x }}", "mine": "{{ nope }}"}
    assert failing(given, evaluate, ValueError("met"), "gaudi-1").splitlines() == [
        f"{name} cannot be evaluated on gaudi-1 ('nope' is undefined): correct its template, or define what it names."
        for name in ("trainer_head", "trainer_nodes")
    ]


def test_a_default_that_fails_with_another_variable_is_not_named() -> None:
    given = {"trainer_head": "{{ nope }}", "trainer_processes_per_node": DEFAULTS["trainer_processes_per_node"]}
    failed = failing(given, lambda value: evaluate("nope"), ValueError("met"), "gaudi-1")
    assert failed.startswith("trainer_head cannot") and "\n" not in failed


def test_facts_of_other_hosts_are_said_to_be_unknown() -> None:
    given = {"trainer_head": "{{ hostvars['gaudi-1'].ansible_facts.nope }}"}
    assert failing(given, evaluate, ValueError("met"), "gaudi-1").endswith(
        ": facts are not in hostvars before hosts are asked: write ansible_facts for those of the host itself, or give "
        "the value in the inventory."
    )


def test_where_no_variable_of_a_role_fails_the_error_itself_is_said() -> None:
    assert failing({"mine": "{{ nope }}"}, evaluate, ValueError("\x1bmet"), "gaudi-1") == (
        "A variable of gaudi-1 cannot be evaluated (\\x1bmet): correct what its template names."
    )
