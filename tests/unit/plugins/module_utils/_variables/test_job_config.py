"""A job's configuration is checked without the trainer, and as the trainer checks it."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from ansible_collections.gaudi3.scale.plugins.module_utils._variables.job_config import (
    config_faults,
    jobs_faults,
)
from ansible_collections.gaudi3.scale.plugins.module_utils._variables.job_fields import FIELDS
from ansible_collections.gaudi3.scale.plugins.module_utils._variables.shapes import takes, wanted
from gaudi3_scale.config import Config, dump_default, load
from gaudi3_scale.errors import ConfigError
from tests import job_schema

#: Of each kind, on both sides of every bound, and as people write them.
VALUES: list[Any] = [
    None, True, False, 0, 1, -1, 2, 5, 8, 60, 61, 64, 65, 256, 1000, 1001, 1024, 65535, 65536, 2**32, 0.5, 0.05,
    0.1, 0.99, 1.0, 1.5, -0.5, 1e-9, "", " ", "x", "auto", "none", "hpu", "true", "Yes", "off", "maybe", "5", " 5 ",
    "5.0", "5.5", "1e3", "1e-3", "1_000", "0", "USD", "usd", [], [1], [0.9, 0.95], [0.9, 0.95, 1], ["signal"],
    ["nothing"], ["aws", 1], [True], [True, 0.9], [0.9, False],
    {}, {"a": 1}, "bf16-mixed", "bf16-true", "text", "/srv/x", "s3://bucket/x",
    float("inf"), float("nan"), "2026-01-31", "2026-13-31", "31.1.2026",
]  # fmt: skip


def said(config: object) -> list[str]:
    return [each.said("trainer_config") for each in config_faults(config)]


def test_the_table_is_the_one_that_the_trainer_has() -> None:
    assert job_schema.table() == FIELDS, "run python -m tests.job_schema"


def test_the_table_takes_what_the_trainer_takes_and_refuses_what_it_refuses() -> None:
    wrong, seen = [], 0
    for name, field, section in job_schema.fields():
        entry = FIELDS[name]
        if entry["type"] == "section" or f"{name}[]" in {each.rpartition(".")[0] for each in FIELDS}:
            continue
        validators = section.__pydantic_decorators__.field_validators.values()
        own = any(field_name in each.info.fields for each in validators for field_name in [name.rpartition(".")[2]])
        for value in VALUES:
            trainer = job_schema.takes(field, value)
            if own and entry["type"] == "any":
                trainer = True
            wrong += [(name, value, trainer)] if takes(value, entry) != trainer else []
            seen += 1
    assert seen > 5000
    assert wrong == []


def test_no_validator_of_the_trainer_takes_what_the_table_refuses() -> None:
    """Also those that rewrite what is given, which the types of the fields do not show."""
    wrong = []
    for name, _field, section in job_schema.fields():
        for each in section.__pydantic_decorators__.field_validators.values():
            key = name.rpartition(".")[2]
            if key not in each.info.fields:
                continue
            for value in VALUES:
                try:
                    section.model_validate({key: value})
                except (ValidationError, ConfigError) as error:
                    if any(found["loc"][:1] == (key,) for found in getattr(error, "errors", list)()):
                        continue
                wrong += [] if takes(value, FIELDS[name]) else [(name, value)]
    assert wrong == []


def test_what_the_trainer_prints_to_start_from_has_no_fault() -> None:
    assert said(yaml.safe_load(dump_default())) == []
    assert said(Config().model_dump(mode="json")) == []
    assert said(None) == said({}) == []


@pytest.mark.parametrize(
    ("config", "sentences"),
    [
        (
            {"train": {"max_step": 5}},
            ["Unknown key 'train.max_step' in trainer_config: did you mean 'train.max_steps'?"],
        ),
        (
            {"train.max_steps": 5},
            ["Key 'train.max_steps' in trainer_config is written as one: write max_steps as a key below train."],
        ),
        ({"max_steps": 5}, ["Unknown key 'max_steps' in trainer_config: did you mean 'train.max_steps'?"]),
        (
            {"model": {"precision": "x"}},
            ["Unknown key 'model.precision' in trainer_config: did you mean 'train.precision'?"],
        ),
        ({"qqqqqq": 1}, ["Unknown key 'qqqqqq' in trainer_config: `gaudi3-train config` prints all keys."]),
        ({"train": {"max_steps": 0}}, ["In trainer_config, train.max_steps is 0: give a whole number of at least 1."]),
        (
            {"train": {"max_steps": True}},
            ["In trainer_config, train.max_steps is true: give a whole number of at least 1."],
        ),
        (
            {"train": {"max_steps": "abc"}},
            ["In trainer_config, train.max_steps is 'abc': give a whole number of at least 1."],
        ),
        (
            {"train": {"precision": "bf16"}},
            ["In trainer_config, train.precision is 'bf16': give auto, 32-true or bf16-mixed."],
        ),
        (
            {"train": {"betas": [0.9]}},
            ["In trainer_config, train.betas is a list: give a list of 2 items, each a number."],
        ),
        ({"train": 5}, ["In trainer_config, train is 5: give a mapping of its keys."]),
        ({"train": None}, ["In trainer_config, train is null: give a mapping of its keys."]),
        (
            {"train": {"micro_batch_size": "all"}},
            ["In trainer_config, train.micro_batch_size is 'all': give a whole number of at least 1 or auto."],
        ),
        (
            {"data": {"mixture": [{"source": "a", "weigth": 1}, 5]}},
            [
                "Unknown key 'data.mixture[].weigth' in trainer_config: did you mean 'data.mixture[].weight'?",
                "In trainer_config, data.mixture[0] has no weight: give it.",
                "In trainer_config, data.mixture[1] is 5: give a mapping.",
            ],
        ),
        ("max_steps=5", ["trainer_config is 'max_steps=5': give a mapping of the trainer's keys to values."]),
        ([1], ["trainer_config is a list: give a mapping of the trainer's keys to values."]),
        (
            {"device": "gpu", "train": {"max_step": 1}},
            [
                "Unknown key 'train.max_step' in trainer_config: did you mean 'train.max_steps'?",
                "In trainer_config, device is 'gpu': give auto, cpu, cuda or hpu.",
            ],
        ),
        ({"train": {"a\x1b[2J": 1}}, [r"Unknown key 'train.a\\x1b[2J' in trainer_config: did you mean 'train.betas'?"]),
    ],
)
def test_each_fault_is_one_sentence_with_what_is_allowed(config: object, sentences: list[str]) -> None:
    assert said(config) == sentences


def test_what_is_not_known_yet_is_right() -> None:
    assert said({"train": {"max_steps": ..., "betas": [..., ...]}, "model": ..., "data": {"mixture": ...}}) == []


@pytest.mark.parametrize("name", FIELDS)
def test_every_field_says_what_it_takes(name: str) -> None:
    if FIELDS[name]["type"] not in ("section", "any"):
        assert re.search(r"[\w)\]$]$", wanted(FIELDS[name]))


def test_the_place_stands_behind_what_is_meant() -> None:
    (fault,) = jobs_faults(
        [{"name": "a", "config": {"train": {"max_step": 5}}}], {"name": {"type": "str"}, "config": {}}
    )
    assert fault.said("trainer_jobs", "all.yml, line 3") == (
        "Unknown key 'train.max_step' in trainer_jobs[0].config (all.yml, line 3): did you mean 'train.max_steps'?"
    )


def test_a_short_name_is_known_and_no_section_is_meant() -> None:
    (fault,) = config_faults({"train": {"lr": 0.1}})
    sentence = "Unknown key 'train.lr' in trainer_config: did you mean 'train.learning_rate'?"
    assert fault.said("trainer_config") == sentence
    with pytest.raises(ConfigError) as raised:
        load(None, ["train.lr=0.1"])
    assert str(raised.value) == sentence.replace("in trainer_config", "on the command line")
