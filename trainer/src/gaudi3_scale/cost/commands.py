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
    folders: Annotated[list[Path], typer.Argument(metavar="DIR...", help="Jobs' output folders, one of each job.")],
    skip_unpriced: Annotated[
        bool, typer.Option("--skip-unpriced", help="Leave out jobs that ran without a price.")
    ] = False,
    format_: FormatOption = Format.text,
) -> None:
    """Sum up what jobs have cost by team and project: projected against actual, and by what their time went into.

    Exit codes: 0 done, 1 a folder has no job, 2 a job has no price or is given twice.
    """
    from gaudi3_scale.cost import chargeback as bills

    found = bills.groups(bills.charges(folders, skip_unpriced))
    typer.echo(bills.FORMATS[format_.value](found), nl=False)
