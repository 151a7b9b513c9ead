"""`gaudi3-train fit`: from a configuration to a trained model, through any number of kills."""

from __future__ import annotations

import math
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import torch

from gaudi3_scale.batch.schedule import BatchSchedule, check_stages, learning_rate_of, schedule_text
from gaudi3_scale.checkpoint.identity import key_of
from gaudi3_scale.checkpoint.manifest import DamagedCheckpointError
from gaudi3_scale.checkpoint.session import CheckpointSession
from gaudi3_scale.config import Config
from gaudi3_scale.config.auto_precision import AUTO, precision_text, with_precision
from gaudi3_scale.console import Console
from gaudi3_scale.cost import bill
from gaudi3_scale.cost.budget import require as require_budget
from gaudi3_scale.cost.running import Watch
from gaudi3_scale.distributed.process_group import ProcessGroup, Topology
from gaudi3_scale.distributed.replicas import check_replicas
from gaudi3_scale.distributed.watchdog import Watchdog
from gaudi3_scale.errors import ConfigError, TrainerError
from gaudi3_scale.files import Outage
from gaudi3_scale.finite import NotFiniteError
from gaudi3_scale.hangs import ring
from gaudi3_scale.hangs.start import begin, end_of, is_lost_contact
from gaudi3_scale.hpu import device as devices
from gaudi3_scale.hpu.selfcheck import check_numbers_once
from gaudi3_scale.integration.quiet import quiet
from gaudi3_scale.interruption import Interrupted, Notices
from gaudi3_scale.interruption.leaving import Interruption
from gaudi3_scale.job.data import open_samples
from gaudi3_scale.job.failures import explain, leave_hung
from gaudi3_scale.job.plan import plan_job
from gaudi3_scale.job.registered import fetch_registered
from gaudi3_scale.job.shared_data import prepare_same
from gaudi3_scale.job.traced import traced
from gaudi3_scale.job.trainer import build_trainer
from gaudi3_scale.next_command import next_command
from gaudi3_scale.run import JobPlan, Run
from gaudi3_scale.status import FILE, Progress, StatusFile
from gaudi3_scale.throughput.ledger import Ledger, process_age, use
from gaudi3_scale.traces.spans import current

if TYPE_CHECKING:
    import lightning.pytorch as pl


def fit(config: Config, notices: Notices | None = None) -> None:
    """Train to `max_steps`, resuming from the newest checkpoint; do nothing if that has been done.

    `notices` listens already; without it, it does so from here on. Raises `Interrupted` if one came.
    """
    topology = Topology.from_environment()
    with traced(topology):
        _fit(config, notices, topology)


def _fit(config: Config, notices: Notices | None, topology: Topology) -> None:
    """The job, from its first look at the configuration to its end."""
    check_replicas(config.train.replicas, topology.world_size, name="train.replicas")
    check_stages(config.train, topology.world_size)
    leader = topology.local_rank == 0
    listening = notices
    if listening is None:
        listening = Notices(config.interruption, leader)
        listening.start()
    console = Console(speaks=leader, bar=topology.rank == 0)
    try:
        config.output_dir.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(
            f"output_dir {config.output_dir} cannot be created ({error.strerror}): "
            "give a directory this user may write."
        ) from None
    outage = Outage(console.log)
    status = StatusFile(config.output_dir / FILE, outage)
    progress = _progress(config, topology)
    if leader and not status.finished(config.train.max_steps):
        status.write("starting", progress)
    ledger = use(Ledger(age=process_age(), outage=outage))
    process_group: ProcessGroup | None = None
    interruption: Interruption | None = None
    try:
        with current().span("device"):
            device = devices.resolve(
                config.device, topology.local_rank, topology.local_world_size, config.train.acquire_timeout
            )
        progress.runs_on(**devices.identity(device.torch_device()))
        wanted, config = config.train.precision, with_precision(config, device.type)
        progress.precision = config.train.precision
        progress.precision_words = precision_text(wanted, progress.precision, device.type)
        torch.set_num_threads(devices.threads(config.train.threads, topology.local_world_size))
        check_numbers_once(device)
        watchdog = Watchdog(
            config.train.first_timeout,
            config.train.collective_timeout,
            lambda seconds: leave_hung(seconds, topology, progress, status if leader else None),
            enabled=topology.world_size > 1 and not device.heeds_timeouts,
        )
        with watchdog.watch(), current().span("process group"):
            process_group = ProcessGroup(topology, device, config.train.first_timeout)
        begin(topology.rank, topology.world_size, topology.local_world_size, config.output_dir)
        process_group.elect_writers(config.output_dir)
        interruption = Interruption.of_job(listening, process_group, progress, status)
        named = wanted != AUTO
        train(
            Run(config, device, process_group, progress, console, status, interruption, ledger, outage, watchdog, named)
        )
        with watchdog.watch():
            process_group.close()
        ring.announce(ring.LEFT)
    except Interrupted:
        ring.announce(ring.LEFT)
        raise
    except Exception as error:  # of whatever it is, status.json says it in one sentence
        ring.announce(end_of(error))
        failure = explain(error, topology, progress, config)
        if interruption is not None and interruption.leaving and is_lost_contact(error):
            # Another process was quicker to leave: all had agreed to.
            raise Interrupted(str(failure)) from error
        if leader if process_group is None else process_group.writer:
            status.write("failed", progress, str(failure))
        ring.ending(end_of(error))
        raise failure from (None if isinstance(failure, TrainerError) else error)
    finally:
        # Whoever listened before goes on: the launcher's SIGTERM comes to those who leave a moment later than another.
        if notices is None:
            listening.stop()


