"""Which model."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationInfo, field_validator, model_validator

from gaudi3_scale.config.changes import checked
from gaudi3_scale.config.registered import Reference, is_registered
from gaudi3_scale.config.section import Section
from gaudi3_scale.config.shapes import SHAPES, own_length
from gaudi3_scale.errors import ConfigError

SIZES = ("hidden_size", "layers", "heads", "kv_heads", "intermediate_size", "vocab_size")


class LoraConfig(Section):
    """Low-rank adapters, trained instead of the model's own weights."""

    rank: int = Field(0, ge=0, description="0 = none: all weights are trained")
    alpha: float = Field(16, gt=0, description="the adapters' output is scaled by alpha / rank")
    dropout: float = Field(0.0, ge=0, lt=1, description="on the adapters' input")
    targets: list[str] = Field(
        default=[], description="names of linear layers that get one; empty, or all-linear = all but the head"
    )

    @field_validator("targets", mode="before")
    @classmethod
    def _all_linear(cls, value: object) -> object:
        """As peft writes it."""
        if isinstance(value, str):
            value = [value]
        return [] if value == ["all-linear"] else value


class ModelConfig(Section):
    """The model that is trained."""

    FOLLOWS = frozenset({"sequence_length"})

    name: str = Field(
        "llama",
        min_length=1,
        description="llama = a Llama of the sizes below; a published shape, as llama-3.1-8b; the path of a "
        "transformers folder; or registry:NAME@ALIAS, a version in MLflow's registry, which fit alone fetches; nothing "
        "else is ever downloaded",
    )
    weights: Literal["auto", "random"] = Field(
        "auto", description="of a folder: auto = its own; random = only its shape is taken"
    )
    deferred: bool = Field(
        False,
        description="read or draw the weights in parts, under habana_fsdp: for models larger than a node's memory",
    )
    frozen_dtype: Literal["auto", "float32", "bfloat16"] = Field(
        "auto",
        description="type of the weights that LoRA leaves as they are; auto = float32 where the job computes in "
        "32-true, else bfloat16",
    )
    config: dict[str, Any] = Field(
        default={}, description="changes to the configuration of a published shape or folder, in its own names"
    )
    hidden_size: int = Field(128, ge=8, description="width; a multiple of 2 x heads")
    layers: int = Field(3, ge=1, description="number of decoder layers")
    heads: int = Field(4, ge=1, description="attention heads")
    kv_heads: int = Field(2, ge=1, description="key/value heads; divides heads")
    intermediate_size: int = Field(344, ge=8, description="width of the MLP")
    vocab_size: int = Field(256, ge=256, description="256 for bytes; more than the tokenizer's largest id")
    sequence_length: int = Field(
        128,
        ge=8,
        description="tokens of context per sample; not given, a published shape has its own: 2,048, or 512 of BERT",
    )
    lora: LoraConfig = Field(default_factory=LoraConfig, description="low-rank adapters")

    @model_validator(mode="after")
    def _fits(self, info: ValidationInfo) -> ModelConfig:
        if self.name == "llama":
            return self._llama_fits()
        changed = [s for s in SIZES if getattr(self, s) != type(self).model_fields[s].default]
        if changed:
            raise ConfigError(
                f"model.{changed[0]} is set, but it counts for the name llama only: change sizes of {self.name!r} with "
                "model.config, in the names of its own configuration."
            )
        for name in SHAPES.get(self.name, {}).keys() & self.config.keys():
            checked(name, self.config[name], SHAPES[self.name][name], self.name)
        there = Path(self.name).is_absolute() if (info.context or {}).get("elsewhere") else Path(self.name).is_dir()
        if is_registered(self.name):
            Reference.parse(self.name, "model.name")
        elif self.name not in SHAPES and not there:
            near = difflib.get_close_matches(self.name, ["llama", *SHAPES], n=1, cutoff=0.5)
            hint = f"did you mean {near[0]!r}? Known are" if near and "/" not in self.name else "known are"
            raise ConfigError(
                f"model.name is {self.name!r}, which is no known shape and no folder on this node: {hint} llama, "
                f"{', '.join(SHAPES)}."
            )
        return self

    @model_validator(mode="after")
    def _has_a_length(self) -> ModelConfig:
        """That of the shape where none is given, which stays as one that was not given."""
        length = own_length(self.name, self.config)
        if length is not None and not self.gives("sequence_length"):
            object.__setattr__(self, "sequence_length", length)
        return self

    @property
    def length_words(self) -> str:
        """The length of samples and whence it is, for readers."""
        said = f"samples of {self.sequence_length:,} tokens"
        if self.gives("sequence_length"):
            return said
        whose = "the default" if own_length(self.name, self.config) is None else f"that of {self.name}"
        return f"{said} ({whose}; model.sequence_length sets it)"

    def _llama_fits(self) -> ModelConfig:
        if self.config:
            raise ConfigError("model.config changes a published shape or a folder: with the name llama, set the sizes.")
        if self.hidden_size % (2 * self.heads):
            raise ValueError(f"hidden_size is {self.hidden_size}, which is no multiple of 2 x heads = {2 * self.heads}")
        if self.heads % self.kv_heads:
            raise ValueError(f"kv_heads is {self.kv_heads}, which does not divide heads = {self.heads}")
        return self
