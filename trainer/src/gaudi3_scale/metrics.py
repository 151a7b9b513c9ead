"""Prometheus metrics of a node, served from the first of its processes until that ends.

A finished job's process is gone and its metrics with it; the last numbers stay in status.json.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Iterable
from functools import partial
from typing import Any

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    Info,
    disable_created_metrics,
)
from prometheus_client.exposition import make_wsgi_app
from prometheus_client.metrics_core import Metric

from gaudi3_scale.config import CostConfig, MetricsConfig
from gaudi3_scale.errors import TrainerError
from gaudi3_scale.monitoring.anomaly import KINDS
from gaudi3_scale.serving import BoundedServer
from gaudi3_scale.status import Progress
from gaudi3_scale.throughput.goodput import PARTS, Goodput
from gaudi3_scale.throughput.meter import Reading
from gaudi3_scale.version import VERSION

STEP_BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


def _tls(config: MetricsConfig) -> ssl.SSLContext | None:
    """What the server is told of TLS."""
    if not config.certificate:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(config.certificate, config.key)
    except OSError as error:
        files = f"server certificate file {config.certificate!r} or its private key file {config.key!r}"
        raise type(error)(f"Cannot load {files}: {error}") from None
    if config.client_authority:
        context.load_verify_locations(config.client_authority)
        context.verify_mode = ssl.CERT_REQUIRED
    return context


class Measured(Gauge):
    """A gauge without labels that has no series before a value was measured; prometheus_client's would show 0."""

    _known = False

    def set(self, value: float) -> None:
        """As that of a gauge."""
        super().set(value)
        self._known = True

    def collect(self) -> Iterable[Metric]:
        """Its help and type, and its value where there is one."""
        for metric in super().collect():
            if not self._known:
                metric.samples = []
            yield metric


class CostMetrics:
    """The metrics `gaudi_cost_*`: of the whole job, from its first process alone, so that nodes may be summed."""

    def __init__(self, config: CostConfig, registry: CollectorRegistry) -> None:
        self._currency = config.currency
        gauge = partial(Gauge, registry=registry)
        self.info = Info("gaudi_cost", "Who pays for the job, and where its price is from.", registry=registry)
        self.info.info(
            {
                "currency": config.currency,
                "price_source": config.price_source,
                "price_date": str(config.price_date),
                "project": config.project,
                "team": config.team,
            }
        )
        self.price = gauge(
            "gaudi_cost_price_per_hour", "Price of an hour of all nodes that are paid for.", ["currency"]
        )
        self.spent = gauge(
            "gaudi_cost_spent", "Money that the job has cost since its first process, over all restarts.", ["currency"]
        )
        self.part = gauge(
            "gaudi_cost_part_spent",
            "The same by what the time went into; the parts sum to the whole.",
            ["currency", "part"],
        )
        self.per_tokens = gauge(
            "gaudi_cost_per_million_tokens", "Money so far per million tokens whose learning was kept.", ["currency"]
        )
        self.budget = gauge("gaudi_cost_budget", "Budget of the job; absent where there is none.", ["currency"])
        self.budget_left = gauge(
            "gaudi_cost_budget_left",
            "What is left of the budget, below 0 where it is exceeded; absent where there is none.",
            ["currency"],
        )

    def billed(self, cost: dict[str, Any]) -> None:
        """The bill was read; as in status.json."""
        currency = self._currency
        self.price.labels(currency).set(cost["price_per_hour"])
        self.spent.labels(currency).set(cost["spent"])
        for part, money in cost["parts"].items():
            self.part.labels(currency, part).set(money)
        if cost["per_million_tokens"] is not None:
            self.per_tokens.labels(currency).set(cost["per_million_tokens"])
        if cost["budget"] is not None:
            self.budget.labels(currency).set(cost["budget"])
            self.budget_left.labels(currency).set(cost["budget_left"])