def train(run: Run, *more: pl.Callback) -> None:
    """Agree on a checkpoint, prepare the data, make the steps, evaluate. `more` callbacks come after the job's own."""
    from gaudi3_scale.callbacks.batch_callback import enter_stage
    from gaudi3_scale.checkpoint.fetch import load
    from gaudi3_scale.distributed.randomness import seed_all
    from gaudi3_scale.job.contents import describe, go_on
    from gaudi3_scale.job.reference import say_pairs, set_reference
    from gaudi3_scale.job.step_order import callbacks_of, check_order
    from gaudi3_scale.models.build import weights_of
    from gaudi3_scale.step.module import LanguageModule

    progress, process_group, log = run.progress, run.process_group, run.console.log
    settings, folder = run.config.checkpoint, run.config.output_dir
    run.checkpoints = CheckpointSession(folder, folder / "checkpoints", settings, run.config.train.first_timeout, log)
    with current().span("look for checkpoints"):
        checkpoint = run.checkpoints.find(key_of(run.config), run.lines.path)
    if checkpoint is not None and _is_finished(run, checkpoint.step):
        log(f"already finished at step {checkpoint.step}: nothing to do")
        return
    run.plan = JobPlan.of(fetch_registered(run, checkpoint), checkpoint)
    run.plan = plan_job(run)
    config, device = run.plan.config, run.device

    with current().span("data"):
        corpus = prepare_same(run)
        samples = open_samples(config, corpus)
    about = describe(run, corpus)
    state = go_on(run, checkpoint, about) if checkpoint is not None else None
    if process_group.writer:
        run.lines.truncate(progress.step)
    baseline = samples.baseline() if run.rank == 0 else 0.0
    progress.baseline_loss = process_group.gather(baseline)[0]
    progress.weights = weights_of(config.model)
    log(
        f"{run.world_size} process(es) on {progress.device_label}, {progress.precision_words}, "
        f"{config.model.length_words}, {_beginning(run)}"
        f"{corpus.size:,} {corpus.unit}s of {corpus.source}, "
        f"{progress.baseline_words}"
    )
    say_pairs(run, samples)
    run.ledger.about = _terms(run, state)
    run.watch = Watch(run.ledger, folder if process_group.writer else None, progress.step)
    process_group.must_all(lambda: require_budget(config.cost, run.watch.spent_before()))
    _serve_metrics(run)

    run.batches = BatchSchedule.of(config, run.world_size, progress.step, progress.samples)
    if config.train.batch_warmup:
        log(schedule_text(config.train))
    seed_all(config.train.seed)
    rate = learning_rate_of(config.train, config.tokens_per_sample, run.batches)
    with current().span("model"):
        module = LanguageModule(config, device, checkpoint is None, rate)
    set_reference(run, module, samples, state)
    for option, effect in module.memory.items():
        log(f"{option}: {effect}")
    if progress.step < config.train.max_steps:
        enter_stage(run)
        _measure(run, module)
        callbacks = callbacks_of(run, samples, about, state)
        check_order(callbacks)
        quiet()
        current().begin("set up")  # until the training starts, a checkpoint is read
        with run.watchdog.watch():
            build_trainer(run, run.plan, [*callbacks, *more]).fit(module, train_dataloaders=_loader(run, samples))
    elif checkpoint is not None and state is not None:
        module.materialise(device.torch_device())
        load(checkpoint, run.checkpoints.peers.patient, module.model, [], state)

    try:
        with current().span("last evaluation"):
            _evaluate(run, module, samples)
    except BaseException as error:
        if run.trackers is not None:
            run.trackers.give_up(error)
        raise
    if run.trackers is not None:
        run.trackers.finish()
    run.outage.retry()
    run.ledger.finished(progress.step)
    progress.peak_memory_bytes = run.device.peak_memory()
    progress.goodput = run.watch.goodput().status()
    progress.cost = bill.status_of(run.watch.spent(), config.cost, progress.tokens)
    if process_group.writer:
        run.status.write("finished", progress)
    run.console.summary(progress, next_command(sys.argv, _nodes_of_checkpoint(run)), folder)


