"""A job as its pods read it: the job file with what only the launcher knows."""

from __future__ import annotations

from dataclasses import dataclass

from gaudi3_scale.config import Config
from gaudi3_scale.errors import ConfigError
from gaudi3_scale.kubernetes.checks import problems
from gaudi3_scale.kubernetes.cluster import ClusterOptions
from gaudi3_scale.launcher_job import as_read, job_or_command

ANYWHERE = "0.0.0.0"
LARGEST = 1_000_000
"""Bytes of a job file; a ConfigMap holds 1 MiB with its names."""
GIVEN = "/etc/gaudi3"
"""Where the pods see the job file."""


@dataclass(frozen=True)
class KubernetesJob:
    """What is written down as manifests."""

    options: ClusterOptions
    config: Config
    """As the pods read it."""
    text: str | None
    """The job file of the pods; None for a script of the user's own."""

    @property
    def on_cards(self) -> bool:
        """Does it use Gaudi cards?"""
        return uses_cards(self.config) and self.options.devices != "none"

    @property
    def huge_pages(self) -> str | None:
        """Of a pod; None where it asks for none."""
        return None if not self.on_cards or self.options.huge_pages == "none" else self.options.huge_pages

    @property
    def metrics_port(self) -> int | None:
        """Where the metrics of a pod are, if that is known beforehand."""
        metrics = self.config.metrics
        return metrics.port if metrics.enabled and metrics.port else None

    @property
    def labels(self) -> dict[str, str]:
        """Of all that belongs to the job, by which its pods are found too."""
        return {"app.kubernetes.io/name": "gaudi3-train", "app.kubernetes.io/instance": self.options.name}


def uses_cards(config: Config) -> bool:
    """A job that names no other device trains on cards, or fails."""
    return config.device in ("auto", "hpu")


def make(given: Config | None, options: ClusterOptions) -> KubernetesJob:
    """The job of this file, or of the cluster's `command` where there is none, on this cluster.

    Raises:
        ConfigError: With a sentence for each thing that Kubernetes does not carry, or that no pod could do.
    """
    known = {
        "device": "cpu" if options.devices == "none" else "hpu",
        "output_dir": f"{options.volumes[0].path}/{options.name}",
        **({"metrics.address": ANYWHERE} if options.pod_monitor is not None else {}),
    }
    config, text = as_read(job_or_command(given, options.command), known, "gaudi3-train kubernetes")
    found = list(problems(config, options))
    if len(text.encode()) > LARGEST:
        found.append(f"The job file has {len(text.encode()):,} bytes, and a ConfigMap holds {LARGEST:,}: shorten it.")
    if found:
        raise ConfigError("\n".join(found))
    return KubernetesJob(options, config, None if given is None else text)
