"""Models from the configuration."""

from __future__ import annotations

from torch import nn
from transformers.models.llama.configuration_llama import LlamaConfig
from transformers.models.llama.modeling_llama import LlamaForCausalLM

from gaudi3_scale.config import ModelConfig


def build_llama(config: ModelConfig) -> nn.Module:
    """A Llama of these sizes with random weights, drawn from torch's global generator."""
    model: nn.Module = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=config.vocab_size,
            hidden_size=config.hidden_size,
            intermediate_size=config.intermediate_size,
            num_hidden_layers=config.layers,
            num_attention_heads=config.heads,
            num_key_value_heads=config.kv_heads,
            max_position_embeddings=config.sequence_length,
            tie_word_embeddings=False,
            use_cache=False,
            bos_token_id=None,
            eos_token_id=None,
        )
    )
    return model