def _evaluate(run: Run, module: Any, samples: Any) -> None:
    """The last evaluation: of the state that training ended with."""
    from gaudi3_scale.step.validation import evaluate

    config, progress = run.plan.config, run.progress

    def before_batch() -> None:
        run.watchdog.beat()
        run.interruption.check("the last evaluation", progress.step)

    with run.watchdog.watch():
        evaluate(run, module, samples, before_batch)
    _require_finite_losses(progress)
    if run.process_group.writer and config.train.evaluate_every:
        run.evaluations.truncate(progress.step - 1)  # a job that is started again when it is done evaluates again
    run.report_evaluation(keep=config.train.evaluate_every > 0)


def _loader(run: Run, samples: Any) -> Any:
    """This rank's micro-batches from the next step on, read ahead."""
    from gaudi3_scale.callbacks.batch_callback import StageBatches

    return run.ledger.waits(StageBatches(run, samples))


def _progress(config: Config, topology: Topology) -> Progress:
    return Progress(
        max_steps=config.train.max_steps,
        world_size=topology.world_size,
        device=config.device,
        tokens_per_sample=config.tokens_per_sample,
        samples_per_step=config.train.first_batch(topology.world_size),
    )


def _is_finished(run: Run, step: int) -> bool:
    """Has every node seen the job end? Collective."""
    last = run.config.train.max_steps
    return step >= last and all(run.process_group.gather(not run.process_group.writer or run.status.finished(last)))


def _terms(run: Run, state: dict[str, Any] | None) -> dict[str, Any]:
    """What the ledger's lines say of the price; a job goes on with the bill of its checkpoint."""
    before = state["ranks"][0].get(bill.KEY) if state is not None else None
    job = run.checkpoints.job
    return bill.terms(
        run.config.cost, run.process_group.topology.nodes, before, job=job.id if job is not None else None
    )


def _beginning(run: Run) -> str:
    """What a reader has to know of where the weights come from; nothing in the usual cases."""
    from gaudi3_scale.models.build import is_folder

    meant = run.progress.weights == "random" and is_folder(run.config.model) and not run.progress.step
    return f"random weights in the shape of {run.config.model.name}, " if meant else ""


def _serve_metrics(run: Run) -> None:
    from gaudi3_scale.metrics import TrainingMetrics
    from gaudi3_scale.throughput.meter import Reading

    if run.process_group.leader and run.config.metrics.enabled:
        run.metrics = TrainingMetrics(run.progress, run.process_group.topology.local_world_size)
        # A counter that appears with its first increase loses it, and one that begins anew at 0 counts twice.
        run.metrics.measured(Reading(), run.watch.goodput())
        run.console.log(f"metrics at {run.metrics.serve(run.config.metrics)}")


def _measure(run: Run, module: Any) -> None:
    """Have the speed compared with the device's peak, where that is known."""
    from gaudi3_scale.throughput.meter import meter_for

    device, config = run.device.torch_device(), run.config
    length = config.model.sequence_length
    run.watch.meter, why = meter_for(module.model, device, config.train.precision, length, run.world_size)
    if why is not None and run.device.type != "cpu":
        run.console.log(f"no MFU: {why}")


def _nodes_of_checkpoint(run: Run) -> int:
    """How many nodes are needed to read the last checkpoint: 1, where this one has all of it or the target does."""
    step = run.progress.checkpoint_step
    if step is None or run.config.checkpoint.target is not None:
        return 1
    with suppress(DamagedCheckpointError, TrainerError):  # said when it is read
        manifest = run.checkpoints.store.read(step)
        return run.process_group.topology.nodes if set(manifest.files) - set(manifest.here) else 1
    return 1


def _require_finite_losses(progress: Progress) -> None:
    """A job is not finished whose model gives no number."""
    for name, loss in (("training", progress.loss), ("held-out", progress.validation_loss)):
        if loss is not None and not math.isfinite(loss):
            raise NotFiniteError(
                f"The {name} loss is not finite after step {progress.step}, the last one: start again with another "
                "output_dir, with a lower train.learning_rate, a longer train.warmup_steps or a tighter "
                "train.gradient_clip."
            )
