"""How it is learnt."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Annotated, Any, Literal

from pydantic import Field, PlainSerializer, WrapValidator, field_validator, model_validator

from gaudi3_scale.config.section import Section


class Auto(int):
    """A number that the job finds before its first step, written `auto`; it counts as 1 until then."""

    def __repr__(self) -> str:
        """As it is written."""
        return "auto"

    __str__ = __repr__


def _number(value: Any, number: Callable[[Any], int]) -> int:
    return Auto(1) if value == "auto" or isinstance(value, Auto) else number(value)


def _written(value: int) -> int | str:
    return "auto" if isinstance(value, Auto) else value


SizeOrAuto = Annotated[int, WrapValidator(_number), PlainSerializer(_written)]
"""A number or `auto`."""


class BatchStage(Section):
    """A stage of the batch-size warm-up."""

    from_tokens: int = Field(ge=0, description="tokens learnt from, at which it begins; 0 for the first one")
    samples_per_step: int = Field(ge=1, description="of all processes together, in each optimizer step")


class TrainConfig(Section):
    """How to learn."""

    FOLLOWS = frozenset({"max_steps", "warmup_steps"})

    max_steps: int = Field(
        200, ge=1, description="optimizer steps of the whole job; not given, a plan has those of its tokens"
    )
    micro_batch_size: SizeOrAuto = Field(
        8, ge=1, description="samples per process and forward pass; auto = the most that the device's memory holds"
    )
    accumulation_steps: int = Field(1, ge=1, description="forward passes per optimizer step")
    batch_warmup: tuple[BatchStage, ...] = Field(
        (),
        description="stages of rising batches, each with from_tokens and samples_per_step, from which "
        "accumulation_steps follows; `gaudi3-train batch-warmup` measures them; empty = the same batch throughout",
    )
    batch_learning_rate: Literal["square_root", "linear", "none"] = Field(
        "square_root",
        description="how the learning rate grows with the batch of batch_warmup over the first one, whose learning "
        "rate is learning_rate",
    )
    max_micro_batch_size: int | None = Field(
        None, ge=1, description="micro_batch_size auto: no more than this; needed on cpu, whose memory others use too"
    )
    target_utilization: float = Field(
        0.95, gt=0, le=1, description="micro_batch_size auto: share of the device's free memory that a step may take"
    )
    global_batch_size: int | None = Field(
        None,
        ge=1,
        description="micro_batch_size auto: samples per optimizer step, which accumulation_steps is set to keep; null "
        "= as many as come of micro_batch_size, accumulation_steps and the processes",
    )
    batch_scaling: Literal["none", "linear", "square_root"] = Field(
        "none",
        description="micro_batch_size auto: learning_rate times the ratio of the samples per step to "
        "reference_batch_size (linear), or times its square root (square_root)",
    )
    reference_batch_size: int | None = Field(
        None, ge=1, description="batch_scaling: samples per step for which learning_rate was chosen"
    )
    learning_rate: float = Field(3e-3, gt=0, description="peak of the schedule")
    schedule: Literal["cosine", "linear", "constant", "wsd"] = Field(
        "cosine", description="of the learning rate after its rise; wsd = stable, then a linear fall at the end"
    )
    warmup_steps: int = Field(
        20, ge=0, description="steps of linear rise before the schedule; given, no more than max_steps"
    )
    final_learning_rate: float = Field(0.1, ge=0, le=1, description="at max_steps, as a share of the peak")
    decay_fraction: float = Field(0.2, gt=0, le=1, description="share of all steps in which wsd falls")
    schedule_tokens: int | None = Field(
        None,
        ge=1,
        description="tokens at which the schedule of the learning rate ends, for a job that stops before; null = those "
        "of max_steps",
    )
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
    precision: Literal["auto", "32-true", "bf16-mixed"] = Field(
        "auto",
        description="32-true, or bf16-mixed = bfloat16 autocast over float32 weights; auto = bf16-mixed on an HPU or a "
        "CUDA device, 32-true on a CPU",
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
    strategy: Literal["auto", "habana_ddp", "habana_fsdp", "optimized_ddp"] = Field(
        "auto",
        description="habana_ddp = a whole model in every process; optimized_ddp = that, tuned to the link by `ddp`; "
        "habana_fsdp = split over all; auto = habana_ddp",
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
        60, ge=0, description="seconds for which a Gaudi card that is not available is tried again, as it may reset"
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
                "of a script of your own takes: give auto, 32-true or bf16-mixed, or run such a script"
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

    @property
    def finds_batch(self) -> bool:
        """Is micro_batch_size still to be found?"""
        return isinstance(self.micro_batch_size, Auto)

    @model_validator(mode="after")
    def _only_auto_scales(self) -> TrainConfig:
        """These have an effect where the batch is found, and none is ignored."""
        names = ("max_micro_batch_size", "target_utilization", "global_batch_size", "batch_scaling")
        changed = [name for name in names if getattr(self, name) != type(self).model_fields[name].default]
        if changed and not self.finds_batch:
            raise ValueError(f"{changed[0]} is for micro_batch_size auto, and that is {self.micro_batch_size}")
        if self.finds_batch and self.batch_warmup:
            raise ValueError(
                "micro_batch_size is auto and batch_warmup is given, whose stages are multiples of a number: give that "
                "number, which a job without batch_warmup finds"
            )
        if (self.batch_scaling == "none") != (self.reference_batch_size is None):
            raise ValueError(
                f"batch_scaling is {self.batch_scaling} and reference_batch_size "
                f"{'not given' if self.reference_batch_size is None else self.reference_batch_size}, and the one "
                "needs the other"
            )
        if self.global_batch_size is not None and self.accumulation_steps != 1:
            raise ValueError(
                f"global_batch_size is {self.global_batch_size}, from which accumulation_steps follows, and that is "
                f"set to {self.accumulation_steps}"
            )
        return self

    @model_validator(mode="after")
    def _grows(self) -> TrainConfig:
        stages = self.batch_warmup
        if not stages:
            return self
        if stages[0].from_tokens:
            raise ValueError(f"batch_warmup begins at from_tokens {stages[0].from_tokens}, not with a stage from 0")
        for before, after in pairwise(stages):
            for name in ("from_tokens", "samples_per_step"):
                one, other = getattr(before, name), getattr(after, name)
                if other <= one:
                    raise ValueError(f"{name} in batch_warmup goes from {one} to {other}, and it has to rise")
        if self.accumulation_steps != 1:
            raise ValueError(
                f"accumulation_steps is {self.accumulation_steps}, and follows from batch_warmup, which is given too"
            )
        return self

    def first_batch(self, world_size: int) -> int:
        """Samples that the first optimizer step of the job takes, of all processes."""
        if self.batch_warmup:
            return self.batch_warmup[0].samples_per_step
        return self.micro_batch_size * self.accumulation_steps * world_size

    @model_validator(mode="after")
    def _reaches_the_peak(self) -> TrainConfig:
        # Where the batch grows, the rise is counted in steps of the first one, of which there are more.
        if not self.batch_warmup and self.gives("warmup_steps") and self.warmup_steps > self.max_steps:
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
