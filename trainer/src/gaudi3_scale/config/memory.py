"""How memory is spent."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from gaudi3_scale.config.section import Section


class MemoryConfig(Section):
    """What is kept, what is computed again, and by which kernels."""

    attention: Literal["auto", "sdpa", "eager", "flash"] = Field(
        "auto", description="flash = the device's fused kernel, auto = that where it has one of its own, else sdpa"
    )
    fused_rope: bool = Field(False, description="rotary embedding by the device's own kernel, where it has one")
    loss_chunks: int = Field(
        0,
        ge=0,
        description="parts in which output layer and loss are computed, each again in backward; 1 = all at once, "
        "0 = as many as keep the float32 logits of a part below 256 MiB",
    )
    activation_checkpointing: Literal["none", "selective", "full", "budget"] = Field(
        "none",
        description="full = recompute all blocks in backward; selective = all but their matrix products; "
        "budget = as few as fit budget_gib",
    )
    budget_gib: float | None = Field(
        None, gt=0, description="GiB a process's step may use; null = all that its device has"
    )
    margin: float = Field(0.05, ge=0, lt=1, description="share of the budget left for what is not predicted")
    selective: bool = Field(True, description="whether budget may keep matrix products, at a dispatch per operation")

    @model_validator(mode="after")
    def _means_something(self) -> MemoryConfig:
        if self.budget_gib is not None and self.activation_checkpointing != "budget":
            raise ValueError(
                f"budget_gib is {self.budget_gib:g}, which nothing uses while activation_checkpointing is "
                f"{self.activation_checkpointing}"
            )
        return self
