"""Tiny models of the three families, and a training loop whose weights two devices can be compared by."""

from __future__ import annotations

from typing import Any

import torch
from transformers import (
    BertConfig,
    BertForMaskedLM,
    LlamaConfig,
    LlamaForCausalLM,
    MixtralConfig,
    MixtralForCausalLM,
)

VOCABULARY = 64
FAMILIES = ("llama", "mixtral", "bert")


def build(family: str) -> Any:
    """The same weights at every call; BERT has dropout."""
    torch.manual_seed(0)
    sizes = {
        "vocab_size": VOCABULARY,
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
    }
    if family == "llama":
        return LlamaForCausalLM(LlamaConfig(num_key_value_heads=2, **sizes))
    if family == "mixtral":
        return MixtralForCausalLM(MixtralConfig(num_key_value_heads=2, num_local_experts=4, **sizes))
    return BertForMaskedLM(BertConfig(hidden_dropout_prob=0.1, attention_probs_dropout_prob=0.1, **sizes))


def train(model: Any, device: torch.device, steps: int, seed: int = 1) -> list[float]:
    """Train on random tokens; the loss of each step."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    tokens = torch.Generator().manual_seed(seed)
    torch.manual_seed(5)  # for dropout, on all devices
    losses = []
    for _ in range(steps):
        batch = torch.randint(0, VOCABULARY, (2, 16), generator=tokens).to(device)
        loss = model(input_ids=batch, labels=batch).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return losses


def weights(model: Any) -> dict[str, torch.Tensor]:
    """Whole weights on the CPU, gathered where they are sharded."""
    state = model.state_dict()
    return {
        name: (value.full_tensor() if hasattr(value, "full_tensor") else value).detach().cpu()
        for name, value in state.items()
    }


def different(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> list[str]:
    """Names of weights that are not the same to the last bit."""
    assert one.keys() == other.keys()
    return [name for name in one if not torch.equal(one[name], other[name])]
