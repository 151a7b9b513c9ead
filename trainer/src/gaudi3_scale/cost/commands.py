"""The commands `gaudi3-train cost` and `gaudi3-train chargeback`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from gaudi3_scale.errors import ConfigError


class Format(StrEnum):
    """Of what is printed."""

    text = "text"
    csv = "csv"
    json = "json"


FormatOption = Annotated[Format, typer.Option("--format", help="Of what is printed.")]


def cost(
    inputs: Annotated[Path, typer.Argument(metavar="INPUTS", help="YAML file of prices and measurements.")],
    report: Annotated[
        list[Path] | None,
        typer.Option(
            help="Write a report: .pdf, .html (both need the extra report), .csv, .json, .txt; may be repeated."
        ),
    ] = None,
    platform: Annotated[
        list[str] | None, typer.Option(help="An offer of the file, or a platform; may be repeated; all without it.")
    ] = None,
    model_size: Annotated[str | None, typer.Option(help="Parameters, as 70B, over the file's.")] = None,
    tokens: Annotated[str | None, typer.Option(help="Tokens, as 1T, over the file's.")] = None,
    energy: Annotated[bool, typer.Option("--energy/--no-energy", help="Pay for the power of owned nodes.")] = True,
    format_: FormatOption = Format.text,
) -> None:
    """Compare what a training costs on several platforms, from a file of prices and measurements with their sources.

    The first platform is the one whose break-even prices are shown. Exit codes: 0 done, 2 an input is wrong or missing.
    """
    from gaudi3_scale.cost import report as reports
    from gaudi3_scale.cost.analyzer import CostAnalyzer

    wrong = [path for path in report or () if path.suffix not in reports.WRITERS]
    if wrong:
        raise ConfigError(f"--report is {wrong[0]}: give a file that ends with one of {', '.join(reports.WRITERS)}.")
    analyzer = CostAnalyzer(inputs)
    found = analyzer.compare_training_cost(model_size, tokens, platform or None, energy)
    for path in report or ():
        analyzer.generate_report(path)
    printed = {Format.text: reports.as_text, Format.csv: reports.as_csv, Format.json: reports.as_json}[format_]
    typer.echo(printed(found), nl=False)


def chargeback(
    folders: Annotated[
        list[Path] | None, typer.Argument(metavar="DIR...", help="Jobs' output folders, one of each job.")
    ] = None,
    sacct: Annotated[
        list[Path] | None, typer.Option(metavar="FILE", help="What sacct -P printed of jobs under Slurm; repeatable.")
    ] = None,
    card_price: Annotated[float | None, typer.Option(help="Price of a card for an hour, for --sacct.")] = None,
    currency: Annotated[str, typer.Option(help="Of --card-price.")] = "USD",
    gres: Annotated[str, typer.Option(help="What counts as a card in --sacct, as AllocTRES has it.")] = "gres/gpu",
    skip_unpriced: Annotated[
        bool, typer.Option("--skip-unpriced", help="Leave out jobs that ran without a price.")
    ] = False,
    format_: FormatOption = Format.text,
) -> None:
    """Sum up what jobs have cost by team and project: projected against actual, and by what their time went into.

    Exit codes: 0 done, 1 a folder has no job, 2 a job has no price or is given twice.
    """
    from gaudi3_scale.cost import chargeback as bills

    if not folders and not sacct:
        raise ConfigError("No jobs are given: name output folders of jobs, or a file of sacct with --sacct.")
    if (card_price is not None) and not sacct:
        raise ConfigError("--card-price is for jobs of --sacct: give a file, or leave the price out.")
    jobs = bills.charges(folders, skip_unpriced) if folders else []
    if sacct:
        from gaudi3_scale.cost import sacct as accounting

        price = accounting.checked_price(card_price)
        jobs = bills.together(jobs, (job for path in sacct for job in accounting.read(path, price, currency, gres)))
    found = bills.groups(jobs)
    typer.echo(bills.FORMATS[format_.value](found), nl=False)
