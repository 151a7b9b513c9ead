"""Small models that answer, and what transformers' own `generate` makes of each prompt alone."""

from __future__ import annotations

import random
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import (
    AutoModelForCausalLM,
    GPT2Config,
    LlamaConfig,
    MistralConfig,
    PreTrainedTokenizerFast,
    Qwen3Config,
)

from gaudi3_scale.hpu.device import Device
from gaudi3_scale.serving.loaded_model import LoadedModel

VOCABULARY = 256
_SIZES = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
    "initializer_range": 0.4,  # so that the likeliest token is far from the next one
    "bos_token_id": None,
    "eos_token_id": None,
    "pad_token_id": None,
}
CONFIGS = {
    "llama": lambda: LlamaConfig(**_SIZES),
    "mistral, a window of 8": lambda: MistralConfig(**_SIZES, sliding_window=8),
    "qwen3, two kinds of layers": lambda: Qwen3Config(
        **_SIZES, head_dim=8, use_sliding_window=True, sliding_window=8, max_window_layers=1
    ),
    "gpt2, learned positions": lambda: GPT2Config(
        vocab_size=VOCABULARY,
        n_embd=32,
        n_layer=2,
        n_head=4,
        n_positions=256,
        initializer_range=0.4,
        bos_token_id=None,
        eos_token_id=None,
        pad_token_id=None,
    ),
}


def model(kind: str = "llama", seed: int = 0) -> Any:
    """Random weights that are the same each time."""
    torch.manual_seed(seed)
    return AutoModelForCausalLM.from_config(CONFIGS[kind]()).eval()


def tokenizer() -> PreTrainedTokenizerFast:
    """A token for each byte, so that characters outside of ASCII have several."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    raw = Tokenizer(models.BPE(vocab={letter: index for index, letter in enumerate(letters)}, merges=[]))
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=raw)


def loaded(kind: str = "llama", end: int | None = None) -> LoadedModel:
    """For a batcher, on CPU."""
    made = model(kind)
    made.generation_config.eos_token_id = end
    return LoadedModel(made, tokenizer(), Device("cpu", 0, "gloo"))


def alone(made: Any, prompt: list[int], tokens: int) -> list[int]:
    """Greedy, one prompt at a time, as a user of transformers has it."""
    with torch.inference_mode():
        found = made.generate(
            torch.tensor([prompt]),
            attention_mask=torch.ones((1, len(prompt)), dtype=torch.long),
            max_new_tokens=tokens,
            do_sample=False,
            pad_token_id=0,
        )
    return [int(token) for token in found[0, len(prompt) :]]


def prompts(count: int, seed: int = 1, longest: int = 40) -> list[list[int]]:
    """Of unequal lengths."""
    made = random.Random(seed)
    return [[made.randrange(VOCABULARY) for _ in range(made.randint(1, longest))] for _ in range(count)]
