"""`train.micro_batch_size=auto`: resolved once, before the job's model is made."""

from __future__ import annotations

from dataclasses import asdict, astuple, replace
from typing import TYPE_CHECKING, Any

from gaudi3_scale.batch import cache, room
from gaudi3_scale.batch.oracle import Oracle, UnpredictableError
from gaudi3_scale.batch.scaling import Step, keep_samples, scaled_rate
from gaudi3_scale.batch.search import SHRINK, FoundBatch, probe, search
from gaudi3_scale.errors import ConfigError
from gaudi3_scale.planning.peak import MOST_SAMPLES, largest
from gaudi3_scale.run import JobPlan, Run

if TYPE_CHECKING:
    import lightning.pytorch as pl
    from torch import Tensor

    from gaudi3_scale.batch.search import BatchTrial
    from gaudi3_scale.config import Config

TRAIN = (
    *("precision", "mode", "compile_backend", "strategy", "replicas", "reshard_after_forward"),
    *("reduce_each_micro_batch", "gradient_clip", "target_utilization"),
)
"""Of the settings of `train` those on which a step's memory, or how much it may take, depends."""
GRAIN = 64
"""Memory that others have taken counts in parts of the whole this small."""


def resolve(run: Run, plan: JobPlan) -> JobPlan:
    """Replace `auto` by what was found, or what the checkpoint was made with. Collective."""
    train = plan.asked.train
    if not train.finds_batch:
        return plan
    if plan.checkpoint is not None:
        return _as_before(run, plan, plan.checkpoint.manifest.about)
    found = _find(run)
    step = _step(run.plan.asked, found.batch, run.world_size)
    reference = train.reference_batch_size or step.samples
    rate = scaled_rate(train.learning_rate, step.samples, reference, train.batch_scaling)
    run.progress.samples_per_step = step.samples
    run.progress.batch = {
        "micro_batch_size": step.micro_batch,
        "accumulation_steps": step.accumulation,
        "samples_per_step": step.samples,
        "learning_rate": rate,
        "largest": found.batch,
        "how": found.how,
        "predicted_bytes": found.predicted,
        "measured_bytes": found.measured,
        "limit_bytes": found.limit,
        "trials": [asdict(each) for each in found.trials],
    }
    run.console.log(_sentence(run.plan.asked, found, step))
    if train.batch_scaling != "none":
        run.console.log(
            f"learning rate {rate:.4g} instead of {train.learning_rate:.4g}: {train.batch_scaling} in the samples per "
            f"step, {step.samples} instead of {reference}"
        )
    return replace(plan, micro_batch=step.micro_batch, accumulation=step.accumulation, learning_rate=rate)


def _sentence(config: Config, found: FoundBatch, step: Step) -> str:
    words = f"micro-batch of {step.micro_batch} (train.micro_batch_size=auto, {found.how}"
    if found.limit is not None and found.measured is not None:
        words += f": a step of {found.batch} takes {_mib(found.measured)} of {_mib(found.limit)}"
    if step.micro_batch != found.batch:
        words += f"; {found.batch} would fit, and {step.micro_batch} divides the samples of a step"
    words += f"), {step.accumulation} of them per process and step, {step.samples} samples per step"
    if config.train.global_batch_size is not None:
        words += ", as train.global_batch_size says"
    return words


def _mib(size: int) -> str:
    return f"{size / 2**20:,.1f} MiB"


def _step(config: Config, micro: int, world_size: int) -> Step:
    if config.train.global_batch_size is not None:
        return keep_samples(micro, config.train.global_batch_size, world_size)
    passes = config.train.accumulation_steps
    return Step(micro, passes, micro * passes * world_size)


def _as_before(run: Run, plan: JobPlan, about: Any) -> JobPlan:
    """A job goes on with the batch that it began with, whatever fits now."""
    train = plan.asked.train
    before = about.get("batch")
    if before is None:
        each = int(about["samples_per_step"]) // int(about["world_size"]) // train.accumulation_steps
        before = {"micro_batch_size": max(1, each), "accumulation_steps": train.accumulation_steps}
    micro, passes = int(before["micro_batch_size"]), int(before["accumulation_steps"])
    rate = about.get("hyperparameters", {}).get("learning_rate", train.learning_rate)
    scaled = rate if train.batch_scaling != "none" else train.learning_rate
    run.progress.samples_per_step = micro * passes * run.world_size
    how = "as in the checkpoint that the job goes on from"
    run.progress.batch = {
        "micro_batch_size": micro,
        "accumulation_steps": passes,
        "samples_per_step": int(about["samples_per_step"]),
        "learning_rate": scaled,
        "how": how,
    }
    run.console.log(f"micro-batch of {micro} (train.micro_batch_size=auto, {how})")
    return replace(plan, micro_batch=micro, accumulation=passes, learning_rate=scaled)


