"""`gaudi3-train migrate`: a program for optimum-habana becomes one for transformers 5, or a job."""

from __future__ import annotations

import errno
import json
import os
import shlex
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from gaudi3_scale.errors import ConfigError
from gaudi3_scale.extras import how_to_install
from gaudi3_scale.files import draft, opened_folder

if TYPE_CHECKING:
    from gaudi3_migration import Migrated

LEFT = 3
"""The exit code where something is left for a person."""


def migrate(
    script: Annotated[Path, typer.Argument(help="The program, or the JSON file with its arguments.")],
    command: Annotated[
        list[str] | None,
        typer.Argument(metavar="[-- COMMAND]", help="What it was started with, behind --: rewritten too."),
    ] = None,
    write: Annotated[bool, typer.Option("--write", help="Rewrite the program and its helpers in their place.")] = False,
    output: Annotated[
        Path | None, typer.Option(help="Write the program here; a folder, where helper modules go with it.")
    ] = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Write the report here, line by line, for programs.")
    ] = None,
    gaudi_config: Annotated[
        Path | None, typer.Option(help="The gaudi_config.json, or its folder, that --gaudi_config_name named.")
    ] = None,
    to: Annotated[
        Literal["transformers", "trainer"],
        typer.Option(help="Plain transformers 5, or a job of gaudi3-train (job.yml)."),
    ] = "transformers",
) -> None:
    """Rewrite a program for optimum-habana, which ended, for transformers 5, and report what became of each line.

    Prints the difference and writes nothing, unless a place is given. The program is never run.
    Exit codes: 0 all is understood, 3 lines are left for a person, as the report says, 2 it cannot be read.
    """
    import gaudi3_migration as migration

    if write and output is not None:
        raise ConfigError("--write and --output exclude each other: give one.")
    if json_file is not None and json_file.is_dir():
        raise ConfigError(f"--json is {json_file}, which is a folder: give a file.")
    if json_file is not None and not json_file.absolute().parent.is_dir():
        raise ConfigError(f"--json is {json_file}, whose folder does not exist: make it, or give another file.")
    try:
        if script.suffix == ".json":
            files = [migration.migrate_json_file(script)]
        else:
            files = migration.migrate(script, gaudi_config)
        if command:
            rewritten, found = migration.migrated_command(command, files[0].own)
            files[0].findings += found
        job = migration.job(files, command or ()) if to == "trainer" else ""
    except ModuleNotFoundError as error:
        if error.name != "libcst":
            raise
        raise ConfigError(f"migrate needs libcst, which is not installed: {how_to_install('migrate')}") from None
    except migration.MigrationError as error:
        raise ConfigError(str(error)) from error
    if job:
        _written(output, job)
    else:
        _programs(files, write, output)
    if command and not job:
        typer.echo(f"command: {shlex.join(rewritten)}", err=True)
    typer.echo(migration.text(files), nl=False, err=True)
    if json_file is not None:
        _written(json_file, json.dumps(migration.record(files), indent=2) + "\n", "--json")
    if any(each.left for each in files):
        raise typer.Exit(LEFT)


def _written(output: Path | None, text: str, option: str = "--output") -> None:
    """Print a text, or put it in a file's place, whose mode it keeps: whole, or not at all."""
    if output is None:
        typer.echo(text, nl=False)
        return
    place = output.resolve()
    try:
        if place.exists() and not place.is_file():
            place.write_text(text, encoding="utf-8", newline="")
            return
        mode = stat.S_IMODE(place.stat().st_mode) if place.exists() else None
        if mode is not None and not os.access(place, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        with opened_folder(place.parent) as folder, draft(folder, place.name) as file:
            if mode is not None:
                os.fchmod(file.fileno(), mode)
            file.write(text.encode())
    except OSError as error:
        raise ConfigError(f"{option} is {output}, which cannot be written: {error.strerror}.") from error


def _programs(files: list[Migrated], write: bool, output: Path | None) -> None:
    """Print the difference, or write the programs."""
    import gaudi3_migration as migration

    changed = [each for each in files if each.before != each.after]
    if not write and output is None:
        typer.echo(migration.difference(files), nl=False)
        return
    if output is not None and len(files) > 1 and not output.is_dir():
        names = ", ".join(each.path.name for each in files[1:])
        raise ConfigError(
            f"--output is {output}, which is no folder: {names} is rewritten too and goes beside the program."
        )
    for each in changed if write else files:
        place = each.path if write else output / each.path.name if output and output.is_dir() else output
        _written(place, each.after, "--write" if write else "--output")
