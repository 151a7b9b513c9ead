"""Which model."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from gaudi3_scale.config.section import Section


class ModelConfig(Section):
    """The Llama that is trained. The vocabulary is bytes: no tokenizer, nothing to download."""

    name: Literal["llama"] = Field("llama", description="architecture; built from these sizes, never downloaded")
    hidden_size: int = Field(128, ge=8, description="width; a multiple of 2 x heads")
    layers: int = Field(3, ge=1, description="number of decoder layers")
    heads: int = Field(4, ge=1, description="attention heads")
    kv_heads: int = Field(2, ge=1, description="key/value heads; divides heads")
    intermediate_size: int = Field(344, ge=8, description="width of the MLP")
    sequence_length: int = Field(128, ge=8, description="bytes of context per sample")
    vocab_size: int = Field(256, ge=256, description="256 bytes; more only to leave room for special tokens")

    @model_validator(mode="after")
    def _fits(self) -> ModelConfig:
        if self.hidden_size % (2 * self.heads):
            raise ValueError(f"hidden_size is {self.hidden_size}, which is no multiple of 2 x heads = {2 * self.heads}")
        if self.heads % self.kv_heads:
            raise ValueError(f"kv_heads is {self.kv_heads}, which does not divide heads = {self.heads}")
        return self
