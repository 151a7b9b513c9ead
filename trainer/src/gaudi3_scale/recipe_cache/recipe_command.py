"""The commands `gaudi3-train recipe-cache pack|verify|use|prune`."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Annotated

import typer

from gaudi3_scale.errors import ConfigError
from gaudi3_scale.recipe_cache.archive import pack, read_key, verify
from gaudi3_scale.recipe_cache.key import NAMES, CacheKey
from gaudi3_scale.recipe_cache.recipe_store import Store, entry_at
from gaudi3_scale.recipe_cache.recipes_of_job import NO_RELEASE, VARIABLE, release

app = typer.Typer(no_args_is_help=True, help="Compiled graphs that outlive a node: pack, verify, use and prune them.")

SigningKey = Annotated[Path, typer.Option(help="The cluster's key, a file that its owner alone can read.")]
Fields = Annotated[
    list[str] | None,
    typer.Option("--key", metavar="FIELD=TEXT", help=f"Of the key: {', '.join(NAMES)}; once for each."),
]
Archive = Annotated[Path, typer.Argument(help="An archive that `recipe-cache pack` wrote.")]


def _fields(given: list[str] | None) -> dict[str, str]:
    found: dict[str, str] = {}
    for each in given or ():
        name, equals, value = each.partition("=")
        if not equals or name not in NAMES or name in found:
            raise ConfigError(f"--key is {each!r}: give each of {', '.join(NAMES)} once, as release=1.24.1.")
        found[name] = value
    return found


def _bytes(gb: float) -> int:
    if not 0 <= gb < math.inf:
        raise ConfigError(f"--keep-gb is {gb:g}: give 0 or more.")
    return int(gb * 10**9)


@app.command("pack")
def pack_command(
    folder: Annotated[Path, typer.Argument(help="A cache of `recipe_cache.directory`, or any folder of recipes.")],
    to: Annotated[Path, typer.Option(help="The archive to write.")],
    signing_key: SigningKey,
    key: Fields = None,
) -> None:
    """Write a folder of recipes into one signed archive; end the job that fills it first.

    The key is that of the cache; for another folder, give all five fields.
    """
    fields = _fields(key)
    entry = entry_at(folder)
    if entry is not None and fields:
        raise ConfigError(f"{folder} has a key of its own: leave out --key.")
    if entry is None and (missing := [name for name in NAMES if name not in fields]):
        raise ConfigError(f"{folder} is none of the trainer's caches, so --key {missing[0]}=... is needed, too.")
    secret = read_key(signing_key)
    if entry is None and not folder.is_dir():
        raise ConfigError(f"{folder} is no folder: give the folder of a recipe cache.")
    if not to.absolute().parent.is_dir():
        raise ConfigError(f"--to is {to}, whose folder does not exist: make it, or give another file.")
    if to.is_dir():
        raise ConfigError(f"--to is {to}, which is a folder: give the file to write.")
    made = pack(entry.recipes if entry else folder, entry.key if entry else CacheKey(**fields), to, secret)
    typer.echo(f"{to}: {len(made.files)} file(s), {made.size:,} bytes, signed")


@app.command("verify")
def verify_command(archive: Archive, signing_key: SigningKey, key: Fields = None) -> None:
    """Read a whole archive and compare it with its signature, and with the fields of a key if they are given.

    Exit codes: 0 it is whole, signed and for this key, 1 it is not, 2 a wrong option.
    """
    fields = _fields(key)
    found = verify(archive, read_key(signing_key))
    found.key.refuse_unless(fields)
    for name in NAMES:
        typer.echo(f"{name:12} {getattr(found.key, name)}")
    typer.echo(f"{'files':12} {len(found.files)}, {found.size:,} bytes, as they were signed")


@app.command("use")
def use_command(
    archive: Archive,
    into: Annotated[Path, typer.Option(help="Folder of this node's caches, on a local disk.")],
    signing_key: SigningKey,
    key: Fields = None,
    replace: Annotated[bool, typer.Option("--replace", help="Also where this node has a cache of this key.")] = False,
    keep_gb: Annotated[float | None, typer.Option(help="Remove caches used longest ago beyond this.")] = None,
    size_mb: Annotated[int, typer.Option(min=1, help="What the bridge lets this cache grow to.")] = 8192,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Take an archive into this node's caches and print the variable for the service that uses it.

    The release is compared with the bridge's of this machine where one is installed, and the fields that are given.
    Exit codes: 0 it is here, 1 it was refused, 2 a wrong option.
    """
    fields = _fields(key)
    if "release" not in fields and (here := release()) != NO_RELEASE:
        fields["release"] = here
    keep = None if keep_gb is None else _bytes(keep_gb)
    store = Store(into)
    entry, changed = store.take(archive, read_key(signing_key), fields, replace)
    if keep is not None:
        store.prune(keep, entry)
    if as_json:
        record = {"changed": changed, "folder": str(entry.recipes), VARIABLE: entry.variable(size_mb)}
        typer.echo(json.dumps(record))
    else:
        typer.echo(f"{VARIABLE}={entry.variable(size_mb)}")


@app.command("prune")
def prune_command(
    into: Annotated[Path, typer.Argument(metavar="ROOT", help="Folder of this node's caches.")],
    keep_gb: Annotated[float, typer.Option(min=0, help="What they may have together.")],
) -> None:
    """Remove the caches that were used longest ago until the others are within a size; those of running jobs stay."""
    if not into.is_dir():
        raise ConfigError(f"{into} is no folder: give the folder of this node's caches.")
    store = Store(into)
    for entry in store.prune(_bytes(keep_gb)):
        typer.echo(f"removed {entry.folder.name}")
    left = store.entries()
    typer.echo(f"{len(left)} cache(s), {sum(entry.size for entry in left):,} bytes")
