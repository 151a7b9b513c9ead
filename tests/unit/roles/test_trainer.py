"""The configuration that the role trainer gives a job."""

from __future__ import annotations

from typing import Any

import pytest

from ..playbooks.jinja import evaluate, load


def config(**chosen: Any) -> dict[str, Any]:
    variables = {**load("roles/trainer/defaults/main.yml"), **load("roles/trainer/vars/main.yml"), "ansible_facts": {}}
    (block,) = (task for task in load("roles/trainer/tasks/job.yml") if "module_defaults" in task)
    made = evaluate(block["module_defaults"]["gaudi3.scale.gaudi_train"]["config"], **{**variables, **chosen})
    return dict(made)


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