class TrainingMetrics:
    """The metrics `gaudi_training_*`."""

    def __init__(self, progress: Progress, local_world_size: int) -> None:
        self._progress = progress
        self._tokens_per_sample = progress.sequence_length * local_world_size / progress.world_size
        self._upload_failures = self._report_failures = 0
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = registry = CollectorRegistry()
        gauge = partial(Gauge, registry=registry)
        measured = partial(Measured, registry=registry)
        counter = partial(Counter, registry=registry)
        histogram = partial(Histogram, registry=registry)
        self.info = Info("gaudi_training", "The training job.", registry=registry)
        self.info.info({"version": VERSION, "device": progress.device, "hardware": progress.device_label})
        self.world_size = gauge("gaudi_training_world_size", "Processes that train together, on all nodes.")
        self.world_size.set(progress.world_size)
        self.step = gauge("gaudi_training_step", "Optimizer steps done.")
        self.step.set(progress.step)
        self.max_steps = gauge("gaudi_training_max_steps", "Optimizer steps of the whole job.")
        self.max_steps.set(progress.max_steps)
        self.loss = measured(
            "gaudi_training_loss", "Training loss over the last logged steps, nats per predicted token."
        )
        self.gradient_norm = measured(
            "gaudi_training_gradient_norm", "Norm of all gradients of the last logged step, before clipping."
        )
        self.skipped_steps = counter(
            "gaudi_training_skipped_steps",
            "Optimizer steps left out because their loss or gradients were not finite, since the process started.",
        )
        self.report_failures = counter(
            "gaudi_training_report_write_failures",
            "Writes of status.json, metrics.jsonl and other reports that failed since the process started.",
        )
        self.baseline = measured(
            "gaudi_training_baseline_loss", "Entropy of the token frequencies of held-out data, nats per token."
        )
        self.learning_rate = measured("gaudi_training_learning_rate", "Learning rate of the last logged step.")
        self.tokens = counter(
            "gaudi_training_tokens", "Tokens (bytes) that this node's processes learnt from since they started."
        )
        self.step_seconds = histogram(
            "gaudi_training_step_seconds", "Wall time of one optimizer step, without checkpoints.", buckets=STEP_BUCKETS
        )
        self.checkpoint_seconds = histogram(
            "gaudi_training_checkpoint_seconds",
            "Wall time from the beginning of one checkpoint until it was committed.",
        )
        self.checkpoint_stall = histogram(
            "gaudi_training_checkpoint_stall_seconds",
            "Wall time for which training stood still for one checkpoint.",
            buckets=STEP_BUCKETS,
        )
        self.uploaded_step = measured(
            "gaudi_training_checkpoint_uploaded_step",
            "Step of the newest checkpoint this node has copied to the target; absent before the first.",
        )
        self.upload_failures = counter(
            "gaudi_training_checkpoint_upload_failures",
            "Checkpoints that this node could not copy to the target since the process started.",
        )
        self.checkpoint_time = measured(
            "gaudi_training_checkpoint_last_timestamp_seconds",
            "Unix time of this node's last committed checkpoint; absent before the first.",
        )

        self.anomalies = counter(
            "gaudi_training_anomalies",
            "Anomalies of the whole job's speed and memory since its first process was started, by kind.",
            ["kind"],
        )
        for kind in KINDS:
            self.anomalies.labels(kind)
        self.tokens_per_second = gauge(
            "gaudi_training_tokens_per_second",
            "Tokens per second of the whole job over the last logged steps; window is wall (all time) or stepping "
            "(without checkpoints and evaluation).",
            ["window"],
        )
        self.mfu = gauge(
            "gaudi_training_mfu_ratio",
            "Model FLOPs utilization of all devices over the last logged steps, 0 to 1; absent where no peak is known.",
            ["window"],
        )
        self.goodput = counter(
            "gaudi_training_goodput_seconds",
            "Wall time of the job since its first process, over all restarts, by what it went into.",
            ["part"],
        )
        self._goodput = dict.fromkeys(PARTS, 0.0)

    def serve(self, config: MetricsConfig) -> str:
        """Listen, and return the URL."""
        try:
            application = make_wsgi_app(self.registry)
            server = BoundedServer(config.address, config.port, application, _tls(config))
        except (FileNotFoundError, PermissionError, ssl.SSLError) as error:
            raise TrainerError(
                f"Metrics cannot be served over TLS ({error}): let metrics.certificate, metrics.key "
                "and metrics.client_authority be files that the job's user can read, or leave all three out."
            ) from None
        except OSError as error:
            raise TrainerError(
                f"Metrics cannot be served at {config.address}:{config.port} ({error.strerror}): set metrics.address "
                "and metrics.port to a free address of this node, or metrics.enabled to false."
            ) from None
        server.start()
        host = f"[{config.address}]" if ":" in config.address else config.address
        return f"{'https' if config.certificate else 'http'}://{host}:{server.server_port}/metrics"

    def stepped(self, step: int, seconds: float) -> None:
        """One optimizer step was done."""
        self.step.set(step)
        self.step_seconds.observe(seconds)
        self.tokens.inc(self._progress.samples_per_step * self._tokens_per_sample)

    def logged(self, progress: Progress, learning_rate: float | None) -> None:
        """The loss was read; what is not known stays as it was."""
        if learning_rate is not None:
            self.learning_rate.set(learning_rate)
        if progress.loss is not None:
            self.loss.set(progress.loss)
        if progress.gradient_norm is not None:
            self.gradient_norm.set(progress.gradient_norm)
        if progress.baseline_loss is not None:
            self.baseline.set(progress.baseline_loss)

    def stalled(self, seconds: float) -> None:
        """A checkpoint held training up."""
        self.checkpoint_stall.observe(seconds)

    def measured(self, reading: Reading, goodput: Goodput) -> None:
        """Speed and goodput were read; what is not known has no series."""
        speeds = {"wall": reading.tokens_per_second, "stepping": reading.tokens_per_second_stepping}
        shares = {"wall": reading.mfu_wall, "stepping": reading.mfu}
        for gauge, values in ((self.tokens_per_second, speeds), (self.mfu, shares)):
            for window, value in values.items():
                if value is not None:
                    gauge.labels(window).set(value)
        for part, spent in goodput.nanoseconds.items():
            seconds = spent / 1e9
            self.goodput.labels(part).inc(max(0.0, seconds - self._goodput[part]))
            self._goodput[part] = seconds

    def uploaded(self, step: int | None, failures: int) -> None:
        """An upload ended, one way or the other; `failures` counts all of them."""
        if step is not None:
            self.uploaded_step.set(step)
        self.upload_failures.inc(failures - self._upload_failures)
        self._upload_failures = failures

    def reported(self, failures: int) -> None:
        """Reports were written; `failures` counts all writes that failed."""
        self.report_failures.inc(failures - self._report_failures)
        self._report_failures = failures

    def checkpointed(self, seconds: float) -> None:
        """A checkpoint was committed on this node."""
        self.checkpoint_seconds.observe(seconds)
        self.checkpoint_time.set(time.time())
