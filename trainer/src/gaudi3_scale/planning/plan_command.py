"""The command `gaudi3-train plan`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from gaudi3_scale.errors import ConfigError


def plan(
    overrides: Annotated[
        list[str] | None, typer.Argument(metavar="KEY=VALUE", help="Settings over the file's, keys dotted.")
    ] = None,
    config: Annotated[
        Path | None, typer.Option(help="YAML file of the job; without it every setting has its default.")
    ] = None,
    devices: Annotated[str, typer.Option(help="Numbers of devices.")] = "8,16,32,64,128,256,512",
    platform: Annotated[
        list[str] | None, typer.Option(help="gaudi3, gaudi2, h100, h200 or a100; may be repeated; all without it.")
    ] = None,
    tokens: Annotated[str | None, typer.Option(help="Tokens of the whole training, as 1T; over the inputs'.")] = None,
    inputs: Annotated[
        Path | None, typer.Option(help="YAML file of prices and throughput with their sources, as of `cost`.")
    ] = None,
    mfu: Annotated[str | None, typer.Option(help="Share of the peak where none is given, as 0.3,0.4.")] = None,
    result: Annotated[Path | None, typer.Option(help="A result of gaudi3-benchmark, whose throughput counts.")] = None,
    margin: Annotated[float, typer.Option(help="Share of each memory to leave free.")] = 0.1,
    tensor_parallel: Annotated[
        int, typer.Option(help="Devices that share each matrix, tried where no job fits, for a script of your own.")
    ] = 1,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write everything here.")] = None,
    html_file: Annotated[
        Path | None, typer.Option("--html", help="Write a page with pictures here; needs the extra report.")
    ] = None,
    write: Annotated[Path | None, typer.Option(help="Write the recommended configuration here, for fit.")] = None,
) -> None:
    """Tell where a job fits, at which batch, and what it takes and costs; no device is needed and nothing allocated.

    Exit codes: 0 it fits somewhere, 1 nowhere, 2 an input is wrong or missing.
    """
    from gaudi3_scale.config import load

    job = load(config, overrides or ())
    for path in (json_file, html_file, write):
        if path is not None and not path.absolute().parent.is_dir():
            raise ConfigError(f"{path} is to be written, and its folder does not exist: make it, or give another file.")
    if html_file is not None:
        from gaudi3_scale.cost.pictures import new_figure

        new_figure(1, 1)
    from gaudi3_scale.cost import inputs as given
    from gaudi3_scale.cost.workload import count
    from gaudi3_scale.planning import text as show
    from gaudi3_scale.planning.accelerators import ACCELERATORS, accelerator
    from gaudi3_scale.planning.speed import with_mfu, with_result

    names = platform or list(ACCELERATORS)
    for name in names:
        accelerator(name)
    stated = given.load(inputs)
    if result is not None:
        stated = with_result(stated, result, job)
    if mfu is not None:
        stated = with_mfu(stated, mfu, names)
    length = count(tokens if tokens is not None else stated.job.dataset_tokens, "tokens")
    from gaudi3_scale.planning.estimate import Planner

    numbers = _numbers(devices)
    planner = Planner(job, stated, length, margin, tensor_parallel)
    if sys.stderr.isatty():
        typer.echo(f"Planning {len(names) * len(numbers)} places for {job.model.name} ...", err=True)
    found = planner.plan(names, numbers)
    from gaudi3_scale.files import write_atomically

    typer.echo(show.as_text(found), nl=False)
    if json_file is not None:
        write_atomically(json_file, show.as_json(found), durable=False)
    if html_file is not None:
        from gaudi3_scale.planning.page import as_html

        write_atomically(html_file, as_html(found), durable=False)
    if found.recommended is None:
        raise typer.Exit(1)
    if write is not None:
        write_atomically(write, show.as_config(found), durable=False)


def _numbers(text: str) -> list[int]:
    numbers = [int(part) if part.strip().isdigit() else 0 for part in text.split(",")]
    if min(numbers) < 1:
        raise ConfigError(f"--devices is {text!r}: give numbers from 1 on, as 8,64,512.")
    return numbers
