"""A published shape has samples of its own length unless one is given."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from gaudi3_scale.config import Config, load
from gaudi3_scale.planning.text import sentences


def test_a_length_that_is_given_counts_and_toy_models_keep_their_default() -> None:
    given = load(None, ["model.name=llama-3.1-8b", "model.sequence_length=128"]).model
    assert (given.sequence_length, given.length_words) == (128, "samples of 128 tokens")
    for name in ("llama", "llama-tiny"):
        model = load(None, [f"model.name={name}"]).model
        assert model.length_words == "samples of 128 tokens (the default; model.sequence_length sets it)"
    fewer = ["model.name=llama-3.1-8b", "model.config.max_position_embeddings=1024"]
    assert load(None, fewer).model.sequence_length == 1024


def test_the_length_survives_every_form_in_which_a_configuration_is_handed_on() -> None:
    job = load(None, ["model.name=llama-3.1-8b"])
    for dump in ({}, {"exclude_unset": True}, {"exclude_defaults": True}):
        options: dict[str, Any] = dump
        assert Config.model_validate(job.model_dump(mode="json", **options)).model.sequence_length == 2048


def test_a_plan_says_in_its_first_line_whose_length_it_takes() -> None:
    job = load(None, ["model.name=llama-3.1-8b"])
    sizes = SimpleNamespace(parameters=8, trained_parameters=8)
    plan: Any = SimpleNamespace(
        job=job, model=sizes, tokens=1e9, flops=1e18, recommended=None, peak=None, rows=[SimpleNamespace(precision="x")]
    )
    assert "samples of 2,048 tokens (that of llama-3.1-8b; model.sequence_length sets it), x" in sentences(plan)[0]
