"""The GaudiTrainer of a job, as it is configured."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from datetime import timedelta
from typing import Any

import lightning.pytorch as pl
from lightning.fabric.plugins.environments import TorchElasticEnvironment
from lightning.pytorch.profilers import PassThroughProfiler

from gaudi3_scale.integration import strategies
from gaudi3_scale.integration.accelerator import GaudiAccelerator
from gaudi3_scale.integration.trainer import GaudiTrainer
from gaudi3_scale.job.optimized_ddp import optimized_ddp
from gaudi3_scale.precision import build_precision
from gaudi3_scale.run import JobPlan, Run


class SilentProfiler(PassThroughProfiler):
    """Measures nothing, without a generator for each of the hundred hooks of a step."""

    _nothing: AbstractContextManager[None] = nullcontext()

    def profile(self, action_name: str) -> AbstractContextManager[None]:
        return self._nothing


STEP_HOOKS = (
    "on_train_batch_start",
    "on_before_zero_grad",
    "on_before_backward",
    "on_after_backward",
    "on_before_optimizer_step",
    "on_train_batch_end",
)
"""Those of a callback that Lightning calls in each step."""


def leave_out_empty_hooks(callbacks: list[pl.Callback]) -> None:
    """Have the hooks of a step that a callback does not implement not called: with all callbacks, some seventy.

    Lightning calls what is callable, and enters and leaves the profiler each time.
    """
    for callback in callbacks:
        for hook in STEP_HOOKS:
            if getattr(type(callback), hook) is getattr(pl.Callback, hook):
                setattr(callback, hook, None)


def build_trainer(run: Run, plan: JobPlan, callbacks: list[pl.Callback]) -> pl.Trainer:
    """A trainer that makes the steps that are left and nothing besides: what else happens is in the callbacks."""
    settings, topology = plan.config.train, run.process_group.topology
    leave_out_empty_hooks(callbacks)
    strategy = _strategy(run, plan)
    strategy.plain_batches = True
    return GaudiTrainer(
        accelerator=GaudiAccelerator(run.device.type),
        strategy=strategy,
        devices=topology.local_world_size,
        num_nodes=topology.nodes,
        plugins=[
            build_precision(settings.precision, run.device),
            *([TorchElasticEnvironment()] if topology.world_size > 1 else []),
        ],
        steps_before=run.progress.step,
        profiler=SilentProfiler(),
        callbacks=callbacks,
        max_epochs=-1,
        max_steps=settings.max_steps - run.progress.step,
        accumulate_grad_batches=plan.accumulation,
        gradient_clip_val=settings.gradient_clip or None,
        default_root_dir=run.config.output_dir,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        limit_val_batches=0,
        num_sanity_val_steps=0,
        use_distributed_sampler=False,
    )


def _strategy(run: Run, plan: JobPlan) -> Any:
    if run.world_size == 1:
        return strategies.GaudiSingleStrategy()
    group: dict[str, Any] = {
        "process_group_backend": run.device.backend,
        "timeout": timedelta(seconds=run.config.train.collective_timeout),
    }
    if run.config.train.strategy == "habana_fsdp":
        settings = plan.asked.train
        return strategies.HabanaFSDPStrategy(
            **group,
            replicas=plan.replicas,
            reshard_after_forward=settings.reshard_after_forward,
            reduce_each_micro_batch=settings.reduce_each_micro_batch,
        )
    group |= {"broadcast_buffers": False, "gradient_as_bucket_view": True}  # buffers are constants
    if run.config.train.strategy == "optimized_ddp":
        return optimized_ddp(run, plan, **group)
    return strategies.HabanaDDPStrategy(**group)
