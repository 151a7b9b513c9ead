"""The commands `gaudi3-train registry ...`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from gaudi3_scale.config.registered import ALIASES, Reference, checked_name
from gaudi3_scale.errors import ConfigError
from gaudi3_scale.registry.server import CHAMPION, TAG, RegistryServer, Version

app = typer.Typer(
    no_args_is_help=True,
    help="Models in MLflow's registry: list them, promote a version, go back, and fetch the files.",
)
Address = Annotated[str | None, typer.Option("--uri", help="MLflow's tracking server; without it MLFLOW_TRACKING_URI.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Which = Annotated[
    str, typer.Argument(metavar="NAME@ALIAS", help="Which version: NAME@candidate, or NAME@3 for its number.")
]


@app.command("list")
def list_(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="Of one model; without it, of all.")] = None,
    uri: Address = None,
    as_json: AsJson = False,
) -> None:
    """Show the versions, what they are known by, and where they come from."""
    server = RegistryServer(uri)
    names = [checked_name(name)] if name is not None else server.names()
    found = [(version, aliases) for each in names for version, aliases in _versions(server, each)]
    if as_json:
        typer.echo(json.dumps([_record(version, aliases) for version, aliases in found], indent=2))
        return
    for version, aliases in found:
        typer.echo(_line(version, aliases))


@app.command()
def promote(
    which: Which,
    alias: Annotated[str, typer.Argument(metavar="ALIAS", help="candidate, canary or champion.")],
    uri: Address = None,
) -> None:
    """Let a version be known by an alias; what serves or trains by that alias takes it from then on."""
    if alias not in ALIASES:
        raise ConfigError(f"The alias is {alias!r}: give {', '.join(ALIASES[:-1])} or {ALIASES[-1]}.")
    server, reference = RegistryServer(uri), Reference.parse(which)
    version = server.resolve(reference)
    _ = version.digest  # one that cannot be fetched is not promoted
    before = server.set_alias(version.name, alias, version.number)
    if before == version.number:
        typer.echo(f"{version} is {alias} already")
    else:
        typer.echo(f"{version} is {alias} now" + ("" if before is None else f"; before it was version {before}"))


@app.command()
def rollback(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Of the model.")],
    uri: Address = None,
) -> None:
    """Make the champion before the present one champion again; called again, it goes back one more."""
    left, back = RegistryServer(uri).rollback(checked_name(name))
    typer.echo(f"{name} version {back} is {CHAMPION} again, in the place of version {left}")


@app.command()
def fetch(
    which: Which,
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="The folder to make.")],
    uri: Address = None,
    as_json: AsJson = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Write nothing: say which version it is, and whether the folder has it.")
    ] = False,
) -> None:
    """Write a version's files into a folder, each compared with its digest, all of them or none.

    A folder that has this version already is compared again and left as it is. Exit codes: 0 it is there, 2 refused,
    1 the registry cannot be reached.
    """
    from gaudi3_scale.registry.fetching import fetch as fetched
    from gaudi3_scale.registry.fetching import look

    if dry_run:
        seen = look(RegistryServer(uri), Reference.parse(which), folder)
        has = "has it already" if seen["there"] else "does not have it"
        typer.echo(json.dumps(seen) if as_json else f"{seen['name']} version {seen['version']}: {folder} {has}")
        return
    done = fetched(RegistryServer(uri), Reference.parse(which), folder)
    if as_json:
        typer.echo(json.dumps(done.record()))
    else:
        typer.echo(f"{done.name} version {done.version} in {folder}: verified, manifest {done.digest[:12]}")


def _versions(server: RegistryServer, name: str) -> list[tuple[Version, list[str]]]:
    known = server.aliases(name)
    return [(v, [alias for alias in ALIASES if known.get(alias) == v.number]) for v in server.versions(name)]


def _record(version: Version, aliases: list[str]) -> dict[str, Any]:
    lineage = {name.removeprefix(TAG): value for name, value in version.tags.items() if name.startswith(TAG)}
    return {"name": version.name, "version": version.number, "aliases": aliases, "lineage": lineage}


def _line(version: Version, aliases: list[str]) -> str:
    tags = version.tags
    told = {
        "step": tags.get(f"{TAG}checkpoint_step"),
        "checkpoint": tags.get(f"{TAG}checkpoint_sha256", "")[:12],
        "loss": tags.get(f"{TAG}validation_loss", "")[:6],
        "cost": tags.get(f"{TAG}cost"),
        "from": tags.get(f"{TAG}base"),
    }
    said = "  ".join(f"{name} {value}" for name, value in told.items() if value)
    return f"{version.name:<20} {version.number:>4}  {','.join(aliases) or '-':<26}  {said}".rstrip()
