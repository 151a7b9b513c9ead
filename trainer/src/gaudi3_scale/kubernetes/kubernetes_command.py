"""The command `gaudi3-train kubernetes`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from gaudi3_scale.errors import TrainerError
from gaudi3_scale.launcher_arguments import (
    ClusterFile,
    JobFile,
    Name,
    Nodes,
    Overrides,
    PrintTemplate,
    Settings,
    job_of,
)


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
    job_file: JobFile = None,
    overrides: Overrides = None,
    cluster: ClusterFile = None,
    settings: Settings = None,
    name: Name = None,
    nodes: Nodes = None,
    kind: Annotated[Kind | None, typer.Option(help="A TrainJob of Kubeflow Trainer, or a JobSet alone.")] = None,
    devices: Annotated[Devices | None, typer.Option(help="Cards by Intel's DRA driver, its plugin, or none.")] = None,
    to: Annotated[Path | None, typer.Option(help="Write one file per object into this folder, not all here.")] = None,
    print_template: PrintTemplate = False,
) -> None:
    """Write a job as manifests for Kubernetes; no cluster is asked, and nothing is started.

    Exit codes: 0 written, 2 something is missing, wrong, or not carried by Kubernetes: one sentence for each.
    """
    from gaudi3_scale.kubernetes.cluster_file import read_options, template
    from gaudi3_scale.kubernetes.kubernetes_job import make, uses_cards
    from gaudi3_scale.kubernetes.manifest_files import documents, write
    from gaudi3_scale.kubernetes.manifests import manifests

    if print_template:
        typer.echo(template(), nl=False)
        return
    config = job_of(job_file, overrides, cluster)
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
