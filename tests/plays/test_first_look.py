"""A run that would do nothing, or not what was meant, ends before a host is asked, with a sentence and not with 0."""

from __future__ import annotations

import re
from typing import Any

import pytest

from .cluster import Cluster
from .test_settings import lie

#: What Ansible itself warns of where it reads no inventory, and what is said of a name that is like none.
NOTHING_READ = re.compile(r"\[WARNING\].*?(?=\n\n|\Z)", re.DOTALL)
UNREAD = re.compile(r"\[WARNING\]:\s+trainer_rubbish.*?(?=\n\n|\Z)", re.DOTALL)


def flat(text: str) -> str:
    """A text whose lines Ansible broke."""
    return " ".join(text.split())


@pytest.fixture
def asked(cluster: Cluster) -> Any:
    """One node and a monitoring host; the file that is there once the node was asked anything."""
    cluster.gaudi(1, cards=0)
    cluster.add("mon", "monitoring", driver=False)
    return lie(cluster, "gaudi-1")


@pytest.mark.parametrize(
    ("playbook", "arguments", "sentence"),
    [
        (
            "health.yml",
            ["-i", "/dev/null"],
            "The inventory has no host in group gaudi (Ansible read /dev/null): give yours with -i, as in "
            "'ansible-playbook -i mine gaudi3.scale.site', and name the Gaudi nodes in that group.",
        ),
        (
            "renew_certificates.yml",
            ["--limit", "gaudi"],
            "--limit gaudi leaves none of the hosts that this playbook works on: name hosts of group monitoring, or "
            "leave --limit out.",
        ),
    ],
)
def test_a_run_without_hosts_is_refused(cluster: Cluster, playbook: str, arguments: list[str], sentence: str) -> None:
    cluster.gaudi(1, cards=0)
    cluster.add("mon", "monitoring", driver=False)
    own = {"inventory": arguments[1]} if arguments[0] == "-i" else {}
    cluster.allowed = NOTHING_READ
    run = cluster.play(playbook, *([] if own else arguments), **own)  # type: ignore[arg-type]
    assert (run.returncode != 0, run.messages()) == (True, [sentence])


def test_a_file_that_no_plugin_reads_is_refused_beside_one_that_is_read(cluster: Cluster, asked: Any) -> None:
    path = cluster.inventory()
    broken = path.parent / "more.yml"
    broken.write_text("all: {hosts: [gaudi-2\n")
    cluster.allowed = NOTHING_READ
    run = cluster.play("health.yml", inventory=str(path.parent))
    assert (run.returncode != 0, run.messages(), asked.exists()) == (
        True,
        [
            f"The inventory {broken} was not read, for the reason that Ansible warns of above: correct the file, or "
            "move it out of the inventory."
        ],
        False,
    )


def test_each_misspelt_name_and_each_fault_of_a_job_is_said_with_its_place(cluster: Cluster, asked: Any) -> None:
    path = cluster.inventory()
    variables = path.parent / "group_vars/gaudi.yml"
    variables.parent.mkdir()
    variables.write_text(
        "trainer_steps_mine: 7\n"
        "trainer_config:\n"
        "  train:\n"
        "    max_step: '{{ trainer_steps_mine }}'\n"
        "    seed: '{{ later }}'\n"
        "trainer_rubbish: 1\n"
        "prometheus_scrape_limits: {sampel_limit: 5}\n"
    )
    cluster.allowed = UNREAD
    run = cluster.play("preflight.yml", inventory=str(path.parent), synapseai_relase="1.22.0-740")
    assert (run.returncode != 0, asked.exists()) == (True, False)
    assert run.messages() == [
        "synapseai_relase (given with -e) is no variable of this collection: write synapseai_release if you mean that, "
        "or add synapseai_relase to gaudi_accept_variables if something else reads it.\n"
        "Unknown key 'sampel_limit' in prometheus_scrape_limits (inventory/group_vars/gaudi.yml, line 7): did you mean "
        "'sample_limit'?\n"
        "Unknown key 'train.max_step' in trainer_config (inventory/group_vars/gaudi.yml, line 4): did you mean "
        "'train.max_steps'?"
    ]
    assert "trainer_rubbish (inventory/group_vars/gaudi.yml, line 6) begins as variables of this" in flat(
        run.everything
    )


def test_what_else_reads_a_variable_is_listed_and_jobs_are_asked_for_where_they_are_run(
    cluster: Cluster, asked: Any
) -> None:
    given: dict[str, Any] = {"synapseai_relase": "x", "trainer_config": {"train": {"max_step": 5}}}
    accepted = cluster.play("health.yml", "--check", gaudi_accept_variables=["synapseai_rel*"], **given)
    assert asked.exists() and "max_step" not in accepted.everything
    odd = cluster.play("train.yml", gaudi_accept_variables="synapseai_rel*", **given)
    assert (odd.returncode != 0, odd.messages()) == (
        True,
        [
            "gaudi_accept_variables is synapseai_rel*: give a list of names of variables, such as [prometheus_*].\n"
            "Unknown key 'train.max_step' in trainer_config (given with -e): did you mean 'train.max_steps'?"
        ],
    )
