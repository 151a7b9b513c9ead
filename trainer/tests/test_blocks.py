"""Which parts of a model repeat."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from gaudi3_scale.models.blocks import repeated_blocks

SIZES = {
    "hidden_size": 16,
    "intermediate_size": 16,
    "num_hidden_layers": 3,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "vocab_size": 32,
    "num_local_experts": 4,
    "n_embd": 16,
    "n_layer": 3,
    "n_head": 2,
}


@pytest.mark.parametrize(
    ("kind", "prefix", "block"),
    [
        ("llama", "model.layers", "LlamaDecoderLayer"),
        ("mixtral", "model.layers", "MixtralDecoderLayer"),
        ("gpt2", "transformer.h", "GPT2Block"),
    ],
)
def test_the_blocks_of_published_architectures(kind: str, prefix: str, block: str) -> None:
    from transformers import AutoConfig, AutoModelForCausalLM

    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(AutoConfig.for_model(kind, **SIZES))
    blocks = repeated_blocks(model)
    assert [name for name, _ in blocks] == [f"{prefix}.{n}" for n in range(3)]
    assert {type(module).__name__ for _, module in blocks} == {block}
    assert all(model.get_submodule(name) is module for name, module in blocks)


def test_the_blocks_of_an_encoder() -> None:
    from transformers import BertConfig, BertForMaskedLM

    with torch.device("meta"):
        model = BertForMaskedLM(BertConfig(**SIZES))
    assert [name for name, _ in repeated_blocks(model)] == [f"bert.encoder.layer.{n}" for n in range(3)]


class Block(nn.Module):
    """A block with more experts than the model has blocks."""

    def __init__(self) -> None:
        super().__init__()
        self.experts = nn.ModuleList(nn.Linear(2, 2) for _ in range(8))


def test_a_list_within_a_block_is_part_of_it() -> None:
    model = nn.ModuleDict({"layers": nn.ModuleList([Block(), Block()]), "heads": nn.ModuleList([nn.Linear(2, 2)])})
    assert [name for name, _ in repeated_blocks(model)] == ["layers.0", "layers.1"]


def test_lists_of_the_same_block_count_together_and_mixed_or_single_ones_do_not() -> None:
    model = nn.ModuleDict(
        {
            "encoder": nn.ModuleList(nn.Linear(2, 2) for _ in range(3)),
            "decoder": nn.ModuleList(nn.Linear(2, 2) for _ in range(2)),
            "mixed": nn.ModuleList([nn.ReLU(), nn.Linear(2, 2), nn.ReLU(), nn.ReLU()]),
            "other": nn.ModuleList([nn.ReLU(), nn.ReLU()]),
        }
    )
    names = [name for name, _ in repeated_blocks(model)]
    assert names == ["encoder.0", "encoder.1", "encoder.2", "decoder.0", "decoder.1"]
    assert repeated_blocks(nn.Linear(2, 2)) == []
    assert [name for name, _ in repeated_blocks(nn.ModuleList([nn.ReLU(), nn.ReLU()]))] == ["0", "1"]
