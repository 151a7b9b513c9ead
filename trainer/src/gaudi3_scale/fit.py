"""`gaudi3-train fit`: from a configuration to a trained model, through any number of kills."""

from __future__ import annotations

import contextlib
import logging
import math
import warnings
from collections.abc import Callable
from typing import Any

import torch

from gaudi3_scale import device as devices
from gaudi3_scale.checkpoint import Checkpoint, CheckpointStore
from gaudi3_scale.checkpoint.job import key_of, remember, settle
from gaudi3_scale.checkpoint.peers import Peers
from gaudi3_scale.checkpoint.saver import Saver
from gaudi3_scale.checkpoint.signing import Signer
from gaudi3_scale.checkpoint.target import open_target
from gaudi3_scale.checkpoint.upload import Uploader
from gaudi3_scale.config import Config
from gaudi3_scale.console import Console
from gaudi3_scale.data import Corpus, RankBatches, Samples, identity
from gaudi3_scale.data.job import open_samples, prepare
from gaudi3_scale.data.prefetch import Prefetched
from gaudi3_scale.device import Device
from gaudi3_scale.distributed import Team, Topology, lower_timeout
from gaudi3_scale.elastic import batch, same_batch
from gaudi3_scale.errors import ConfigError, TrainerError
from gaudi3_scale.failures import explain, is_lost_contact, leave_hung
from gaudi3_scale.files import Outage
from gaudi3_scale.finite import NotFiniteError
from gaudi3_scale.interruption import Interrupted, Notices
from gaudi3_scale.interruption.job import Interruption
from gaudi3_scale.resume import agree
from gaudi3_scale.selfcheck import check_numbers_once
from gaudi3_scale.status import MetricsFile, Progress, StatusFile
from gaudi3_scale.throughput.ledger import Ledger, process_age, use
from gaudi3_scale.throughput.meter import meter_for
from gaudi3_scale.throughput.watch import Watch
from gaudi3_scale.watchdog import Watchdog

HYPERPARAMETERS = (
    "learning_rate",
    "schedule",
    "warmup_steps",
    "final_learning_rate",
    "decay_fraction",
    "betas",
    "epsilon",
    "weight_decay",
    "gradient_clip",
)
"""Settings of `train` that may change over a restart, which says so."""


def fit(config: Config, notices: Notices | None = None) -> None:
    """Train to `max_steps`, resuming from the newest checkpoint; do nothing if that has been done.

    `notices` listens already; without it, it does so from here on. Raises `Interrupted` if one came.
    """
    topology = Topology.from_environment()
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
    outage = Outage(console.say)
    status = StatusFile(config.output_dir / "status.json", outage)
    progress = Progress(
        max_steps=config.train.max_steps,
        world_size=topology.world_size,
        device=config.device,
        sequence_length=config.model.sequence_length,
        samples_per_step=config.train.micro_batch_size * config.train.accumulation_steps * topology.world_size,
    )
    if leader and not status.finished(config.train.max_steps):
        status.write("starting", progress)
    ledger = use(Ledger(age=process_age(), outage=outage))
    team: Team | None = None
    interruption: Interruption | None = None
    try:
        device = devices.resolve(
            config.device, topology.local_rank, topology.local_world_size, config.train.acquire_timeout
        )
        progress.runs_on(**devices.identity(device.torch_device()))
        torch.set_num_threads(devices.threads(config.train.threads, topology.local_world_size))
        check_numbers_once(device)
        watchdog = Watchdog(
            config.train.first_timeout,
            config.train.collective_timeout,
            lambda seconds: leave_hung(seconds, topology, progress, status if leader else None),
            enabled=topology.world_size > 1 and not device.heeds_timeouts,
        )
        with watchdog.watch():
            team = Team(topology, device, config.train.first_timeout)
        team.elect_writers(config.output_dir)
        interruption = Interruption(listening, team, progress, status)
        _Job(config, device, team, progress, console, status, interruption, ledger, outage, watchdog).run()
        with watchdog.watch():
            team.close()
    except Interrupted:
        raise
    except Exception as error:
        failure = explain(error, topology, progress, config)
        if interruption is not None and interruption.leaving and is_lost_contact(error):
            # Another process was quicker to leave: all had agreed to.
            raise Interrupted(str(failure)) from error
        if leader if team is None else team.writer:
            status.write("failed", progress, str(failure))
        raise failure from (None if isinstance(failure, TrainerError) else error)
    finally:
        # Whoever listened before goes on: the launcher's SIGTERM comes to those who leave a moment later than another.
        if notices is None:
            listening.stop()


