"""How it is learnt."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from gaudi3_scale.config.section import Section


class TrainConfig(Section):
    """How to learn."""

    max_steps: int = Field(200, ge=1, description="optimizer steps of the whole job")
    micro_batch_size: int = Field(8, ge=1, description="samples per process and forward pass")
    accumulation_steps: int = Field(1, ge=1, description="forward passes per optimizer step")
    learning_rate: float = Field(3e-3, gt=0, description="peak of the schedule")
    schedule: Literal["cosine", "linear", "constant", "wsd"] = Field(
        "cosine", description="of the learning rate after its rise; wsd = stable, then a linear fall at the end"
    )
    warmup_steps: int = Field(20, ge=0, description="steps of linear rise before the schedule")
    final_learning_rate: float = Field(0.1, ge=0, le=1, description="at max_steps, as a share of the peak")
    decay_fraction: float = Field(0.2, gt=0, le=1, description="share of all steps in which wsd falls")
    betas: tuple[float, float] = Field((0.9, 0.95), description="of AdamW")
    epsilon: float = Field(1e-8, gt=0, description="of AdamW")
    weight_decay: float = Field(0.1, ge=0, description="on matrices only")
    gradient_clip: float = Field(1.0, ge=0, description="bound on the gradient's norm; 0 = none")
    on_non_finite: Literal["stop", "skip"] = Field(
        "stop",
        description="at a loss or gradient norm that is NaN or infinite: stop = end the job and save nothing of it; "
        "skip = leave out that step, for one read of the device per step",
    )
    max_skipped_steps: int = Field(10, ge=1, description="steps in a row that skip leaves out before the job stops")
    evaluate_every: int = Field(
        0, ge=0, description="steps between losses on held-out samples (evaluation.jsonl); 0 = only when training ends"
    )
    seed: int = Field(1234, ge=0, lt=2**32, description="weights, sample order and random state follow from it")
    precision: Literal["32-true", "bf16-mixed"] = Field(
        "32-true", description="32-true, or bf16-mixed = bfloat16 autocast over float32 weights"
    )
    mode: Literal["auto", "eager", "lazy", "compile"] = Field(
        "auto",
        description="eager = operation by operation; compile = torch.compile of each transformer block; lazy = HPU's "
        "older graphs, there alone; auto = compile on an HPU, else eager",
    )
    compile_backend: str | None = Field(
        None,
        min_length=1,
        description="backend of torch.compile in mode compile; null = hpu_backend on an HPU, else inductor",
    )
    strategy: Literal["auto", "habana_ddp", "habana_fsdp"] = Field(
        "auto",
        description="habana_ddp = a whole model in every process; habana_fsdp = split over all; auto = habana_ddp",
    )
    replicas: int = Field(
        1,
        ge=1,
        description="copies of a model that habana_fsdp splits: each is split over world size / replicas processes of "
        "consecutive rank, and only the gradients' shards are exchanged between copies (HSDP)",
    )
    reshard_after_forward: bool = Field(
        True,
        description="habana_fsdp: free a block's gathered weights between forward and backward; false gathers once "
        "per micro-batch instead of twice, for the memory of the whole model's weights",
    )
    reduce_each_micro_batch: bool = Field(
        True,
        description="habana_fsdp: reduce gradients after every micro-batch; false reduces once per optimizer step, for "
        "the memory of the whole model's gradients",
    )
    log_every: int = Field(10, ge=1, description="steps between lines, status and metrics; loss is their mean")
    threads: int = Field(0, ge=0, description="CPU threads per process; 0 = the node's cores / its processes")
    acquire_timeout: int = Field(
        60, ge=0, description="seconds for which a Gaudi card that cannot be had is asked for again, as it may reset"
    )
    start_timeout: int = Field(
        600,
        ge=5,
        description="seconds after which a process gives up on one that does not answer until its first step is made, "
        "which compiles; never less than collective_timeout",
    )
    collective_timeout: int = Field(
        120, ge=5, description="the same after the first step; longer than a forward and backward pass takes"
    )

    @field_validator("precision", mode="before")
    @classmethod
    def _of_the_job(cls, precision: Any) -> Any:
        if precision == "bf16-true":
            raise ValueError(
                "it is bf16-true (weights and optimizer in bfloat16), which only GaudiTrainer(precision='bf16-true') "
                "of a script of your own takes: give 32-true or bf16-mixed, or run such a script"
            )
        return precision

    @model_validator(mode="after")
    def _lazy_does_not_shard(self) -> TrainConfig:
        """docs.habana.ai, "Using DistributedTensor with Intel Gaudi": eager mode and torch.compile only."""
        if self.mode == "lazy" and self.strategy == "habana_fsdp":
            raise ValueError("mode is lazy, in which nothing can be sharded, and strategy is habana_fsdp")
        return self

    @model_validator(mode="after")
    def _only_fsdp_shards(self) -> TrainConfig:
        """These have an effect on sharded models only, and none is ignored."""
        changed = [
            name
            for name in ("replicas", "reshard_after_forward", "reduce_each_micro_batch")
            if getattr(self, name) != type(self).model_fields[name].default
        ]
        if changed and self.strategy != "habana_fsdp":
            raise ValueError(f"{changed[0]} is for strategy habana_fsdp, and strategy is {self.strategy}")
        return self

    @model_validator(mode="after")
    def _compiles_with_a_backend(self) -> TrainConfig:
        if self.compile_backend is not None and self.mode != "compile":
            raise ValueError(f"compile_backend is for mode compile, and mode is {self.mode}")
        return self

    @model_validator(mode="after")
    def _reaches_the_peak(self) -> TrainConfig:
        if "warmup_steps" in self.model_fields_set and self.warmup_steps > self.max_steps:
            raise ValueError(
                f"warmup_steps is {self.warmup_steps} and max_steps is {self.max_steps}, so that the peak of the "
                "learning rate would never be reached"
            )
        return self

    def is_log_step(self, step: int) -> bool:
        """Is the loss read after this optimizer step?"""
        return step == 1 or step % self.log_every == 0 or step == self.max_steps

    @property
    def first_timeout(self) -> int:
        """What holds until the first step is made."""
        return max(self.start_timeout, self.collective_timeout)
