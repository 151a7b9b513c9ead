"""The callbacks of a job, in the order in which Lightning calls them: in each hook, from first to last.

What one of them does is the state in which the next one finds the run, so the order is part of what a step is.
`check_order` refuses another one when the training starts.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import lightning.pytorch as pl

from gaudi3_scale.callbacks.batch_callback import BatchCallback
from gaudi3_scale.callbacks.console_callback import ConsoleCallback
from gaudi3_scale.callbacks.cost_callback import CostCallback
from gaudi3_scale.callbacks.evaluation_callback import EvaluationCallback
from gaudi3_scale.callbacks.garbage_callback import GarbageCallback
from gaudi3_scale.callbacks.gaudi_checkpoint import GaudiCheckpoint
from gaudi3_scale.callbacks.interruption_callback import InterruptionCallback
from gaudi3_scale.callbacks.loss_callback import LossCallback
from gaudi3_scale.callbacks.metrics_callback import MetricsCallback
from gaudi3_scale.callbacks.monitoring_callback import MonitoringCallback
from gaudi3_scale.callbacks.profile_callback import ProfileCallback
from gaudi3_scale.callbacks.prometheus_callback import PrometheusCallback
from gaudi3_scale.callbacks.reference_callback import ReferenceCallback
from gaudi3_scale.callbacks.status_callback import StatusCallback
from gaudi3_scale.callbacks.throughput_callback import ThroughputCallback
from gaudi3_scale.callbacks.tracing_callback import TracingCallback
from gaudi3_scale.callbacks.tracking_callback import TrackingCallback, observers
from gaudi3_scale.callbacks.warm_up_callback import WarmUpCallback
from gaudi3_scale.data.samples import Samples
from gaudi3_scale.errors import TrainerError
from gaudi3_scale.job.contents import JobState, of_rank
from gaudi3_scale.run import Run
from gaudi3_scale.step.finite_check import FiniteCheck
from gaudi3_scale.traces.spans import current

ORDER: tuple[type[pl.Callback], ...] = (
    BatchCallback,  # how many micro-batches the steps of this stage have, which all others count by
    ReferenceCallback,  # what the first weights say of pairs, before the random state is set
    WarmUpCallback,  # gradient buckets, then the random state, which settling them has drawn from
    LossCallback,  # counts the step and reads its loss: what is not finite is neither reported nor saved
    ThroughputCallback,  # the speed, after the loss has waited for the device
    CostCallback,  # what the step cost, before it is reported and saved
    MonitoringCallback,  # what is odd about the step, likewise; a checkpoint it asks for is of this step
    MetricsCallback,  # the line of a step is written before its checkpoint, which a resumed job cuts the file back to
    PrometheusCallback,  # the figures of the same step
    ConsoleCallback,  # the line for readers
    StatusCallback,  # status.json, with what all before have found
    TrackingCallback,  # what was logged, before the job leaves at this step
    ProfileCallback,  # likewise the profile
    TracingCallback,  # the end of the first step, before it is saved
    GaudiCheckpoint,  # the state after the step that was counted and reported
    InterruptionCallback,  # leaves after the save, which need not be repeated then
    EvaluationCallback,  # a job that leaves begins no evaluation
    GarbageCallback,  # last, when the others have let go of the step
)


def callbacks_of(run: Run, samples: Samples, about: dict[str, Any], state: dict[str, Any] | None) -> list[pl.Callback]:
    """Those of a run; `about` goes into every manifest, `state` is that of the checkpoint which it resumes from."""
    finite = FiniteCheck(run)
    checkpoint = GaudiCheckpoint.of_session(run.checkpoints, JobState(run, finite, about, state), run.watchdog)
    interruption = InterruptionCallback.of_job(checkpoint, run.interruption)
    observing = observers(run.plan.config, run.device, run.progress, run.console.log, run.rank)
    run.trackers = next((each for each in observing if isinstance(each, TrackingCallback)), None)
    return [
        BatchCallback(run),
        *([ReferenceCallback(run, samples)] if run.plan.config.data.prefers else []),
        WarmUpCallback(run, of_rank(state, run.rank, run.world_size)),
        LossCallback(run, finite),
        ThroughputCallback.of_job(run),
        *([CostCallback.of_job(run)] if run.config.cost.node_price_per_hour is not None else []),
        *([MonitoringCallback.of_job(run)] if run.config.monitoring.enabled else []),
        MetricsCallback(run),
        *([PrometheusCallback(run, run.metrics)] if run.metrics is not None else []),
        ConsoleCallback(run),
        StatusCallback.of_job(run),
        *observing,
        *([TracingCallback(run, tracer)] if (tracer := current()).on else []),
        checkpoint,
        interruption,
        EvaluationCallback(run, samples, interruption),
        GarbageCallback(),
    ]


def check_order(callbacks: Sequence[pl.Callback]) -> None:
    """Raise TrainerError if two of the job's callbacks are in another order than `ORDER`; others may be anywhere."""
    found = [callback for callback in callbacks if type(callback) in ORDER]
    for before, after in itertools.pairwise(found):
        if ORDER.index(type(before)) > ORDER.index(type(after)):
            raise TrainerError(
                f"The callback {type(before).__name__} comes before {type(after).__name__}, which has to be called "
                f"first: give them in the order {', '.join(kind.__name__ for kind in ORDER)}."
            )
