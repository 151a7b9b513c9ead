"""A job as its pods read it: the job file with what only the launcher knows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gaudi3_scale.config import Config
from gaudi3_scale.errors import ConfigError
from gaudi3_scale.job_file_text import as_text
from gaudi3_scale.kubernetes.checks import problems
from gaudi3_scale.kubernetes.cluster import ClusterOptions

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
    if (given is None) != bool(options.command):
        raise ConfigError(
            "A job is a job file, or a command in the cluster's file for a script of your own: give one of them."
        )
    config, text = _as_read(given or Config(), options)
    found = list(problems(config, options))
    if len(text.encode()) > LARGEST:
        found.append(f"The job file has {len(text.encode()):,} bytes, and a ConfigMap holds {LARGEST:,}: shorten it.")
    if found:
        raise ConfigError("\n".join(found))
    return KubernetesJob(options, config, None if given is None else text)


def _as_read(given: Config, options: ClusterOptions) -> tuple[Config, str]:
    """The job as the pods read it, and its file."""
    values: dict[str, Any] = given.model_dump(mode="json", exclude_unset=True)
    added = []
    if "device" not in values:
        values = {"device": "cpu" if options.devices == "none" else "hpu", **values}
        added.append("device")
    if "output_dir" not in values:
        values = {"output_dir": f"{options.volumes[0].path}/{options.name}", **values}
        added.append("output_dir")
    if options.pod_monitor is not None and "address" not in values.get("metrics", {}):
        values["metrics"] = {**values.get("metrics", {}), "address": ANYWHERE}
        added.append("metrics.address")
    config = Config.model_validate(values, context={"elsewhere": True})
    head = f"# Set by gaudi3-train kubernetes: {', '.join(added)}\n" if added else ""
    return config, head + as_text(values)
