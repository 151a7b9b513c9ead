"""The shapes of a warm-up, against what the plugin's own bucket files (v0.26.0) gave for the same input."""

from __future__ import annotations

import hashlib
import json

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal
from ansible_collections.gaudi3.scale.plugins.module_utils._serving.buckets import (
    Buckets,
    Limits,
    exponential_range,
    linear_range,
    shapes,
)

# Made by running bucketing/{common,exponential,linear}.py of tag v0.26.0: numbers of shapes and a digest of the lists.
PLUGIN = [
    ("exp", {}, 262144, 256, 2048, 12300, 117, 161, "eec684e15ea9decc"),
    ("exp", {}, 262144, 256, 8192, 12300, 156, 161, "c2de2e178cefc415"),
    ("exp", {}, 4096, 16, 2048, 3000, 63, 41, "f9b69ffabf0beabc"),
    ("exp", {"VLLM_PROMPT_BS_BUCKET_MAX": 4}, 16384, 64, 8192, 900, 240, 78, "386940109125b822"),
    ("exp", {"VLLM_PROMPT_CTX_BUCKET_MAX": 100}, 32768, 7, 1000, 5000, 70, 55, "c9d52002de45cadf"),
    ("exp", {"VLLM_PROMPT_QUERY_BUCKET_MIN": 1}, 2048, 1, 512, 100, 30, 5, "6a45b32c8bda7e09"),
    ("exp", {"VLLM_DECODE_BS_BUCKET_MAX": 8}, 8192, 100, 3000, 50, 88, 78, "9e3c087c4de9c877"),
    ("exp", {}, 262144, 1, 128, 9694, 13, 12, "13a4c3a2e5ed1df7"),
    ("lin", {}, 2048, 32, 2048, 1000, 256, 31, "857f59e932cbdff5"),
    (
        "lin",
        {"VLLM_PROMPT_SEQ_BUCKET_MAX": 1024, "VLLM_DECODE_BLOCK_BUCKET_STEP": 512},
        *(9000, 64, 2048, 100, 553, 60, "9804e466eb5da65e"),
    ),
    (
        "lin",
        {
            "VLLM_PROMPT_CTX_BUCKET_STEP": 256,
            "VLLM_DECODE_BLOCK_BUCKET_STEP": 4096,
            "VLLM_DECODE_BS_BUCKET_MIN": 2,
        },
        *(131072, 50, 4096, 100, 128, 60, "00fb3f60de71f8a1"),
    ),
]


@pytest.mark.parametrize("strategy, variables, length, sequences, tokens, blocks, prompt, decode, digest", PLUGIN)
def test_shapes_are_those_of_the_plugin(
    strategy: str,
    variables: dict[str, int],
    length: int,
    sequences: int,
    tokens: int,
    blocks: int,
    prompt: int,
    decode: int,
    digest: str,
) -> None:
    found = shapes(Buckets(strategy, variables), Limits(length, sequences, tokens, blocks))
    assert found.prompt is not None and found.decode is not None
    assert (len(found.prompt), len(found.decode), found.count) == (prompt, decode, prompt + decode)
    text = json.dumps([found.prompt, found.decode], separators=(",", ":"))
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == digest


def test_ranges_of_the_plugins_docstrings() -> None:
    assert exponential_range(128, 128, 2048, 10) == [128, 256, 384, 512, 640, 896, 1152, 1536, 2048]
    assert linear_range(2, 32, 64) == [2, 4, 8, 16, 32, 64]
    assert linear_range(0, 0, 0) == [0]


def test_variables_that_the_strategy_does_not_read_are_named_and_left_out() -> None:
    given = {"VLLM_PROMPT_QUERY_BUCKET_MAX": 1024, "VLLM_PROMPT_BS_BUCKET_MAX": 2, "VLLM_DECODE_BS_BUCKET_STEP": 4}
    exponential = Buckets("exp", given)
    assert exponential.ignored == ("VLLM_DECODE_BS_BUCKET_STEP", "VLLM_PROMPT_QUERY_BUCKET_MAX")
    assert exponential.environment == {"VLLM_BUCKETING_STRATEGY": "exp", "VLLM_PROMPT_BS_BUCKET_MAX": "2"}
    assert Buckets("lin", given).ignored == ()
    assert Buckets("exp", {"VLLM_PROMPT_QUERY_BUCKET_MIN": 1}).ignored == ()
    assert Buckets("exp", {"VLLM_PROMPT_QUERY_BUCKET_MIN": 2}).ignored == ("VLLM_PROMPT_QUERY_BUCKET_MIN",)


def test_a_set_of_too_many_combinations_is_not_listed() -> None:
    assert shapes(Buckets("lin"), Limits(1_048_576, 1024, 8192, 1)).count is None


@pytest.mark.parametrize(
    "strategy, variables, said",
    [
        ("pad", {}, "use exp or lin"),
        ("lin", {"VLLM_GRAPH_PROMPT_RATIO": 1}, "VLLM_GRAPH_PROMPT_RATIO is no bucket variable"),
        ("lin", {"VLLM_DECODE_BS_BUCKET_STEP": 0}, "VLLM_DECODE_BS_BUCKET_STEP must be a positive number"),
    ],
)
def test_wrong_sets_are_refused(strategy: str, variables: dict[str, int], said: str) -> None:
    with pytest.raises(Refusal, match=said):
        Buckets(strategy, variables)


def test_a_minimum_above_the_maximum_is_refused() -> None:
    with pytest.raises(Refusal, match="minimum of 64 is above its maximum of 8"):
        linear_range(64, 64, 8)
