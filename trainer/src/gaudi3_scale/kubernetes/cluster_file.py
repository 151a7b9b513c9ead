"""Reading the file of `gaudi3-train kubernetes --cluster`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gaudi3_scale.kubernetes.cluster import ASKED, NOT_CARRIED, ClusterOptions, PodMonitorOptions, Toleration, Volume
from gaudi3_scale.launcher_file import LauncherFile

FILE = LauncherFile(
    launcher="the Kubernetes launcher",
    command="gaudi3-train kubernetes",
    model=ClusterOptions,
    asked=ASKED,
    not_carried=NOT_CARRIED,
    example="image=registry.example/train:1",
    examples={"volumes": "[{claim: , access: , path: /checkpoints}]"},
    parts=(("each of volumes", Volume), ("pod_monitor", PodMonitorOptions), ("each of tolerations", Toleration)),
)


def read_options(
    path: Path | None, overrides: Sequence[str], given: Mapping[str, Any], on_cards: bool
) -> ClusterOptions:
    """The cluster's file (none = no file) with KEY=VALUE overrides and what the command line gives by name.

    Raises:
        ConfigError: With a sentence for each thing that is missing, or one for the first that is wrong.
    """
    return checked(FILE.values(path, overrides, given), on_cards)


def checked(values: Mapping[str, Any], on_cards: bool) -> ClusterOptions:
    """The options of these values; ConfigError as of `read_options`."""
    left_out = () if on_cards and values.get("devices") != "none" else ("huge_pages",)
    return FILE.checked(values, left_out)


def template() -> str:
    """A cluster's file to start from, each key with its meaning; those with a default as comments."""
    return FILE.template()
