"""A plan of weights, cache and warm-up: what fits, what does not and why."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal
from ansible_collections.gaudi3.scale.plugins.module_utils._serving.buckets import Buckets
from ansible_collections.gaudi3.scale.plugins.module_utils._serving.warmup import (
    CARD_BYTES,
    GIB,
    ONE_REPORT,
    ServingPlan,
    plan,
)

from .test_footprint import HYBRID, LLAMA_8B, WEIGHTS


def issue_1736(**changes: Any) -> ServingPlan:
    """vllm-project/vllm-gaudi#1736: 27 billion FP8 weights, 4 cards, 262K tokens, bytes as the report gives them."""
    given: dict[str, Any] = {
        "weights_bytes": int(4 * 7.1 * GIB),
        "card_bytes": int(126.5 * GIB),
        "cards": 4,
        "max_model_len": 262144,
        "max_num_seqs": 256,
        "max_num_batched_tokens": 8192,
        "dtype": "bfloat16",
        "buckets": None,
        "cache_dtype": "fp8_inc",
    }
    return plan(HYBRID, **{**given, **changes})


def llama(**changes: Any) -> ServingPlan:
    given: dict[str, Any] = {
        "weights_bytes": WEIGHTS,
        "card_bytes": CARD_BYTES["gaudi3"],
        "cards": 1,
        "max_model_len": 4096,
        "max_num_seqs": 64,
        "max_num_batched_tokens": None,
        "dtype": "bfloat16",
        "buckets": None,
    }
    return plan(LLAMA_8B, **{**given, **changes})


def test_the_public_case_does_not_fit_and_a_set_that_does_is_named() -> None:
    found = issue_1736()
    assert not found.fits
    assert found.sentence.startswith(
        "does not fit because the warm-up of 297 shapes may want 29.7 GiB of a card and 13.4 GiB are left"
        " (weights take 7.1 GiB and the cache 105.5 GiB of 126.5 GiB); fits with 133 shapes (strategy lin, "
    )
    assert "or with all 302 shapes at VLLM_GRAPH_RESERVED_MEM=0.26" in found.sentence
    # The report counts about 108 GiB of cache with the recurrent state.
    assert (found.asked.cache + found.asked.state) / GIB == pytest.approx(108, rel=0.05)
    assert found.notes[0] == ONE_REPORT


def test_what_is_proposed_fits_when_it_is_asked_for() -> None:
    found = issue_1736()
    environment = dict(found.environment)
    reserved = float(environment.pop("VLLM_GRAPH_RESERVED_MEM"))
    strategy = environment.pop("VLLM_BUCKETING_STRATEGY")
    buckets = Buckets(strategy, {name: int(value) for name, value in environment.items()})
    assert buckets.ignored == ()
    again = issue_1736(buckets=buckets, reserved=reserved)
    assert again.fits and again.environment == found.environment and again.asked == found.proposed


def test_the_reserve_that_the_report_found_just_enough_is_just_enough() -> None:
    assert not issue_1736(reserved=0.1).fits
    found = issue_1736(reserved=0.26)
    assert found.fits and found.asked.left - found.asked.graphs < 2 * GIB


def test_a_small_model_fits_as_it_is() -> None:
    found = llama()
    assert found.fits and found.sentence.startswith("fits: weights 15.0 GiB, cache 89.")
    assert found.environment == {"VLLM_BUCKETING_STRATEGY": "exp", "VLLM_GRAPH_RESERVED_MEM": "0.1"}
    parts = found.asked
    assert parts.weights + parts.profile + parts.cache + parts.state + parts.left == parts.card


def test_weights_that_are_too_large_name_the_cards_that_hold_them() -> None:
    found = llama(weights_bytes=140 * GIB)
    assert found.sentence == (
        "does not fit because the weights take 140.0 GiB of each card, which has 126.0 GiB; fits with 2 cards"
    )
    assert found.environment == {} and found.proposed is None


def test_a_length_that_the_cache_cannot_hold() -> None:
    found = llama(card_bytes=20 * GIB, max_model_len=131072, max_num_seqs=1, cards=8, weights_bytes=8 * 18 * GIB)
    assert "one sequence of 131072 tokens takes 2.0 GiB of cache" in found.sentence
    assert "fits with a length of " in found.sentence


def test_state_that_grows_with_sequences() -> None:
    found = issue_1736(max_num_seqs=2048)
    assert "the recurrent state of 2048 sequences takes 73." in found.sentence
    assert not found.fits and found.environment["VLLM_GRAPH_RESERVED_MEM"] != "0.1"


def test_nothing_helps() -> None:
    found = llama(weights_bytes=10_000 * GIB)
    assert found.sentence.endswith("fits: use a smaller model or FP8 weights")


def test_a_set_without_end_is_not_taken_for_one_without_graphs() -> None:
    found = llama(buckets=Buckets("lin"), max_model_len=131072, max_num_seqs=512, max_num_batched_tokens=8192)
    assert not found.fits and "more than 20,000 combinations" in found.sentence
    assert found.counts["lin"] is None and found.counts["exp"]


def test_variables_that_do_nothing_are_told() -> None:
    found = llama(buckets=Buckets("exp", {"VLLM_DECODE_BS_BUCKET_MAX": 8}))
    assert "under exp the plugin does not read VLLM_DECODE_BS_BUCKET_MAX" in found.notes
    assert "VLLM_DECODE_BS_BUCKET_MAX" not in found.environment


def test_a_length_below_one_block() -> None:
    """Of which the plugin's `lin` defaults have a context of -1 block."""
    found = llama(max_model_len=96)
    assert found.fits and found.counts == {"exp": found.asked.shapes}


def test_facts_are_plain_data() -> None:
    facts = json.loads(json.dumps(issue_1736().as_facts()))
    assert facts["fits"] is False and facts["strategy"] == "lin"
    assert facts["asked"]["shapes"] == 297 and facts["shapes"]["exp"] == 297
    assert facts["proposed"]["left"] >= facts["proposed"]["graphs"]


@pytest.mark.parametrize(
    "change, said",
    [
        ({"cards": 0}, "cards is 0"),
        ({"max_num_batched_tokens": 0}, "max_num_batched_tokens is 0"),
        ({"utilisation": 1.5}, "utilisation 1.5"),
        ({"reserved": 1.0}, "reserve 1 are shares"),
    ],
)
def test_requests_that_no_server_can_have_are_refused(change: dict[str, Any], said: str) -> None:
    with pytest.raises(Refusal, match=said):
        llama(**change)


def test_tokens_of_a_step_of_a_hybrid_model_are_whole_chunks() -> None:
    with pytest.raises(Refusal, match="max_num_batched_tokens 1000 is no multiple of 128"):
        issue_1736(max_num_batched_tokens=1000)
