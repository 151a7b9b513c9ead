"""The configuration that the role trainer gives a job, and what it refuses before."""

from __future__ import annotations

import re
from typing import Any

import pytest

from ..playbooks.jinja import ROOT, evaluate, holds, load
from .decided import decided


def config(**chosen: Any) -> dict[str, Any]:
    return dict(decided("trainer_options", **chosen)["config"])


def problem(**chosen: Any) -> str:
    """What the role refuses these variables for, on a node with two cards."""
    there = {"_trainer_node": {"interface": "eth0"}, "trainer_job_name": "mine", "trainer_cards": 2}
    return str(decided("trainer_refusal", **{**there, **chosen}))


@pytest.mark.parametrize(
    ("chosen", "sentences"),
    [
        ({"trainer_command": ["/srv/train.py"]}, []),
        ({"trainer_command": ["train.py", "-v"], "trainer_chdir": "/srv"}, []),
        (
            {"trainer_command": ["/srv/train.py"], "trainer_config": {"device": "cpu"}},
            [
                "trainer_command and trainer_config are both set: keep trainer_command for a script of your own, or "
                "trainer_config for the trainer's."
            ],
        ),
        (
            {"trainer_command": ["/srv/train.py"], "trainer_dataset": "/data"},
            [
                "trainer_command and trainer_dataset are both set: give the data to your script in trainer_command's "
                "arguments."
            ],
        ),
        (
            {"trainer_command": ["train.py"]},
            [
                "trainer_command begins with 'train.py', which is not an absolute path: give one, or set trainer_chdir "
                "to the folder on the nodes that it is in."
            ],
        ),
        (
            {"trainer_command": ["train.py"], "trainer_chdir": "mine"},
            [
                "trainer_chdir is 'mine', which cannot be written into a unit: give an absolute path without control "
                "characters, backslashes and spaces at its end."
            ],
        ),
        (
            {"trainer_chdir": "/srv"},
            [
                "trainer_chdir is '/srv' and trainer_command is empty: trainer_chdir is the folder that a command runs "
                "in, so give both or leave it out."
            ],
        ),
        (
            {"trainer_command": ["train.py"], "trainer_chdir": "/tmp/mine"},
            [
                "The folder /tmp/mine of trainer_chdir is below /tmp, of which a job has its own: put it into another "
                "folder, such as one below /srv."
            ],
        ),
    ],
)
def test_a_command_that_cannot_run_is_refused_in_one_sentence(chosen: dict[str, Any], sentences: list[str]) -> None:
    assert problem(**chosen) == "".join(sentences)


def test_the_example_is_one_that_the_role_takes() -> None:
    variables = load("examples/own_script/job.yml")
    assert set(variables) <= set(load("roles/trainer/defaults/main.yml"))
    assert problem(**variables) == ""
    assert (ROOT / "examples/own_script" / variables["trainer_command"][0]).is_file()


def job(**chosen: Any) -> dict[str, Any]:
    """What the role gives the module of a job."""
    made = decided("trainer_options", trainer_cards=2, **chosen)
    return {name: made.get(name) for name in ("config", "node_config", "command", "chdir", "environment")}


def test_a_command_goes_without_the_trainers_configuration() -> None:
    made = job(trainer_command=["train.py"], trainer_chdir="/srv", trainer_interruption={"sources": ["signal", "aws"]})
    assert made == {
        "config": None,
        "node_config": None,
        "command": ["train.py"],
        "chdir": "/srv",
        "environment": {"GAUDI3_INTERRUPTION": '{"sources": ["signal", "aws"]}'},
    }
    plain = job(trainer_interruption={"sources": ["aws"]}, trainer_node_config={})
    assert plain["config"] == {"device": "hpu", "interruption": {"sources": ["aws"]}}
    assert (plain["command"], plain["chdir"], plain["environment"]) == (None, None, {})


def facts(cards: int) -> dict[str, Any]:
    return {"gaudi_pci": {"card_count": cards}}


def test_a_node_with_cards_trains_on_them_or_fails() -> None:
    assert config(ansible_facts=facts(8)) == {"device": "hpu"}
    assert config(trainer_cards=2) == {"device": "hpu"}


@pytest.mark.parametrize("device", ["cpu", "auto"])
def test_a_device_that_the_user_names_stays(device: str) -> None:
    assert config(ansible_facts=facts(8), trainer_config={"device": device}) == {"device": device}


@pytest.mark.parametrize("cards", [None, 0])
def test_without_cards_the_trainers_own_default_holds(cards: int | None) -> None:
    assert "device" not in config(trainer_cards=cards)


