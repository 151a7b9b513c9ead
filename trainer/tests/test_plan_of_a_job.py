"""What a job trains with beside what was asked for."""

from __future__ import annotations

import dataclasses

import pytest

from gaudi3_scale.config import load
from gaudi3_scale.run import JobPlan

UNEVEN = ["train.strategy=optimized_ddp", "train.accumulation_steps=4", "ddp.balance=[5,3]"]


def test_nothing_found_is_what_was_asked_for() -> None:
    for settings in (["train.micro_batch_size=6"], UNEVEN):
        config = load(None, settings)
        assert JobPlan.of(config).config == config


def test_a_stage_replaces_the_plan_and_leaves_what_was_asked_for() -> None:
    config = load(None, ["train.micro_batch_size=6", "train.accumulation_steps=2"])
    plan = JobPlan.of(config)
    later = dataclasses.replace(plan, accumulation=4, learning_rate=0.5)
    train = later.config.train
    assert (train.micro_batch_size, train.accumulation_steps, train.learning_rate) == (6, 4, 0.5)
    assert (plan.config, later.asked) == (config, config)
    with pytest.raises(dataclasses.FrozenInstanceError):
        plan.accumulation = 4  # type: ignore[misc]


def test_shares_that_no_longer_fit_are_no_part_of_it() -> None:
    plan = JobPlan.of(load(None, UNEVEN))
    assert plan.shares == (5, 3)
    assert dataclasses.replace(plan, shares=None).config.ddp.balance == "none"
