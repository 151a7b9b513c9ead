"""The command `gaudi3-train batch-warmup`."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from gaudi3_scale.config import load
from gaudi3_scale.errors import ConfigError
from gaudi3_scale.next_command import command_line


def batch_warmup(
    overrides: Annotated[
        list[str] | None, typer.Argument(metavar="KEY=VALUE", help="Settings over the file's, keys dotted.")
    ] = None,
    config: Annotated[Path | None, typer.Option(help="YAML file of the job; its batch is the smallest tried.")] = None,
    to: Annotated[Path | None, typer.Option(help="Folder to work in; without it output_dir/batch-warmup.")] = None,
    job: Annotated[
        Path | None, typer.Option(help="Measure at the checkpoints of this output_dir instead of training up to them.")
    ] = None,
    at: Annotated[str, typer.Option(help="Points to measure at, as shares of the job.")] = "0.03,0.06,0.12,0.25,0.5",
    branch: Annotated[float, typer.Option(help="Tokens of each branch, as a share of the job's.")] = 0.03,
    most: Annotated[int, typer.Option(help="The largest batch to try, over the job's; a power of two.")] = 8,
    seeds: Annotated[int, typer.Option(min=1, help="Branches with each batch; they see other samples.")] = 3,
    tolerance: Annotated[
        float, typer.Option(min=0, help="Nats per token by which a loss may be higher, if the seeds differ by less.")
    ] = 0.0,
    processes: Annotated[int, typer.Option(min=1, help="Processes of each job, on this node.")] = 1,
) -> None:
    """Measure by short branches how large the batch may be, and write the job with a batch-size warm-up.

    Killed and started again, it keeps what is finished. Exit codes: 0 done, 2 a wrong option, 1 a job failed.
    """
    from gaudi3_scale.batch_warmup.measurement import Measurement, Plan, checkpoints_of

    settings = load(config, overrides or ())
    try:
        shares = tuple(float(part) for part in at.split(","))
    except ValueError:
        raise ConfigError(f"--at is {at!r}: give shares of the job between 0 and 1, as 0.05,0.1,0.2.") from None
    folder = to or settings.output_dir / "batch-warmup"
    plan = Plan(shares, branch, most, seeds, tolerance)
    if job is not None:
        checkpoints_of(job)  # before the folder is made
    points = Measurement(settings, plan, folder, processes, typer.echo).run(job=job)
    from gaudi3_scale.batch_warmup import record as records

    record = records.leave(settings, points, folder, processes)
    for stage in record["batch_warmup"]:
        typer.echo(f"from {stage['from_tokens']:>15,} tokens: {stage['samples_per_step']:,} samples per step")
    before, after = record["steps_with_first_batch"], record["steps"]
    typer.echo(f"{after:,} optimizer steps instead of {before:,} ({100 * (1 - after / before):.0f} % fewer)")
    if find_spec("matplotlib") is not None:
        records.draw(record, folder / "batch-warmup.png")
    typer.echo(command_line("fit", "--config", str(folder / "job.yml"), processes=processes))