def test_the_other_settings_stand_beside_it() -> None:
    made = config(
        trainer_cards=8,
        trainer_config={"train": {"max_steps": 5}, "data": {"prefetch": 2}, "interruption": {"sources": ["signal"]}},
        trainer_dataset="/data",
        trainer_interruption={"sources": ["signal", "aws"]},
    )
    assert made == {
        "device": "hpu",
        "train": {"max_steps": 5},
        "data": {"prefetch": 2, "source": "/data"},
        "interruption": {"sources": ["signal", "aws"]},
    }


def driver_problem(**chosen: Any) -> str:
    """What the role says of the node's driver just before a job on its cards starts."""
    there = {"trainer_job_name": "mine", "trainer_cards": 8, "pytorch_release": None}
    node = {"_trainer_node": {"driver": "1.23.0", "interface": "eth0"}}
    return str(decided("trainer_refusal_at_start", **{**there, **node, **chosen}))


@pytest.mark.parametrize(
    ("chosen", "said"),
    [
        ({}, ""),
        ({"synapseai_release": "1.23.0-695"}, ""),
        ({"synapseai_release": "1.24.0-1007"}, "but PyTorch is of release 1.24.0-1007, and both have to be the same"),
        ({"pytorch_release": "1.22.0-740"}, "but PyTorch is of release 1.22.0-740, and both have to be the same"),
        ({"trainer_runtime": "container"}, ""),
        (
            {"trainer_runtime": "container", "synapseai_release": "1.24.0-1007"},
            "but the container image is of release 1.24.0-1007, and both have to be the same",
        ),
        # Nothing tells the release here, or nothing runs on the cards; a dry run may be about to change the driver.
        ({"pytorch_release": "1.22.0-740", "pytorch_state": "preinstalled"}, ""),
        ({"pytorch_release": "1.22.0-740", "trainer_config": {"device": "cpu"}}, ""),
        ({"pytorch_release": "1.22.0-740", "ansible_check_mode": True}, ""),
        ({"pytorch_release": "1.22.0-740", "_trainer_node": {"driver": None, "interface": "eth0"}}, ""),
    ],
)
def test_a_driver_of_another_release_is_named_before_the_start(chosen: dict[str, Any], said: str) -> None:
    found = driver_problem(**chosen)
    assert (said in found and found.startswith("gaudi-1 has driver 1.23.0 loaded, ")) if said else found == ""


def test_the_roles_have_one_default_release() -> None:
    release = load("roles/synapseai/defaults/main.yml")["synapseai_release"]
    texts = [*(ROOT / "roles").glob("*/defaults/main.yml"), *(ROOT / "roles").glob("*/vars/main.yml")]
    named = {
        found for path in texts for found in re.findall(r"synapseai_release \| default\('([^']+)'\)", path.read_text())
    }
    assert named == {release}


def test_only_the_head_itself_is_lost_with_it() -> None:
    """Another that asks in its place goes on, to say that the head is missing."""
    (task,) = load("roles/trainer/tasks/ask.yml")
    ignored = {host: evaluate(task["ignore_unreachable"], inventory_hostname=host, trainer_head="a") for host in "ab"}
    assert ignored == {"a": False, "b": True}


def test_nodes_with_different_images_are_told_apart() -> None:
    (task,) = (each for each in load("roles/trainer/tasks/install-container.yml") if "same image" in each["name"])
    hosts = {"a": {"_trainer_pulled": {"id": "1"}}, "b": {"_trainer_pulled": {"id": "2"}}, "c": {}}

    def ids(*names: str) -> list[str]:
        return list(evaluate(task["vars"]["_trainer_ids"], trainer_nodes=list(names), hostvars=hosts))

    assert sorted(ids("a", "b", "c")) == ["1", "2"] and ids("a", "c") == ["1"]
    assert holds([task["ansible.builtin.assert"]["that"]], _trainer_ids=["1"])
    assert not holds([task["ansible.builtin.assert"]["that"]], _trainer_ids=["1", "2"])


@pytest.mark.parametrize(
    ("tags", "skipped", "asks"),
    [
        (["all"], [], True),
        (["train"], [], True),
        (["preflight"], [], True),
        (["trainer_job"], [], True),
        (["preflight", "drivers"], [], False),
        (["tuning"], [], False),
        (["all"], ["train"], False),
    ],
)
def test_a_registry_is_asked_where_jobs_run(tags: list[str], skipped: list[str], asks: bool) -> None:
    play = {"ansible_run_tags": tags, "ansible_skip_tags": skipped}
    assert decided("trainer", **play)["asks_image"] is False, "without a container nothing is asked"
    assert decided("trainer", **play, trainer_runtime="container")["asks_image"] is asks
