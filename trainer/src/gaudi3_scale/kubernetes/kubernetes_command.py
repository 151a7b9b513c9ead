"""The command `gaudi3-train kubernetes`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from gaudi3_scale.errors import ConfigError, TrainerError


class Kind(StrEnum):
    """Of what is written."""

    trainjob = "trainjob"
    jobset = "jobset"


class Devices(StrEnum):
    """By which cards are asked for."""

    dra = "dra"
    plugin = "plugin"
    none = "none"


def kubernetes(
    job_file: Annotated[
        Path | None,
        typer.Argument(metavar="JOB", help="YAML file of the job, as for fit; none where the cluster's has a command."),
    ] = None,
    overrides: Annotated[
        list[str] | None, typer.Argument(metavar="KEY=VALUE", help="Settings over the job file's, keys dotted.")
    ] = None,
    cluster: Annotated[Path | None, typer.Option(help="YAML file about the cluster; --template prints one.")] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="A key over the cluster's file; repeatable.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="Name of the job, over the cluster's file.")] = None,
    nodes: Annotated[int | None, typer.Option(help="Number of nodes, over the cluster's file.")] = None,
    kind: Annotated[Kind | None, typer.Option(help="A TrainJob of Kubeflow Trainer, or a JobSet alone.")] = None,
    devices: Annotated[Devices | None, typer.Option(help="Cards by Intel's DRA driver, its plugin, or none.")] = None,
    to: Annotated[Path | None, typer.Option(help="Write one file per object into this folder, not all here.")] = None,
    print_template: Annotated[
        bool, typer.Option("--template", help="Print a file for --cluster, each key with its meaning, and stop.")
    ] = False,
) -> None:
    """Write a job as manifests for Kubernetes; no cluster is asked, and nothing is started.

    Exit codes: 0 written, 2 something is missing, wrong, or not carried by Kubernetes: one sentence for each.
    """
    from gaudi3_scale.config import load
    from gaudi3_scale.kubernetes.cluster_file import read_options, template
    from gaudi3_scale.kubernetes.kubernetes_job import make, uses_cards
    from gaudi3_scale.kubernetes.manifest_files import documents, write
    from gaudi3_scale.kubernetes.manifests import manifests

    if print_template:
        typer.echo(template(), nl=False)
        return
    if job_file is None and cluster is None:
        raise ConfigError("JOB is missing: give the YAML file of the job, or --template for a file about the cluster.")
    config = load(job_file, overrides or (), elsewhere=True) if job_file is not None else None
    given = {
        "name": name,
        "nodes": nodes,
        "kind": kind.value if kind is not None else None,
        "devices": devices.value if devices is not None else None,
    }
    options = read_options(cluster, settings or (), given, config is None or uses_cards(config))
    made = manifests(make(config, options))
    if to is None:
        typer.echo(documents(made), nl=False)
        return
    try:
        write(made, to)
    except OSError as error:
        raise TrainerError(f"{to} cannot be written ({error.strerror}): give another folder with --to.") from None
    typer.echo(f"{to}: {', '.join(each.document['kind'] for each in made)}")
    typer.echo(f"check: kubectl apply --dry-run=server -f {to}")
    typer.echo(f"start: kubectl apply -f {to}")
