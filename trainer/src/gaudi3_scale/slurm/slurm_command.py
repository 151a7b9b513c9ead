"""The command `gaudi3-train slurm`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gaudi3_scale.errors import ConfigError, TrainerError
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


def slurm(
    job_file: JobFile = None,
    overrides: Overrides = None,
    cluster: ClusterFile = None,
    settings: Settings = None,
    name: Name = None,
    nodes: Nodes = None,
    to: Annotated[Path | None, typer.Option(help="Write NAME.sbatch into this folder, not to standard output.")] = None,
    print_template: PrintTemplate = False,
) -> None:
    """Write a job as a batch script for Slurm; no cluster is asked, and nothing is started.

    Exit codes: 0 written, 2 something is missing, wrong, or not carried by Slurm: one sentence for each.
    """
    from gaudi3_scale.files import write_atomically
    from gaudi3_scale.slurm.script import HEAD, batch_script
    from gaudi3_scale.slurm.slurm_job import make
    from gaudi3_scale.slurm.slurm_options import FILE

    if print_template:
        typer.echo(FILE.template(), nl=False)
        return
    config = job_of(job_file, overrides, cluster)
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
