"""Whether a node's jobs trained on its cards, whatever the node answers.

What a whole play refuses: tests/unit/playbooks/test_verify.py.
"""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._plan import verify


def problem(job: Any, **given: Any) -> str:
    usual = {"inventory_hostname": "gaudi-1", "trainer_job_name": "demo", "_verify_cards": 8}
    return verify.job_problem({**usual, "_verify_job": {"jobs": [job]}, **given}.get)


def job(device: Any, name: str = "demo") -> dict[str, Any]:
    return {"name": name, "state": "finished", "status": {"schema": 1, "state": "finished", "device": device}}


def test_a_job_that_left_the_cards_idle_is_named_with_what_to_do() -> None:
    assert problem(job("cpu")) == (
        "Job demo trained on cpu, but gaudi-1 has 8 Gaudi cards: look into its log (journalctl -u gaudi-train-demo) "
        "and train under another trainer_job_name, or set device in trainer_config to cpu if processors are meant."
    )
    assert "or set trainer_cards to null if processors" in problem(job("cpu"), trainer_command=["mine.py"])


@pytest.mark.parametrize("device", ["hpu", "auto", "", None, 5, ["cpu"]])
def test_what_is_no_other_device_is_no_problem(device: Any) -> None:
    assert problem(job(device)) == ""


@pytest.mark.parametrize("odd", [None, "demo", {"name": "demo"}, {**job("cpu"), "status": "cpu"}, job("cpu", "other")])
def test_an_odd_answer_is_no_job_that_trained(odd: Any) -> None:
    assert problem(odd) == ""


@pytest.mark.parametrize("cards", [0, "0", None, "eight", 0.5])
def test_a_node_without_cards_may_train_on_anything(cards: Any) -> None:
    assert problem(job("cpu"), _verify_cards=cards) == ""
