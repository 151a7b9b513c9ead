"""How the copies of a model share their gradients, under strategy optimized_ddp."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, field_validator

from gaudi3_scale.config.section import Section

SHARDS = (
    "shards are not moved from a slow process to others: under DDP every process has the whole model and none can be "
    "moved, and under FSDP a process's work is its samples and not its shards, so that moving those would not make it "
    "faster; give a list of micro-batches per rank instead, or replace the slow node by a spare"
)


class DdpConfig(Section):
    """Gradients, under train.strategy optimized_ddp."""

    bucket_cap_mb: float | Literal["auto"] = Field(
        "auto", description="MiB of gradients reduced together; auto = measured before training, kept in ddp.json"
    )
    compression: Literal["none", "int8", "powersgd"] = Field(
        "none",
        description="of gradients, with error feedback: int8 = 8-bit integers, a scale per 256; powersgd = factors of "
        "low rank. A resumed job begins with an empty feedback, so it is not repeated to the bit",
    )
    compress: Literal["auto", "always"] = Field(
        "auto", description="auto = compression is timed in the first steps and switched off if it is not faster"
    )
    powersgd_rank: int = Field(4, ge=1, description="rank of powersgd's factors")
    balance: Literal["none"] | list[int] = Field(
        "none",
        description="micro-batches per optimizer step of each process by rank, such as [5, 3] for 2 processes with "
        "accumulation_steps 4; none = as many for each",
    )

    @field_validator("bucket_cap_mb", mode="before")
    @classmethod
    def _is_a_size(cls, size: Any) -> Any:
        if size != "auto" and (type(size) not in (int, float) or not 0 < size < float("inf")):
            raise ValueError(f"it is {size!r}, which is no size of a bucket: give MiB above 0, or auto")
        return size

    @field_validator("balance", mode="before")
    @classmethod
    def _is_shared_out(cls, balance: Any) -> Any:
        if balance == "shards":
            raise ValueError(SHARDS)
        if balance != "none" and (
            not isinstance(balance, list) or not balance or any(type(n) is not int or n < 1 for n in balance)
        ):
            raise ValueError(f"it is {balance!r}: give none, or at least one micro-batch per process, such as [5, 3]")
        return balance

    @property
    def changed(self) -> list[str]:
        """Settings that are not the defaults."""
        return [name for name, field in type(self).model_fields.items() if getattr(self, name) != field.default]