class _Job:
    """One run of the job."""

    def __init__(
        self,
        config: Config,
        device: Device,
        team: Team,
        progress: Progress,
        console: Console,
        status: StatusFile,
        interruption: Interruption,
        ledger: Ledger,
        outage: Outage,
        watchdog: Watchdog | None = None,
    ) -> None:
        self.config = config
        self.device = device
        self.team = team
        self.progress = progress
        self.console = console
        self.status = status
        self.interruption = interruption
        self.ledger = ledger
        self.outage = outage
        self._configured = batch(config)
        self.lines = MetricsFile(config.output_dir / "metrics.jsonl", outage)
        self.peers = Peers.meet(config.output_dir, config.train.first_timeout)
        self.watchdog = watchdog or Watchdog.off()
        self.watchdog.started = self._started
        self.store = CheckpointStore(
            config.output_dir / "checkpoints", config.checkpoint.keep, console.say, config.checkpoint.keep_every
        )
        settings = config.checkpoint
        if settings.signing_key_file is not None:
            self.store.signer = Signer.load(settings.signing_key_file)
        self.target = open_target(settings.target, settings.endpoint_url) if settings.target else None

    def run(self) -> None:
        """Agree, prepare, train, measure."""
        config, team, progress = self.config, self.team, self.progress
        adopt, patient = config.checkpoint.adopt, self.peers.patient
        self.job, begun = settle(patient, config.output_dir, self.store, key_of(config), self.target, adopt)
        checkpoint = agree(patient, self.store, self.lines.path, self.console.say, self.target, self.job, begun, adopt)
        remember(patient, config.output_dir, self.job)
        if checkpoint is not None and checkpoint.step >= config.train.max_steps:
            done = [not team.writer or self.status.finished(config.train.max_steps)]
            if all(all(each) for each in team.gather(done)):
                self.console.say(f"already finished at step {checkpoint.step}: nothing to do")
                return
        if checkpoint is not None:
            self._keep_batch(checkpoint)
        corpus = self._corpus()
        samples = open_samples(config, corpus)
        about = self._about(corpus)
        state = self._restore(checkpoint, about) if checkpoint is not None else None
        if team.writer:
            self.lines.truncate(progress.step)
        baseline = samples.baseline() if team.topology.rank == 0 else 0.0
        progress.baseline_loss = team.gather(baseline)[0]
        self.console.say(
            f"{team.topology.world_size} process(es) on {progress.device_label}, {corpus.size:,} {corpus.unit}s of "
            f"{config.data.source}, {corpus.unit}-frequency baseline {progress.baseline_loss:.3f} nats/{corpus.unit}"
        )
        watch = Watch(self.ledger, config.output_dir if team.writer else None, progress.step)
        self._train(samples, about, checkpoint, state, watch)
        self._require_finite_losses()
        self.lines.flush()
        self.ledger.finished(progress.step)
        progress.goodput = watch.goodput().status()
        if team.writer:
            self.status.write("finished", progress)
        self.console.summary(progress)

    def _started(self) -> None:
        """The first step is made: from here on, processes wait for each other as long as for any step."""
        self.team.lower_timeout(self.config.train.collective_timeout)
        lower_timeout(self.peers.group, self.config.train.collective_timeout)

    def _require_finite_losses(self) -> None:
        """A job is not finished whose model gives no number."""
        progress = self.progress
        for name, loss in (("training", progress.loss), ("held-out", progress.validation_loss)):
            if loss is not None and not math.isfinite(loss):
                raise NotFiniteError(
                    f"The {name} loss is not finite after step {progress.step}, the last one: start anew with another "
                    "output_dir, with a lower train.learning_rate, a longer train.warmup_steps or a tighter "
                    "train.gradient_clip."
                )

    def _keep_batch(self, checkpoint: Checkpoint) -> None:
        """Take as many samples per step as before, however many processes there are now."""
        progress, before = self.progress, self.config.train.accumulation_steps
        self.config = same_batch(self.config, checkpoint.manifest.about, self.team.topology.world_size)
        now = self.config.train.accumulation_steps
        if now != before:
            progress.samples_per_step = progress.samples_per_step // before * now
            self.console.say(
                f"{self.team.topology.world_size} process(es) instead of {checkpoint.manifest.about['world_size']}: "
                f"accumulating {now} micro-batches instead of {before}, so that a step takes "
                f"{progress.samples_per_step} samples as before"
            )

    def _corpus(self) -> Corpus:
        """The data, the same on all nodes."""
        corpus = prepare(
            self.config, self.team, self.console, lambda: self.interruption.check("the preparation of the data")
        )
        found = self.team.gather(identity(corpus) if self.team.writer else None)
        known = [(rank, about) for rank, about in enumerate(found) if about is not None]
        first = known[0][1]
        for rank, about in known[1:]:
            if about != first:
                raise TrainerError(
                    f"The nodes' data differ: {first['size']:,} {corpus.unit}s with SHA-256 {first['sha256'][:12]} at "
                    f"rank 0, {about['size']:,} with {about['sha256'][:12]} at rank {rank}; give every node the same "
                    "data.source (for stdlib: the same Python) and delete data/ in output_dir."
                )
        self.progress.unit = corpus.unit
        return corpus

    def _about(self, corpus: Corpus) -> dict[str, Any]:
        """What a checkpoint's manifest says of the run."""
        return {
            "model": self.config.model.model_dump(),
            "data": identity(corpus),
            "seed": self.config.train.seed,
            "world_size": self.team.topology.world_size,
            "samples_per_step": self.progress.samples_per_step,
            "batch": self._configured,
            "hyperparameters": {name: getattr(self.config.train, name) for name in HYPERPARAMETERS},
            "device": self.device.type,
            "torch": str(torch.__version__),
        }

    def _restore(self, checkpoint: Checkpoint, about: dict[str, Any]) -> dict[str, Any]:
        """Load the state and set the progress back to it."""
        manifest, progress = checkpoint.manifest.about, self.progress
        if manifest["model"] != about["model"]:
            raise ConfigError(
                f"The checkpoint {checkpoint.path} is of a model with other sizes than the configuration's: "
                "use another output_dir, or the sizes it was written with."
            )
        others = [name for name, value in about.items() if name != "hyperparameters" and manifest.get(name) != value]
        self._say_hyperparameters(manifest.get("hyperparameters", {}), about["hyperparameters"])
        if others:
            self.console.say(f"resuming with another {', '.join(others)} than before: the run is not repeated exactly")
        state = checkpoint.state()
        progress.step, progress.samples = state["step"], state["samples"]
        progress.loss, progress.first_loss = state["loss"], state["first_loss"]
        progress.skipped_steps = state.get("skipped_steps", 0)
        progress.checkpoint, progress.checkpoint_step = checkpoint.path, checkpoint.step
        progress.resumed_from_step = checkpoint.step
        self.console.say(f"resuming from step {checkpoint.step}")
        return state

    def _say_hyperparameters(self, before: dict[str, Any], now: dict[str, Any]) -> None:
        """What is configured counts, not what the checkpoint was trained with: say where they differ."""
        then = {name: type(value)(before[name]) for name, value in now.items() if name in before}  # JSON has no tuples
        changed = [f"train.{name} {now[name]} instead of {old}" for name, old in then.items() if now[name] != old]
        if changed:
            self.console.say(f"resuming with {', '.join(changed)}")

    def _train(
        self,
        samples: Samples,
        about: dict[str, Any],
        checkpoint: Checkpoint | None,
        state: dict[str, Any] | None,
        watch: Watch,
    ) -> None:
        from gaudi3_scale.accelerator import build_trainer
        from gaudi3_scale.callbacks.evaluate import Evaluate
        from gaudi3_scale.callbacks.finite import FiniteCheck
        from gaudi3_scale.callbacks.interrupt import Interrupt
        from gaudi3_scale.callbacks.report import Report
        from gaudi3_scale.callbacks.save import Restore, Save
        from gaudi3_scale.callbacks.start import Start
        from gaudi3_scale.checkpoint.fetch import load
        from gaudi3_scale.interruption.handlers import own_signals
        from gaudi3_scale.metrics import TrainingMetrics
        from gaudi3_scale.models.module import LanguageModule
        from gaudi3_scale.randomness import seed_all
        from gaudi3_scale.validation import validate

        config, team, progress, topology = self.config, self.team, self.progress, self.team.topology
        watchdog = self.watchdog
        metrics = None
        if team.leader and config.metrics.enabled:
            metrics = TrainingMetrics(progress, topology.local_world_size)
            self.console.say(f"metrics at {metrics.serve(config.metrics)}")
        ranks = state["ranks"] if state else []
        rank_state = ranks[topology.rank] if topology.rank < len(ranks) else None
        if rank_state and topology.rank == 0:  # what ranks that are no more had summed since the last logged step
            for gone in ranks[topology.world_size :]:
                rank_state["loss_sum"] += gone["loss_sum"]
                rank_state["loss_count"] += gone["loss_count"]
        seed_all(config.train.seed)
        module = LanguageModule(config, self.device, weights=checkpoint is None)
        for option, effect in module.memory.items():
            self.console.say(f"{option}: {effect}")
        if progress.step < config.train.max_steps:
            settings = config.checkpoint
            uploader = None
            if self.target is not None:
                uploader = Uploader(self.target, self.store, self.peers, self.console.say, job=self.job)
            saver = Saver(self.store, self.peers, about, settings.asynchronous, settings.copies, uploader, self.job)
            if uploader is not None and checkpoint is not None:
                uploader.catch_up(self.peers, checkpoint)
            finite = FiniteCheck(config.train, team, progress, self.console)
            report = Report(
                config, team, progress, self.console, self.status, self.lines, metrics, watch, finite, watchdog
            )
            save = Save(config, team, self.device, progress, saver, report, self.status, metrics, finite, watchdog)
            evaluations = MetricsFile(config.output_dir / "evaluation.jsonl", self.outage)
            interruption = self.interruption

            def held_out(module: LanguageModule, between: Callable[[], None]) -> float:
                def gets_on() -> None:
                    watchdog.beat()
                    between()

                with watchdog.anew():
                    loss = validate(module.model, samples, config, self.device, team, gets_on)
                    watchdog.seen()
                return loss

            watch.meter, why = meter_for(
                module.model,
                self.device.torch_device(),
                config.train.precision,
                config.model.sequence_length,
                topology.world_size,
            )
            if why is not None and self.device.type != "cpu":
                self.console.say(f"no MFU: {why}")
            callbacks = [
                Start(config, self.device, topology, rank_state),
                report,
                save,
                Interrupt(config, interruption, save),
                Evaluate(config, team, progress, self.console, evaluations, report, interruption, save, held_out),
            ]
            if checkpoint is not None and state is not None:
                callbacks.insert(0, Restore(checkpoint, saver, state, watchdog))
            quiet()
            trainer = build_trainer(
                config, self.device, topology, config.train.max_steps - progress.step, list(callbacks)
            )
            own_signals(trainer)
            batches = RankBatches(
                samples,
                progress.samples,
                config.train.micro_batch_size,
                topology.rank,
                topology.world_size,
            )
            prefetched = Prefetched(batches, config.data.prefetch, self.device.pin)
            try:
                with watchdog.watch():
                    trainer.fit(module, train_dataloaders=self.ledger.waits(prefetched))
            except NotFiniteError:
                with contextlib.suppress(TrainerError):  # what was begun is of finite steps, and is worth keeping
                    save.close()
                raise
            save.close()
        elif checkpoint is not None and state is not None:
            module.materialise(self.device.torch_device())
            load(checkpoint, self.peers.patient, module.model, [], state)

        def last() -> None:
            watchdog.beat()
            self.interruption.check("the last evaluation")

        with watchdog.watch():
            progress.validation_loss = validate(module.model, samples, config, self.device, team, last)


def quiet() -> None:
    """Lightning's advice is for people who set its trainer up themselves."""
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", module="lightning")
