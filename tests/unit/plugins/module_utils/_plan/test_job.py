"""The jobs of a list, the nodes of a job and its container, as the variables of role trainer say.

What a job's configuration comes to with the role's defaults: tests/unit/roles/test_trainer.py.
"""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._plan import job

USUAL: dict[str, Any] = {
    "inventory_hostname": "a",
    "trainer_nodes": ["a", "b", "c"],
    "trainer_head": "a",
    "trainer_root": "/opt/gaudi3-scale",
    "trainer_state": "finished",
    "trainer_job_name": "demo",
    "trainer_cards": 0,
    "trainer_container_image": "registry.example/mine:1",
    "hostvars": {
        "a": {"ansible_host": "10.0.0.1"},
        "b": {"ansible_host": "bmc-b", "gaudi_cluster_address": "10.1.0.2"},
        "c": {},
    },
}


def values(**given: Any) -> Any:
    return {**USUAL, **given}.get


def test_a_job_runs_where_it_is_not_stopped_and_has_a_name() -> None:
    assert job.runs(values()) and job.installs(values())
    assert not job.runs(values(trainer_job_name="")) and job.installs(values(trainer_job_name=""))
    for state in ("stopped", "absent"):
        assert not job.installs(values(trainer_state=state)) and not job.runs(values(trainer_state=state))


@pytest.mark.parametrize(
    ("own", "inventory", "builds"),
    [
        ("finished", {}, True),
        # Of the first host alone, which asks for all.
        ("stopped", {"a": {"trainer_state": "stopped"}}, True),
        ("absent", {"a": {"trainer_state": "absent"}, "b": {"trainer_state": "started"}}, True),
        ("absent", {name: {"trainer_state": "absent"} for name in "abc"}, False),
        # A play's or role's is that of all, and no host of the inventory has it.
        ("absent", {}, False),
        ("absent", {name: {"trainer_state": "finished"} for name in "abc"}, False),
    ],
)
def test_the_trainer_is_built_where_any_host_has_it(own: str, inventory: dict[str, Any], builds: bool) -> None:
    hosts = {name: inventory.get(name, {}) for name in "abc"}
    given = values(trainer_state=own, hostvars=hosts, ansible_play_hosts_all=list("abc"))
    assert job.builds(given) is builds


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, []),
        ({"trainer_jobs": [{"name": "one"}, {"name": "two", "nodes": ["a"]}], "trainer_job_name": ""}, []),
        ({"trainer_jobs": [{"name": "one"}]}, ["trainer_job_name is demo and trainer_jobs has one: keep one of the"]),
        (
            {"trainer_job_name": "", "trainer_jobs": [{"name": "one"}, {"name": "one"}]},
            ["trainer_jobs has one, one: give each job a name of its own."],
        ),
        (
            {
                "trainer_job_name": "",
                "trainer_jobs": [{"name": "one", "nodes": ["x", "a"]}, {"name": "2", "nodes": "x"}],
            },
            ["trainer_jobs has the nodes x, which are not in trainer_nodes, where the trainer is installed: add them"],
        ),
    ],
)
def test_jobs_that_cannot_stand_side_by_side(given: dict[str, Any], said: list[str]) -> None:
    found = job.list_problems(values(**given))
    assert len(found) == len(said) and all(each.startswith(begins) for each, begins in zip(found, said, strict=True))


def test_what_a_job_of_a_list_does_not_say_is_as_the_variable_says() -> None:
    jobs = [{"name": "one", "nodes": ["b", "c"], "cards": 4}, {"name": "two"}, {"name": "three", "head": "c"}]
    one, two, three = job.whole_list(values(trainer_jobs=jobs, trainer_cards=8, trainer_timeout=60))
    assert (one["head"], one["nodes"], one["cards"], one["timeout"]) == ("b", ["b", "c"], 4, 60)
    assert (two["head"], two["nodes"], two["cards"]) == ("a", ["a", "b", "c"], 8)
    assert three["head"] == "c"
    assert {"name", *job.KEYS} == one.keys()


@pytest.mark.parametrize(
    ("host", "found"),
    [
        ("a", ["10.1.0.2", "bmc-b", "b", "c"]),
        ("b", ["10.0.0.1", "a", "c"]),
        ("c", ["10.1.0.2", "10.0.0.1", "bmc-b", "a", "b"]),
        ("d", ["10.1.0.2", "10.0.0.1", "bmc-b", "a", "b"]),
    ],
)
def test_two_others_tell_the_interface_the_head_first(host: str, found: list[str]) -> None:
    assert job.peers(values(inventory_hostname=host)) == found


def test_the_nodes_meet_at_the_heads_address() -> None:
    assert job.head_address(values()) == "10.0.0.1"
    assert job.head_address(values(trainer_head="b")) == "10.1.0.2"
    assert job.head_address(values(trainer_head="c")) == "c"


def test_the_head_asks_or_the_first_of_the_play() -> None:
    assert job.asker(values(ansible_play_hosts=["c", "b", "a"])) == "a"
    assert job.asker(values(ansible_play_hosts=["c", "b"])) == "b"
    assert job.asker(values(ansible_play_hosts=[])) == ""


def test_each_image_has_an_environment_of_its_own() -> None:
    inside = {"trainer_runtime": "container"}
    assert job.root(values()) == "/opt/gaudi3-scale"
    one, other = (job.root(values(**inside, trainer_container_image=f"mine:{tag}")) for tag in "12")
    assert one.startswith("/opt/gaudi3-scale/container/") and one != other


def test_a_container_has_what_the_job_reads() -> None:
    made = job.container(values(trainer_dataset="/data", trainer_container_folders=["/srv"], trainer_tls="yes"))
    assert made["folders"] == ["/srv", "/data", "/etc/gaudi3-scale/trainer"]
    assert (made["image"], made["cards"]) == ("registry.example/mine:1", False)
    whole = job.decide(values(trainer_runtime="container", trainer_cards="8", trainer_dataset="/data"))
    assert whole["image_environment"]["release"] == job.RELEASE and whole["readable"] == ["/data"]
    assert whole["imports"] == ["torch", "habana_frameworks.torch"]


def test_a_job_reads_the_sets_that_it_names() -> None:
    given = values(
        trainer_data_sets=["755fdfaaf01f"], trainer_data_dir="/data", trainer_config={"data": {"source": "c"}}
    )
    assert job.config(given) == {"data": {"source": "c", "directory": "/data"}}
    assert job.container(given)["folders"] == ["/data/755fdfaaf01f"]
    assert (job.data_sets(given), job.data_sets(values())) == (["/data/755fdfaaf01f"], [])
    assert job.config(values(trainer_data_dir="/data")) == {}


def test_the_nodes_own_part_of_the_configuration_stands_above_the_jobs() -> None:
    given = values(trainer_config={"train": {"steps": 5, "seed": 1}}, trainer_node_config={"train": {"seed": 2}})
    assert job.whole_config(given) == {"train": {"steps": 5, "seed": 2}}


@pytest.mark.parametrize(
    ("given", "special"),
    [
        ({}, False),
        ({"trainer_gid": 900}, True),
        ({"trainer_gid": 0}, True),
        ({"trainer_tls": "true"}, True),
        ({"trainer_tls": "false"}, False),
        ({"trainer_dependencies": "index"}, True),
        ({"trainer_runtime": "container"}, True),
    ],
)
def test_few_nodes_need_more_than_a_user_and_a_wheel(given: dict[str, Any], special: bool) -> None:
    assert job.decide(values(**given))["special"] is special