def _find(run: Run) -> FoundBatch:
    config, device, process_group = run.plan.asked, run.device, run.process_group
    train = config.train
    if config.memory.activation_checkpointing == "budget":
        raise ConfigError(
            "train.micro_batch_size is auto and memory.activation_checkpointing is budget, and each is chosen by the "
            "other: give one of them."
        )
    most = train.max_micro_batch_size or MOST_SAMPLES
    if train.global_batch_size is not None:
        keep_samples(1, train.global_batch_size, run.world_size)
        most = min(most, train.global_batch_size // run.world_size)
    if device.type == "cpu":
        if train.max_micro_batch_size is None:
            raise ConfigError(
                "train.micro_batch_size is auto, and device cpu has no memory of its own to fill: give a number, or "
                "set train.max_micro_batch_size."
            )
        return FoundBatch(most, "the bound, as the memory of a cpu is not only this job's")
    has = room.least(process_group.gather(astuple(room.of(device, process_group.topology.local_world_size))))
    limit = int(has.free * train.target_utilization)
    digest = cache.key(_facts(run, most, has.free))
    reads = run.rank == 0 and not has.by_host  # what a host has left is another amount each time
    known = process_group.gather(cache.read(config.output_dir, digest) if reads else None)[0]
    if known is not None:
        return known
    found = has.explain(lambda: _search(run, limit, most, train.target_utilization))
    if process_group.writer and not has.by_host:
        run.outage.attempt(config.output_dir / cache.FILE, lambda: cache.write(config.output_dir, digest, found))
    return found


def _facts(run: Run, most: int, free: int) -> dict[str, Any]:
    config, whole = run.plan.asked, run.device.memory_limit() or 0
    train = config.train.model_dump(mode="json")
    data = config.data
    return {
        "model": config.model.model_dump(mode="json"),
        "memory": config.memory.model_dump(mode="json"),
        "train": {name: train[name] for name in TRAIN},
        "passes": _passes(config),
        "data": [data.documents, data.content, [each.content for each in data.mixture]],
        "world_size": run.world_size,
        "device": run.device.type,
        "hardware_name": run.progress.hardware_name,
        "device_memory": whole,
        "free": free * GRAIN // whole if whole else 0,
        "most": most,
    }


def _passes(config: Config) -> int:
    """Forward passes of a step as far as memory depends on them; where they are not known yet, those that take more."""
    return 2 if config.train.global_batch_size is not None else min(2, config.train.accumulation_steps)


def _search(run: Run, limit: int, most: int, share: float) -> FoundBatch:
    from gaudi3_scale.batch.rehearsal import can_agree

    train = run.plan.asked.train.model_copy(update={"accumulation_steps": _passes(run.plan.asked)})
    config = run.plan.asked.model_copy(update={"train": train})
    known: dict[int, int] = {}
    with Oracle(config, run.world_size, run.device.type) as oracle:

        def peak(batch: int) -> int:
            if batch not in known:
                mine = run.process_group.must_all(lambda: oracle.peak(batch) if run.rank == 0 else 0)
                known[batch] = mine[0]
            return known[batch]

        def trial(batch: int) -> BatchTrial:
            return _trial(run, config, batch)

        tries = run.world_size == 1 or train.strategy != "habana_fsdp" or can_agree()
        with run.watchdog.watch():
            try:
                if tries:
                    return search(peak, trial, limit, most, share)
                batch = largest(peak, int(SHRINK * limit), most)
                return FoundBatch(
                    max(1, batch), "predicted, and not tried, as torch before 2.9 cannot", None, None, limit
                )
            except UnpredictableError as error:
                run.console.log(f"the memory of a step cannot be predicted ({error}): trying a few batches")
            return probe(trial, limit, most)


def _trial(run: Run, config: Config, batch: int) -> BatchTrial:
    from gaudi3_scale.batch.rehearsal import STEPS, rehearse
    from gaudi3_scale.integration.quiet import quiet
    from gaudi3_scale.job.trainer import build_trainer
    from gaudi3_scale.step.module import LanguageModule

    run.watchdog.beat()
    updated = {"micro_batch_size": batch, "max_steps": STEPS, "on_non_finite": "stop"}
    scout = config.model_copy(update={"train": config.train.model_copy(update=updated)})

    def build(callbacks: list[pl.Callback]) -> tuple[pl.Trainer, pl.LightningModule]:
        quiet()
        return build_trainer(run, JobPlan.of(scout), callbacks), LanguageModule(scout, run.device, weights=False)

    run.console.log(f"trying a micro-batch of {batch}")
    return rehearse(build, lambda size: _samples(config, size), batch, run.device, run.process_group.gather)


def _samples(config: Config, size: int) -> Tensor:
    """Of the shape of the job's data, as any tokens."""
    import torch

    from gaudi3_scale.models.build import architecture
    from gaudi3_scale.models.objectives import batch_shape

    shape = batch_shape(config, size)
    generator = torch.Generator().manual_seed(0)
    tokens = torch.randint(int(architecture(config.model).vocab_size), shape, generator=generator)
    if len(shape) == 3 and shape[1] == 3:
        tokens[:, 2] = torch.arange(shape[2])  # positions in a document
    return tokens
