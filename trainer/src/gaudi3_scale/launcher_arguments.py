"""Arguments that the commands of all launchers take, and the job that they name."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gaudi3_scale.errors import ConfigError

if TYPE_CHECKING:
    from gaudi3_scale.config import Config

JobFile = Annotated[
    Path | None,
    typer.Argument(metavar="JOB", help="YAML file of the job, as for fit; none where the cluster's has a command."),
]
Overrides = Annotated[
    list[str] | None, typer.Argument(metavar="KEY=VALUE", help="Settings over the job file's, keys dotted.")
]
ClusterFile = Annotated[Path | None, typer.Option(help="YAML file about the cluster; --template prints one.")]
Settings = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="A key over the cluster's file; repeatable.")
]
Name = Annotated[str | None, typer.Option(help="Name of the job, over the cluster's file.")]
Nodes = Annotated[int | None, typer.Option(help="Number of nodes, over the cluster's file.")]
PrintTemplate = Annotated[
    bool, typer.Option("--template", help="Print a file for --cluster, each key with its meaning, and stop.")
]


def job_of(job_file: Path | None, overrides: list[str] | None, cluster: Path | None) -> Config | None:
    """The job of a file; None where the cluster's file is left to say it. ``ConfigError`` where neither is given."""
    from gaudi3_scale.config import load

    if job_file is not None:
        return load(job_file, overrides or (), elsewhere=True)
    if cluster is None:
        raise ConfigError("JOB is missing: give the YAML file of the job, or --template for a file about the cluster.")
    return None
