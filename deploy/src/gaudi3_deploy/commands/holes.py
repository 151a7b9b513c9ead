"""mirror holes: what advisories say of a mirror's packages, offline."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gaudi3_deploy import given_file
from gaudi3_deploy.app import Context, Json, print_json
from gaudi3_deploy.collection._mirror import LOCK, poisoned
from gaudi3_deploy.collection._printable import printable
from gaudi3_deploy.commands.mirror import Folder, mirror
from gaudi3_deploy.errors import UsageError
from gaudi3_deploy.messages import reason
from gaudi3_deploy.mirror.sealed import read

if TYPE_CHECKING:
    from gaudi3_deploy.holes.ledger import Verdict


@mirror.command()
def holes(
    context: typer.Context,
    folder: Folder,
    advisories: Annotated[list[Path], typer.Argument(help="OSV records: JSON files, folders or zip archives.")],
    ledger: Annotated[Path | None, typer.Option(help="Decisions of your own, which come first.")] = None,
    openvex: Annotated[Path | None, typer.Option(help="File to write as OpenVEX.")] = None,
    cyclonedx: Annotated[Path | None, typer.Option(help="File to write as CycloneDX VEX.")] = None,
    as_json: Json = False,
) -> None:
    """Name the holes that advisories know in a mirror's packages, and which of them its use reaches. Asks nobody.

    Exit codes: 0 none reaches the use, 1 one does, or nobody has decided about it, 2 an input is wrong.
    """
    from gaudi3_deploy.holes import advisories as records
    from gaudi3_deploy.holes import frozen, vex
    from gaudi3_deploy.holes.ledger import OURS, UNDECIDED, rows, verdicts_on

    settings: Context = context.obj
    lock = read(folder / LOCK)
    if lock is None:
        raise UsageError(f"{folder} has no {LOCK}: `gaudi3-deploy mirror fill` writes one when a mirror is whole.")
    decided = [*(rows(ledger) if ledger else ()), *rows(OURS)]
    known, packages = records.read(advisories), frozen.packages(lock, folder)
    verdicts = verdicts_on(known, packages, decided)
    time = _time()
    for path, made in ((openvex, vex.openvex), (cyclonedx, vex.cyclonedx)):
        if path is not None:
            _write(path, made(verdicts, lock.release, time))
    said = [f"{path}: {what}" for path, what in poisoned(lock.files)]
    if as_json:
        print_json(
            {
                "release": lock.release,
                "packages": len(packages),
                "advisories": len(known),
                "poisoned": said,
                "verdicts": [{**asdict(each), "advisory": each.advisory.id} for each in verdicts],
            }
        )
    else:
        listed = [
            f"{each.advisory.id} {each.package.name} {each.package.version}: {_as_line(each)}" for each in verdicts
        ]
        open_ones = sum(each.status == UNDECIDED for each in verdicts)
        affected = sum(each.status == "affected" for each in verdicts)
        about = (
            f"{len(packages)} packages of {printable(lock.release)}; advisories: {len(known)}, "
            f"verdicts: {len(verdicts)}, reaching the use: {affected}, undecided: {open_ones}"
        )
        _print(settings, [*said, *listed, about])
    if said or any(each.status != "not_affected" for each in verdicts):
        raise typer.Exit(1)


def _write(path: Path, text: str) -> None:
    try:
        given_file.write_text(path, text)
    except OSError as error:
        raise UsageError(f"{path} cannot be written ({reason(error)}): give another file.") from None


def _as_line(verdict: Verdict) -> str:
    why = f" ({verdict.justification})" if verdict.justification else ""
    return " ".join(filter(None, (f"{verdict.status}{why}.", verdict.statement, verdict.action)))


def _print(settings: Context, lines: Sequence[str]) -> None:
    # Names and words of advisories are other people's; the longest statement of a ledger is shown whole.
    for line in lines:
        settings.console.print(printable(line, 8000), highlight=False, markup=False, soft_wrap=True)


def _time() -> str:
    """Now, or what SOURCE_DATE_EPOCH says, so that a document can be made again."""
    given = os.environ.get("SOURCE_DATE_EPOCH", "")
    moment = datetime.fromtimestamp(int(given), UTC) if given.isdigit() else datetime.now(UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
