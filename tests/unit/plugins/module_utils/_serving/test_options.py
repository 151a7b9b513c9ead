"""Arguments and variables of vLLM that cannot work, or that show a secret, are refused in a sentence."""

from __future__ import annotations

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._serving import options


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            ["--port", "9000"],
            "serving_arguments has --port, which role serving gives vLLM itself: take it out, and see",
        ),
        (["--served_model_name=x"], "serving_arguments has --served-model-name, which"),
        (["--api-key", "abc"], "serving_arguments has --api-key, which role serving gives"),
        (
            ["--por", "9000"],
            "serving_arguments has --por, which role serving gives vLLM itself: take it out, and see serv",
        ),
        (["--max_model=8"], "serving_arguments has --max-model, which"),
        (["-tp", "2"], "serving_arguments has -tp, which"),
        (["--hf-token", "abc"], "serving_arguments has the value of --hf-token that looks like a secret"),
        (["--hf-token=abc"], "serving_arguments has the value of --hf-token that looks like a secret"),
        (["--seed", "1\0"], "serving_arguments has an argument with a byte 0"),
    ],
)
def test_arguments_that_cannot_be(given: list[str], said: str) -> None:
    found = options.arguments_problem(given)
    assert found.startswith(said) and "abc" not in found


def test_other_arguments_pass_and_are_read() -> None:
    given = ["--seed", "-1", "--kv_cache_dtype=fp8_inc", "--max-num-batched-tokens", "8192", "--chat-template", "/a/b"]
    given += ["--model-impl", "transformers", "--ssl-keyfile-password-file", "/a"]
    assert options.arguments_problem(given) == ""
    assert options.value_of(given, "--kv-cache-dtype") == "fp8_inc"
    assert options.value_of(given, "--max-num-batched-tokens") == "8192"
    assert options.value_of(given, "--seed") == "-1"
    assert options.value_of(given, "--none") == options.value_of(["--seed"], "--seed") == ""


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"A B": "1"}, "serving_environment has the name 'A B': give letters"),
        ({"A=B": "1"}, "serving_environment has the name 'A=B'"),
        ({"PYTHONPATH": "/x"}, "serving_environment has PYTHONPATH, which role serving sets"),
        ({"A": None}, "A in serving_environment has no text for its value: give one, in quotes."),
        ({"A": ["1"]}, "A in serving_environment has no text"),
        ({"A": "x\0"}, "The value of A in serving_environment has a byte 0"),
        ({"VLLM_DECODE_BS_BUCKET_MAX": "many"}, "VLLM_DECODE_BS_BUCKET_MAX in serving_environment is 'many'"),
        ({"VLLM_DECODE_BS_BUCKET_MAX": "²"}, "VLLM_DECODE_BS_BUCKET_MAX in serving_environment is '²'"),
        ({"VLLM_GRAPH_RESERVED_MEM": "abc"}, "VLLM_GRAPH_RESERVED_MEM in serving_environment is 'abc': give a share"),
        ({"VLLM_GRAPH_RESERVED_MEM": "nan"}, "VLLM_GRAPH_RESERVED_MEM in serving_environment is 'nan'"),
    ],
)
def test_variables_that_cannot_be(given: dict[str, object], said: str) -> None:
    assert options.environment_problem(given).startswith(said)


def test_other_variables_pass() -> None:
    given = {"VLLM_DECODE_BS_BUCKET_MAX": 64, "VLLM_GRAPH_RESERVED_MEM": 0.2, "VLLM_BUCKETING_STRATEGY": "lin", "X": ""}
    assert options.environment_problem(given) == ""
