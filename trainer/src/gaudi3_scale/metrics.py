"""Prometheus metrics of a node, served from the first of its processes until that ends.

A finished job's process is gone and its metrics with it; the last numbers stay in status.json.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Iterable
from typing import Any, NamedTuple

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
from gaudi3_scale.hangs import ring
from gaudi3_scale.metrics_listener import BoundedServer
from gaudi3_scale.monitoring.anomaly import KINDS
from gaudi3_scale.status import Progress
from gaudi3_scale.throughput.goodput import PARTS, Goodput
from gaudi3_scale.throughput.meter import Reading
from gaudi3_scale.version import VERSION

STEP_BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


class Family(NamedTuple):
    """One metric: its name, type, help text and labels; a histogram's buckets."""

    name: str
    type: str
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = Histogram.DEFAULT_BUCKETS


#: All that is served, as docs/reference/metrics.yml has it. A gauge is absent before it was measured.
TRAINING = (
    Family("gaudi_training_info", "info", "The training job.", ("device", "hardware", "version")),
    Family("gaudi_training_world_size", "gauge", "Processes that train together."),
    Family("gaudi_training_step", "gauge", "Optimizer steps since the job's beginning."),
    Family("gaudi_training_max_steps", "gauge", "Optimizer steps of the whole job."),
    Family("gaudi_training_loss", "gauge", "Training loss over the last logged steps."),
    Family("gaudi_training_validation_loss", "gauge", "Loss on held-out data of the last evaluation."),
    Family("gaudi_training_baseline_loss", "gauge", "Entropy of the token frequencies of held-out data."),
    Family("gaudi_training_preference_reward", "gauge",
        "Mean reward of an answer over the last logged steps.", ("answer",)),
    Family("gaudi_training_preference_accuracy_ratio", "gauge",
        "Share of pairs whose chosen answer has the larger reward over the last logged steps, 0 to 1."),
    Family("gaudi_training_gradient_norm", "gauge", "Norm of all gradients of the last logged step, before clipping."),
    Family("gaudi_training_skipped_steps_total", "counter",
        "Optimizer steps left out because their loss or gradients were not finite, since the process started."),
    Family("gaudi_training_report_write_failures_total", "counter",
        "Writes of status.json, metrics.jsonl and other reports that failed since the process started."),
    Family("gaudi_training_anomalies_total", "counter",
        "Anomalies of the whole job since its first process was started.", ("kind",)),
    Family("gaudi_training_learning_rate", "gauge", "Learning rate of the last logged step."),
    Family("gaudi_training_tokens_total", "counter",
        "Tokens that this node's processes learnt from since they started."),
    Family("gaudi_training_step_seconds", "histogram",
        "Wall time of one optimizer step, without checkpoints.", buckets=STEP_BUCKETS),
    Family("gaudi_training_checkpoint_seconds", "histogram",
        "Wall time from the beginning of one checkpoint until it was committed."),
    Family("gaudi_training_checkpoint_stall_seconds", "histogram",
        "Wall time for which training stood still for one checkpoint.", buckets=STEP_BUCKETS),
    Family("gaudi_training_checkpoint_uploaded_step", "gauge",
        "Step of the newest checkpoint that this node has copied to the target."),
    Family("gaudi_training_checkpoint_upload_failures_total", "counter",
        "Checkpoints that this node could not copy to the target since the process started."),
    Family("gaudi_training_checkpoint_last_timestamp_seconds", "gauge",
        "Unix time of this node's last committed checkpoint."),
    Family("gaudi_training_tokens_per_second", "gauge",
        "Speed of the whole job over the last logged steps.", ("window",)),
    Family("gaudi_training_mfu_ratio", "gauge",
        "Model FLOPs utilization of all devices over the last logged steps, 0 to 1.", ("window",)),
    Family("gaudi_training_goodput_seconds_total", "counter", "Wall time of the job over all its restarts.", ("part",)),
    Family("gaudi_training_phase_seconds", "gauge",
        "For how long this node's first process has been in the present phase of its step.", ("phase",)),
)  # fmt: skip
COST = (
    Family("gaudi_cost_info", "info",
        "Who pays for the job and where its price is from.",
        ("currency", "price_date", "price_source", "project", "team")),
    Family("gaudi_cost_price_per_hour", "gauge", "Price of an hour of all nodes that are paid for.", ("currency",)),
    Family("gaudi_cost_spent", "gauge",
        "Money that the job has cost since its first process, over all restarts.", ("currency",)),
    Family("gaudi_cost_part_spent", "gauge",
        "The same by what the time went into, with the parts of gaudi_training_goodput_seconds_total.",
        ("currency", "part")),
    Family("gaudi_cost_per_million_tokens", "gauge",
        "Money so far per million tokens whose learning was kept.", ("currency",)),
    Family("gaudi_cost_budget", "gauge", "Budget of the job, absent where there is none.", ("currency",)),
    Family("gaudi_cost_budget_left", "gauge",
        "What is left of the budget, below 0 where it is exceeded; absent where there is none.", ("currency",)),
)  # fmt: skip


def register(rows: tuple[Family, ...], registry: CollectorRegistry) -> dict[str, Any]:
    """The metrics of a table by their names without the prefix."""
    made: dict[str, Any] = {}
    for row in rows:
        name = row.name.removesuffix("_info")
        if row.type == "info":  # its labels are given with its values
            made["info"] = Info(name, row.help, registry=registry)
        elif row.type == "histogram":
            made[_short(name)] = Histogram(name, row.help, registry=registry, buckets=row.buckets)
        else:
            labelled = PhaseGauge if row.labels == ("phase",) else Gauge
            kind = Counter if row.type == "counter" else labelled if row.labels else Measured
            made[_short(name)] = kind(name, row.help, row.labels, registry=registry)
    return made


