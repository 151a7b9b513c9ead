"""The command `gaudi3-train slurm`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gaudi3_scale.errors import ConfigError, TrainerError


def slurm(
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
    to: Annotated[Path | None, typer.Option(help="Write NAME.sbatch into this folder, not to standard output.")] = None,
    print_template: Annotated[
        bool, typer.Option("--template", help="Print a file for --cluster, each key with its meaning, and stop.")
    ] = False,
) -> None:
    """Write a job as a batch script for Slurm; no cluster is asked, and nothing is started.

    Exit codes: 0 written, 2 something is missing, wrong, or not carried by Slurm: one sentence for each.
    """
    from gaudi3_scale.config import load
    from gaudi3_scale.files import write_atomically
    from gaudi3_scale.slurm.script import HEAD, batch_script
    from gaudi3_scale.slurm.slurm_job import make
    from gaudi3_scale.slurm.slurm_options import FILE

    if print_template:
        typer.echo(FILE.template(), nl=False)
        return
    if job_file is None and cluster is None:
        raise ConfigError("JOB is missing: give the YAML file of the job, or --template for a file about the cluster.")
    config = load(job_file, overrides or (), elsewhere=True) if job_file is not None else None
    options = FILE.checked(FILE.values(cluster, settings or (), {"name": name, "nodes": nodes}))
    text = batch_script(make(config, options))
    if to is None:
        typer.echo(text, nl=False)
        return
    path = to / f"{options.name}.sbatch"
    try:
        to.mkdir(parents=True, exist_ok=True)
        if path.exists() and not path.read_bytes().startswith(HEAD.encode()):
            raise ConfigError(f"{path} was not written by this command: give another folder with --to.")
        write_atomically(path, text, durable=False)
    except OSError as error:
        raise TrainerError(f"{to} cannot be written ({error.strerror}): give another folder with --to.") from None
    typer.echo(f"check: sbatch --test-only {path}")
    typer.echo(f"start: sbatch {path}")
