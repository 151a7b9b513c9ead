"""audit: who changed what and when, and whether the record of it is as it was written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from gaudi3_deploy import audit
from gaudi3_deploy.app import Context, Json, app, print_json
from gaudi3_deploy.collection._audit import chain, question
from gaudi3_deploy.collection._audit.verify import verify
from gaudi3_deploy.collection._refusal import Refusal
from gaudi3_deploy.errors import DeployError, UsageError
from gaudi3_deploy.messages import reason


@app.command("audit")
def show_audit(
    context: typer.Context,
    host: Annotated[str, typer.Option(help="Changes of this host alone.")] = "",
    user: Annotated[str, typer.Option(help="Of this user, who ran it, called sudo or was become.")] = "",
    job: Annotated[str, typer.Option(help="Of this job.")] = "",
    since: Annotated[str, typer.Option(help="30m, 12h, 7d, or a time in UTC (2026-11-29T08:30).")] = "",
    check: Annotated[bool, typer.Option("--verify", help="Follow the chain; name its first broken link.")] = False,
    anchor: Annotated[str, typer.Option(help="With --verify: a hash that --head gave earlier.")] = "",
    head: Annotated[bool, typer.Option("--head", help="Print the last line's hash, to be kept elsewhere.")] = False,
    file: Annotated[Path | None, typer.Option(help="A record, or a copy of one [default: that of this user].")] = None,
    as_json: Json = False,
) -> None:
    """Who changed what and when, by playbooks and by this command.

    Exit codes: 0 shown or whole, 1 the chain is broken, 2 an input is wrong or there is no record.
    """
    settings: Context = context.obj
    path = file or audit.path(settings.deployments)
    if anchor and not check:
        raise UsageError("--anchor goes with --verify: give both.")
    if anchor and not chain.HASH.fullmatch(anchor):
        raise UsageError(f"--anchor is {anchor!r}: give the 64 digits that `gaudi3-deploy audit --head` printed.")
    try:
        wanted = question.Question(host, user, job, question.since(since) if since else "")
        if check or head:
            _show_chain(path, anchor, head, as_json)
            return
        records = (chain.parse(line.rstrip(b"\n")) for line in chain.lines(str(path)))
        found = [each for each in records if each is not None and wanted.fits(each)]
    except Refusal as refusal:
        raise UsageError(str(refusal)) from refusal
    except OSError as error:
        raise UsageError(
            f"The record {path} cannot be read ({reason(error)}): give --file, or run something first."
        ) from None
    if as_json:
        print_json({"records": found})
        return
    for each in found:
        typer.echo(question.as_line(each))
        for name in ("before", "after", "said", "hidden"):
            if each.get(name):
                typer.echo(f"    {name}: {json.dumps(each[name], ensure_ascii=True)}")


def _show_chain(path: Path, anchor: str, head: bool, as_json: bool) -> None:
    """The verdict on the whole file, or its last hash. Raises DeployError where the chain is broken."""
    verdict = verify(chain.lines(str(path)), anchor)
    if as_json:
        print_json({"file": str(path), **verdict._asdict()})
        if verdict.problem:
            raise typer.Exit(1)
        return
    if not head:
        for note in verdict.notes:
            typer.echo(note)
    if verdict.problem:
        raise DeployError(f"The chain of {path} is broken. {verdict.problem}")
    typer.echo(verdict.head if head else f"{path}: {verdict.lines} lines, each names the one before it")