def _short(name: str) -> str:
    return name.split("_", 2)[2]


def _tls(config: MetricsConfig) -> ssl.SSLContext | None:
    """The server's settings of TLS."""
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


class PhaseGauge(Gauge):
    """Where the process stands when it is asked; nothing where no launcher reads its notes."""

    def collect(self) -> Iterable[Metric]:
        """One series, of the present phase."""
        self.clear()
        noted = ring.current()
        if noted is not None:
            phase, seconds = noted.standing()
            self.labels(phase).set(seconds)
        return super().collect()


class CostMetrics:
    """The metrics `gaudi_cost_*`: of the whole job, from its first process alone, so that nodes may be summed."""

    def __init__(self, config: CostConfig, registry: CollectorRegistry) -> None:
        self._currency = config.currency
        self._metrics = register(COST, registry)
        self._metrics["info"].info(
            {
                "currency": config.currency,
                "price_source": config.price_source,
                "price_date": str(config.price_date),
                "project": config.project,
                "team": config.team,
            }
        )

    def billed(self, cost: dict[str, Any]) -> None:
        """The bill was read; as in status.json."""
        figures = {"spent": cost["spent"], "price_per_hour": cost["price_per_hour"]}
        figures |= {
            name: cost[key] for name, key in (("per_million_tokens", "per_million_tokens"), ("budget", "budget"))
        }
        if cost["budget"] is not None:
            figures["budget_left"] = cost["budget_left"]
        for name, money in figures.items():
            if money is not None:
                self._metrics[name].labels(self._currency).set(money)
        for part, money in cost["parts"].items():
            self._metrics["part_spent"].labels(self._currency, part).set(money)


class TrainingMetrics:
    """The metrics `gaudi_training_*`."""

    def __init__(self, progress: Progress, local_world_size: int) -> None:
        self._progress = progress
        self._tokens_per_sample = progress.tokens_per_sample * local_world_size / progress.world_size
        self._upload_failures = self._report_failures = 0
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = CollectorRegistry()
        self._metrics = register(TRAINING, self.registry)
        self._metrics["info"].info({"version": VERSION, "device": progress.device, "hardware": progress.device_label})
        for name in ("world_size", "step", "max_steps"):
            self._metrics[name].set(getattr(progress, name))
        self.anomalies: Counter = self._metrics["anomalies_total"]
        for kind in KINDS:
            self.anomalies.labels(kind)
        self.skipped_steps: Counter = self._metrics["skipped_steps_total"]
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
        self._metrics["step"].set(step)
        self._metrics["step_seconds"].observe(seconds)
        self._metrics["tokens_total"].inc(self._progress.samples_per_step * self._tokens_per_sample)

    def logged(self, progress: Progress, learning_rate: float | None) -> None:
        """The loss was read; what is not known stays as it was."""
        read = {name: getattr(progress, name) for name in ("loss", "gradient_norm", "baseline_loss")}
        for name, value in {**read, "learning_rate": learning_rate}.items():
            if value is not None:
                self._metrics[name].set(value)
        for answer in ("chosen", "rejected"):
            if (reward := progress.figures.get(f"rewards/{answer}")) is not None:
                self._metrics["preference_reward"].labels(answer).set(reward)
        if (accuracy := progress.figures.get("rewards/accuracies")) is not None:
            self._metrics["preference_accuracy_ratio"].set(accuracy)

    def evaluated(self, loss: float) -> None:
        """The loss on held-out data was read."""
        self._metrics["validation_loss"].set(loss)

    def stalled(self, seconds: float) -> None:
        """A checkpoint held training up."""
        self._metrics["checkpoint_stall_seconds"].observe(seconds)

    def measured(self, reading: Reading, goodput: Goodput) -> None:
        """Speed and goodput were read; what is not known has no series."""
        speeds = {"wall": reading.tokens_per_second, "stepping": reading.tokens_per_second_stepping}
        shares = {"wall": reading.mfu_wall, "stepping": reading.mfu}
        for name, values in (("tokens_per_second", speeds), ("mfu_ratio", shares)):
            for window, value in values.items():
                if value is not None:
                    self._metrics[name].labels(window).set(value)
        for part, spent in goodput.nanoseconds.items():
            seconds = spent / 1e9
            self._metrics["goodput_seconds_total"].labels(part).inc(max(0.0, seconds - self._goodput[part]))
            self._goodput[part] = seconds

    def uploaded(self, step: int | None, failures: int) -> None:
        """An upload ended, one way or the other; `failures` counts all of them."""
        if step is not None:
            self._metrics["checkpoint_uploaded_step"].set(step)
        self._metrics["checkpoint_upload_failures_total"].inc(failures - self._upload_failures)
        self._upload_failures = failures

    def reported(self, failures: int) -> None:
        """Reports were written; `failures` counts all writes that failed."""
        self._metrics["report_write_failures_total"].inc(failures - self._report_failures)
        self._report_failures = failures

    def checkpointed(self, seconds: float) -> None:
        """A checkpoint was committed on this node."""
        self._metrics["checkpoint_seconds"].observe(seconds)
        self._metrics["checkpoint_last_timestamp_seconds"].set(time.time())
